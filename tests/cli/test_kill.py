"""kill -9 at any moment loses at most what is under way; the rest has the bytes of an undisturbed run.

GAPFLOOR_KILLS says how often each command is killed (default 3); tests/study has the same for a study with training.
"""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from command_line import GAPFLOOR
from folders import file_hashes

KILLS = int(os.environ.get("GAPFLOOR_KILLS", "3"))
FEW = ["--episodes", "32", "--draws", "0,1", "--workers", "2", "--store"]
COMMANDS = {
    "floor": [*GAPFLOOR, "floor", "starpilot", "bossfight", *FEW],
    "evaluate": [
        *GAPFLOOR, "evaluate", "small_policies:linear", "--game", "starpilot", "--rules", "sampled,greedy", *FEW,
    ],
}  # fmt: skip

#: Where `small_policies` is.
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]),
}


def start(command, store):
    return subprocess.Popen(
        [*command, str(store)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        env=ENVIRONMENT,
    )  # fmt: skip


def hashes(store):
    return file_hashes(store, without={"log"})


@pytest.mark.parametrize("name", [*COMMANDS])
def test_a_killed_command_ends_with_the_bytes_of_an_undisturbed_one(tmp_path, name):
    started = time.monotonic()
    assert start(COMMANDS[name], tmp_path / "calm").wait() == 0
    duration = time.monotonic() - started
    undisturbed = hashes(tmp_path / "calm")
    moments = random.Random(0)
    store, killed, too_fast = tmp_path / "killed0", 0, 0
    while killed < KILLS:
        started = time.monotonic()
        process = start(COMMANDS[name], store)
        try:
            process.wait(timeout=moments.uniform(0.2, 0.95) * duration)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
            continue
        # It was faster than the signal: what several kills left is whole, and the next ones hit a new store.
        assert hashes(store) == undisturbed
        too_fast += 1
        duration = min(duration, time.monotonic() - started)
        store = tmp_path / f"killed{too_fast}"
    assert start(COMMANDS[name], store).wait() == 0
    assert hashes(store) == undisturbed


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    process = subprocess.Popen(
        [
            *GAPFLOOR,
            "floor",
            "starpilot",
            "bossfight",
            "--episodes",
            "1600",
            "--workers",
            "2",
            "--store",
            str(tmp_path),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while len(children(process.pid)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = children(process.pid)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 30
    while any(os.path.exists(f"/proc/{worker}") for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert workers
    assert not any(os.path.exists(f"/proc/{worker}") for worker in workers)


def children(process):
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process)], capture_output=True, text=True, check=False
    )
    return [int(line) for line in listed.stdout.split()]


@pytest.mark.parametrize("name", [*COMMANDS])
def test_three_processes_on_one_store_do_not_harm_each_other(tmp_path, name):
    assert start(COMMANDS[name], tmp_path / "alone").wait() == 0
    together = [start(COMMANDS[name], tmp_path / "shared") for _ in range(3)]
    assert [process.wait() for process in together] == [0, 0, 0]
    assert hashes(tmp_path / "shared") == hashes(tmp_path / "alone")
