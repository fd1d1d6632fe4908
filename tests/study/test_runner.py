import concurrent.futures
import threading

import pytest

from gapfloor.study.journal import TaskJournal
from gapfloor.study.runner import StudyOutcome, StudyProgress, do_tasks
from gapfloor.study.tasks import Task

pytestmark = pytest.mark.fast


class Step(Task):
    """A task that only an executor looks at."""

    kind = "step"

    def is_done(self, survey): ...

    def perform(self, workplace): ...


GRAPH = [
    Step(name="floor"),
    Step(name="train a"),
    Step(name="train b"),
    Step(name="evaluate a", needs=("train a",)),
    Step(name="evaluate b", needs=("train b",)),
    Step(name="analyse", needs=("floor", "evaluate a", "evaluate b")),
]


class WorkerGone(Exception): ...


class Scripted:
    """Ends each task as the script says, one ending an attempt, a moment after it began."""

    losses = (WorkerGone,)

    def __init__(self, script, capacity=2):
        self.capacity = capacity
        self.script = {name: list(endings) for name, endings in script.items()}
        self.running, self.begun = 0, []

    def begin(self, task):
        assert self.running < self.capacity
        self.running += 1
        self.begun.append(task.name)
        error = self.script.get(task.name, [""]).pop(0) if self.script.get(task.name) else ""
        future = concurrent.futures.Future()
        threading.Timer(0.01, self.end, (future, error, f"log of {task.name}")).start()
        return future

    def end(self, future, error, details):
        self.running -= 1
        if error == "lost":
            future.set_exception(WorkerGone(details))
        else:
            future.set_result((error, details))


class Deaf:
    def ended(self, task, error, *, again): ...


def run(tmp_path, script, done=()):
    executor = Scripted(script)
    todo = [task for task in GRAPH if task.name not in done]
    outcome = StudyOutcome(done=list(done))
    do_tasks(todo, outcome, executor=executor, progress=Deaf(), journal=TaskJournal(tmp_path))
    return outcome, executor


def test_everything_is_done_in_an_order_that_respects_needs(tmp_path):
    outcome, executor = run(tmp_path, {})
    assert sorted(executor.begun) == sorted(task.name for task in GRAPH)
    assert executor.begun[-1] == "analyse"
    assert not outcome.failed
    assert not outcome.blocked


def test_what_is_done_is_not_begun_again(tmp_path):
    _, executor = run(tmp_path, {}, done=("floor", "train a"))
    assert "floor" not in executor.begun
    assert "evaluate a" in executor.begun


def test_a_failed_task_is_tried_again(tmp_path):
    outcome, executor = run(tmp_path, {"train a": ["out of luck", ""]})
    assert executor.begun.count("train a") == 2
    assert not outcome.failed


def test_a_task_that_keeps_failing_is_reported_with_its_log_and_the_rest_continues(tmp_path):
    outcome, executor = run(tmp_path, {"train a": ["bad", "bad"]})
    assert outcome.failed == {"train a": "bad"}
    assert outcome.blocked == ["evaluate a", "analyse"]
    assert "evaluate b" in executor.begun
    error, log = TaskJournal(tmp_path).failures()["train a"]
    assert (error, log.read_text()) == ("bad", "log of train a\n")


def test_a_task_whose_worker_was_lost_is_rerun_more_patiently(tmp_path):
    outcome, executor = run(tmp_path, {"train a": ["lost", "lost", "lost", ""]})
    assert executor.begun.count("train a") == 4
    assert not outcome.failed


def test_an_error_of_a_task_does_not_control_the_terminal(capsys):
    StudyProgress({}, is_quiet=False).tell("failed: evaluate a: \x1b[2Jgone")
    assert "\x1b" not in capsys.readouterr().err
