"""kill -9 at any moment loses at most what is under way; the rest has the bytes of an undisturbed run."""

import os
import random
import signal
import subprocess
import time

from command_line import GAPFLOOR
from folders import file_hashes

COMMAND = [
    *GAPFLOOR, "floor", "starpilot", "bossfight", "--episodes", "32", "--draws", "0,1",
    "--workers", "2", "--store",
]  # fmt: skip


def run(store):
    subprocess.run([*COMMAND, str(store)], check=True, capture_output=True)


def test_a_killed_floor_ends_with_the_bytes_of_an_undisturbed_one(tmp_path):
    started = time.monotonic()
    run(tmp_path / "calm")
    duration = time.monotonic() - started
    moments = random.Random(0)
    for _ in range(3):
        process = subprocess.Popen(
            [*COMMAND, str(tmp_path / "killed")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        time.sleep(moments.uniform(0.3, 0.9) * duration)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    run(tmp_path / "killed")
    assert file_hashes(tmp_path / "killed", without={"log"}) == file_hashes(
        tmp_path / "calm", without={"log"}
    )


def test_workers_do_not_outlive_a_killed_parent(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, str(tmp_path), "--episodes", "1600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
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


def test_two_processes_on_one_store_do_not_harm_each_other(tmp_path):
    run(tmp_path / "alone")
    both = [
        subprocess.Popen(
            [*COMMAND, str(tmp_path / "shared")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    assert [process.wait() for process in both] == [0, 0]
    assert file_hashes(tmp_path / "shared", without={"log"}) == file_hashes(
        tmp_path / "alone", without={"log"}
    )
