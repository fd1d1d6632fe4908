"""A study whose process dies at any change of a file ends, run again, with the bytes of an undisturbed one.

Changes are counted by an audit hook; the process ends just before one of them. GAPFLOOR_KILLS says how many changes
are tried (default 4): half of them after a file of a replay, half spread evenly.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from folders import file_hashes

STUDY = """
name = "killed"
train = "0:10"
test = "100:110"
formats = ["md"]
replays = 2
[[runs]]
games = ["gym:CartPole-v1"]
policies = "leaning:make"
agent = "leaning"
seeds = [1]
[evaluation]
draws = [0]
episodes = 8
slots = 4
probe = 0
"""

LEANING = """
import numpy as np
def make():
    return lambda observations: np.stack([-observations[:, 2], observations[:, 2]], axis=1) * 9
"""

#: Runs the study in one process; with a number, dies just before the change of that number; prints all changes.
RUN = """
import json, os, sys
store, last = sys.argv[1], int(sys.argv[2])
changes = []
def count(event, arguments):
    if event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "open"):
        if event == "open" and not (isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        path = arguments[1] if event == "os.rename" else arguments[0]
        if not isinstance(path, int) and os.path.abspath(os.fsdecode(path)).startswith(store):
            if len(changes) == last:
                os._exit(9)
            changes.append(os.path.relpath(os.fsdecode(path), store))
import gapfloor
from concurrent.futures import Future
from gapfloor.study import commands
from gapfloor.study.executors import carry_out
class Here:
    capacity, losses = 1, ()
    def __init__(self, workplace, workers):
        self.workplace = workplace
    def begin(self, task):
        done = Future()
        done.set_result(carry_out(task, self.workplace))
        return done
    def close(self):
        pass
commands.LocalExecutor = Here
sys.addaudithook(count)
outcome = gapfloor.Study.read("study.toml").run(store=store, progress=False)
assert not outcome.failed, outcome.failed
print(json.dumps(changes))
"""


def run(folder: Path, store: Path, *, dies_before: int = -1) -> list[str]:
    """The changes of one run; none if the process died."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(store), str(dies_before)], cwd=folder, capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
    )  # fmt: skip
    assert done.returncode == (0 if dies_before < 0 else 9), done.stderr[-2000:]
    return [] if done.returncode else json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """A folder with the study, and the changes of an undisturbed run."""
    folder = tmp_path_factory.mktemp("calm")
    (folder / "study.toml").write_text(STUDY)
    (folder / "leaning.py").write_text(LEANING)
    return folder, run(folder, folder / "calm")


def chosen(changes: list[str], most: int) -> list[int]:
    """Half of them just after a replay's file is there, where a task has done a part of its work; half anywhere."""
    late = [
        at + 1 for at, path in enumerate(changes) if path.startswith("replays/") and ".partial" not in path
    ]
    few = late[:: max(1, 2 * len(late) // most)]
    return sorted({*few, *range(1, len(changes), max(1, 2 * len(changes) // most))})


def test_a_study_that_dies_at_any_change_ends_with_the_same_bytes(calm):
    folder, changes = calm
    undisturbed = file_hashes(folder / "calm", without={"log"})
    assert sum(path.startswith("replays/") for path in changes) >= 8
    for at in chosen(changes, int(os.environ.get("GAPFLOOR_KILLS", "4"))):
        store = folder / f"died-{at}"
        run(folder, store, dies_before=at)
        run(folder, store)
        assert file_hashes(store, without={"log"}) == undisturbed, changes[at - 1]
