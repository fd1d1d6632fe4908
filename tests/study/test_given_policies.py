"""A study whose runs are other people's policies in a Gymnasium environment."""

import json
import subprocess
from pathlib import Path

import pytest

from command_line import GAPFLOOR
from gapfloor.errors import UsageError
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store
from gapfloor.study.model import Study
from gapfloor.study.runner import StudyProgress

STUDY = """
name = "cartpole"
train = "0:10"
test = "100:110"
formats = ["md"]

[[runs]]
games = ["gym:CartPole-v1"]
policies = "leaning:policy_{seed}"
agent = "leaning"
seeds = [1, 2]

[evaluation]
draws = [0]
episodes = 8
slots = 4
probe = 0
"""

POLICIES = """
import numpy as np

def policy_1():
    return lambda observations: np.stack([-observations[:, 2], observations[:, 2]], axis=1) * 9

def policy_2():
    return lambda observations: np.stack([-observations[:, 3], observations[:, 3]], axis=1) * 9
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("study")
    (path / "study.toml").write_text(STUDY)
    (path / "leaning.py").write_text(POLICIES)
    command = [*GAPFLOOR, "study", "run", "study.toml", "--store", "store", "--workers", "1"]
    subprocess.run(command, cwd=path, check=True, capture_output=True)
    return path


def test_any_policy_in_any_environment_is_played_analysed_and_reported(folder):
    labels = [cell.manifest.labels for cell in Store(folder / "store").cells()]
    runs = {(each["game"], each["agent"], each["seed"]) for each in labels if not each["reference"]}
    assert runs == {("CartPole-v1", "leaning", 1), ("CartPole-v1", "leaning", 2)}
    assert len(labels) == 2 * 2 * 2 + 2  # runs, rules and level sets; and the floor
    assert list((folder / "store" / "report").iterdir())
    assert list((folder / "store" / "replays").glob("*.npz"))


def test_what_is_done_is_not_done_again(folder):
    command = [*GAPFLOOR, "study", "status", "study.toml", "--store", "store", "--json"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    states = json.loads(done.stdout)["tasks"].values()
    assert {state for counts in states for state, n in counts.items() if n} == {"done"}


@pytest.mark.fast
@pytest.mark.parametrize(
    ("line", "path", "options"),
    [
        ("sb3:models/{game}-{seed}.zip,key=a", "models/CartPole-v1-1.zip", {"key": "a"}),
        ("sb3:models/{game}-{seed}.zip", "models/CartPole-v1-1.zip", {}),
        ("statedict:models/w.pt,net=mine.nets:Net", "models/w.pt", {"net": "mine.nets:Net"}),
        ("acting:mine.agents:Planner", None, {}),
    ],
)
def test_a_policy_file_is_found_next_to_the_study_file(tmp_path, line, path, options):
    tmp_path /= "unpacked,trust=yes,key=model"  # the name of a folder is never read as options
    (tmp_path / "models").mkdir(parents=True)
    for name in ("CartPole-v1-1.zip", "w.pt"):
        (tmp_path / "models" / name).touch()
    (tmp_path / "study.toml").write_text(
        STUDY.replace("leaning:policy_{seed}", line).replace("[1, 2]", "[1]")
    )
    (found,) = Study.read(tmp_path / "study.toml").given_runs("gym:CartPole-v1")
    assert found[0] == "CartPole-v1-default-leaning-s1"
    spec = PolicySource.named(found[1].policy).spec
    assert spec.path == (tmp_path.resolve() / path if path else Path(line.partition(":")[2]))
    assert dict(spec.options) == options


@pytest.mark.fast
def test_only_games_of_procgen_are_trained(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY.replace('policies = "leaning:policy_{seed}"', "steps = 8192"))
    with pytest.raises(UsageError, match=r"gym:CartPole-v1 is not a game of ProcGen.*name its `policies`"):
        Study.read(tmp_path / "study.toml")


@pytest.mark.fast
def test_the_first_task_alone_does_not_decide_the_time_left():
    progress = StudyProgress({}, is_quiet=True, workers=2)
    progress._total, progress._left = (
        60.0,
        59.9,
    )  # a first task of a tenth of a second, after 30 s of start-up
    assert progress.seconds_left(30.0) < 120
    progress._total, progress._left = 3_600_000.0, 3_599_995.0
    assert 400 * 3600 < progress.seconds_left(30.0) < 600 * 3600
