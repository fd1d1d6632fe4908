"""What a killed process leaves in memory is removed by the next start, and nothing else is."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gapfloor.leftovers import MEMORY, own_name, remove_leftovers
from gapfloor.machine import this_place

pytestmark = pytest.mark.skipif(not MEMORY.is_dir(), reason="there is no memory folder here")

HOLD = """
import sys, time
from pathlib import Path
from gapfloor.engines import picture_files
from gapfloor.engines.worker_pool import shared_pool

shared_pool(1).submit(int).result()
picture_files.only_look_at(())
import procgen
with picture_files.picture_folder(Path(procgen.__file__).parent / "data" / "assets"):
    print("ready", flush=True)
    time.sleep(600)
"""


def left_by(process):
    return sorted(path.name for path in MEMORY.iterdir() if f"-{this_place()}-{process}-" in path.name)


def test_pictures_and_semaphores_of_a_killed_process_are_gone_after_the_next_start():
    killed = subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, start_new_session=True)
    assert killed.stdout.readline() == b"ready\n"
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    kinds = {name.partition("gapfloor-")[2].partition("-")[0] for name in left_by(killed.pid)}
    assert kinds == {"pictures", "lock"}
    start = "from gapfloor.engines.worker_pool import private_pool; private_pool(1).shutdown()"
    subprocess.run([sys.executable, "-c", start], check=True)
    assert left_by(killed.pid) == []


def test_what_a_running_process_or_another_container_has_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("gapfloor.leftovers.MEMORY", tmp_path)
    mine, theirs = tmp_path / f"{own_name('pictures')}x", tmp_path / "gapfloor-pictures-0123456789ab-1-x"
    strangers = tmp_path / "sem.loky-999999-x"
    dead = tmp_path / f"sem.gapfloor-lock-{this_place()}-{2**22 + 1}-x"
    for path in (mine, theirs, strangers, dead):
        path.write_bytes(b"")
    remove_leftovers.__wrapped__()
    assert sorted(tmp_path.iterdir()) == sorted([mine, theirs, strangers])


def test_a_process_that_ends_by_itself_leaves_nothing():
    script = (
        "from gapfloor.engines.worker_pool import shared_pool; print(shared_pool(1).submit(int).result())"
    )
    done = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.DEVNULL)
    done.wait()
    for _ in range(50):  # the tracker of semaphores ends a moment later
        if not left_by(done.pid):
            break
        time.sleep(0.1)
    assert left_by(done.pid) == []
    assert Path("/dev/shm").is_dir()
