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

from gapfloor.process_identity import start_time, this_place
from gapfloor.study.journal import COLD, TaskJournal, WorkNote

pytestmark = pytest.mark.fast
TASK = "floor starpilot uniform"

WORKER = """
import sys, time
from pathlib import Path
from gapfloor.study.journal import TaskJournal
with TaskJournal(Path(sys.argv[1]), study="mine 1", coordinator=sys.argv[2]).{what}:
    print("ready", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def process(root, what, coordinator=""):
    """Another process that has written its note and does not end by itself."""
    command = [sys.executable, "-c", WORKER.format(what=what), str(root), coordinator]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout.readline() == "ready\n"
        try:
            yield started
        finally:
            started.kill()


def working(root, coordinator=""):
    return process(root, f'working("{TASK}")', coordinator)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_task_whose_process_was_killed_does_not_run(tmp_path, number):
    journal = TaskJournal(tmp_path, study="mine 1")
    with working(tmp_path) as started:
        assert journal.running() == {TASK}
        started.send_signal(number)
        started.wait()
        assert journal.running() == set()
    assert list(tmp_path.rglob("*.running"))  # its note is still there, and recent


def test_tasks_of_another_study_on_the_same_store_are_not_shown(tmp_path):
    with TaskJournal(tmp_path, study="other 2").working(TASK):
        assert TaskJournal(tmp_path, study="other 2").running() == {TASK}
        assert TaskJournal(tmp_path, study="mine 1").running() == set()
    TaskJournal(tmp_path, study="other 2").fail(TASK, "bad", "details")
    assert TaskJournal(tmp_path, study="other 2").failures()[TASK].log.read_text() == "details\n"
    assert TaskJournal(tmp_path, study="mine 1").failures() == {}


def test_a_task_for_which_nobody_waits_any_more_does_not_run(tmp_path):
    journal = TaskJournal(tmp_path, study="mine 1")
    with process(tmp_path, "coordinating()") as coordinator:
        (note,) = (tmp_path / "log" / "runs").iterdir()
        with TaskJournal(tmp_path, study="mine 1", coordinator=note.name).working(TASK):
            assert journal.running() == {TASK}
            coordinator.kill()
            coordinator.wait()
            assert journal.running() == set()
            assert journal.coordinators() == []


def test_whoever_gives_out_tasks_is_named_with_process_host_and_time(tmp_path):
    before = time.time()
    with TaskJournal(tmp_path, study="mine 1").coordinating():
        (note,) = TaskJournal(tmp_path).coordinators()
    assert note.process == os.getpid()
    assert before <= note.since <= time.time()
    assert f"process {os.getpid()} on {os.uname().nodename} since 20" in note.words
    assert TaskJournal(tmp_path).coordinators() == []


def leave_note(root, **changes):
    note = WorkNote(
        study="mine 1", work=TASK, host="there", place=this_place(), process=os.getpid(),
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
    journal = TaskJournal(tmp_path, study="mine 1")
    assert journal.running() == {TASK}
    os.utime(path, (time.time() - COLD - 1,) * 2)
    assert journal.running() == set()


def test_a_note_that_makes_no_sense_is_passed_over(tmp_path):
    path = leave_note(tmp_path)
    for text in ("", "[]", '{"task": "x"}', "[" * 5000):
        path.write_text(text)
        assert TaskJournal(tmp_path, study="mine 1").running() == set()
