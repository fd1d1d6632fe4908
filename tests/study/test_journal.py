"""Who counts as working on a store: living processes, and processes elsewhere that show signs of life."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from gapfloor.machine import start_time, this_place
from gapfloor.study import journal
from gapfloor.study.journal import COLD, TaskJournal, WorkNote

pytestmark = pytest.mark.fast
TASK = "floor starpilot uniform"

WORKER = """
import sys, time
from pathlib import Path
from gapfloor.study.journal import TaskJournal
with TaskJournal(Path(sys.argv[1]), study="mine 1").working(sys.argv[2]):
    print("ready", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def working(root):
    """Another process that has written its note and does not end by itself."""
    command = [sys.executable, "-c", WORKER, str(root), TASK]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout.readline() == "ready\n"
        try:
            yield started
        finally:
            started.kill()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_task_whose_process_was_killed_does_not_run(tmp_path, number):
    mine = TaskJournal(tmp_path, study="mine 1")
    with working(tmp_path) as started:
        assert mine.running() == {TASK}
        started.send_signal(number)
        started.wait()
        assert mine.running() == set()
    assert list(tmp_path.rglob("*.running"))  # its note is still there, and recent


def test_tasks_of_another_study_on_the_same_store_are_not_shown(tmp_path):
    with TaskJournal(tmp_path, study="other 2").working(TASK):
        assert TaskJournal(tmp_path, study="other 2").running() == {TASK}
        assert TaskJournal(tmp_path, study="mine 1").running() == set()
    TaskJournal(tmp_path, study="other 2").fail(TASK, "bad", "details")
    assert TaskJournal(tmp_path, study="other 2").failures()[TASK][1].read_text() == "details\n"
    assert TaskJournal(tmp_path, study="mine 1").failures() == {}


def test_whoever_works_is_named_with_process_host_and_time(tmp_path):
    before = time.time()
    with TaskJournal(tmp_path, study="mine 1").working(TASK):
        (note,) = TaskJournal(tmp_path).workers()
    assert note.process == os.getpid()
    assert before <= note.since <= time.time()
    assert f"process {os.getpid()} on {os.uname().nodename} since 20" in note.words
    assert TaskJournal(tmp_path).workers() == []


def test_a_process_shows_that_it_is_alive_while_it_works(tmp_path, monkeypatch):
    monkeypatch.setattr(journal, "COLD", 0.5)
    with TaskJournal(tmp_path, study="mine 1").working(TASK):
        (note,) = tmp_path.rglob("*.running")
        os.utime(note, (1, 1))
        deadline = time.monotonic() + 20
        while note.stat().st_mtime < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert time.time() - note.stat().st_mtime < 20


def leave_note(root, **changes):
    note = WorkNote(
        study="mine 1", task=TASK, host="there", place=this_place(), process=os.getpid(),
        started=start_time(os.getpid()), since=time.time(),
    )  # fmt: skip
    path = root / "log" / "tasks" / "x.running"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(dataclasses.asdict(dataclasses.replace(note, **changes))))
    return path


def test_a_process_that_has_the_number_of_a_dead_one_is_not_taken_for_it(tmp_path):
    leave_note(tmp_path, started="1")
    assert TaskJournal(tmp_path, study="mine 1").running() == set()


def test_a_process_on_another_machine_runs_as_long_as_it_shows_signs_of_life(tmp_path):
    path = leave_note(tmp_path, place="elsewhere")
    mine = TaskJournal(tmp_path, study="mine 1")
    assert mine.running() == {TASK}
    os.utime(path, (time.time() - COLD - 1,) * 2)
    assert mine.running() == set()


def test_a_note_that_makes_no_sense_is_passed_over(tmp_path):
    path = leave_note(tmp_path)
    for text in ("", "[]", '{"task": "x"}', "[" * 5000):
        path.write_text(text)
        assert TaskJournal(tmp_path, study="mine 1").running() == set()
