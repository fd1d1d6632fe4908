"""An exception of the user's policy is the user's to correct, also in a worker process; a lost worker is explained."""

import importlib
import pickle
import subprocess
import warnings

import pytest
from loky.process_executor import _ExceptionWithTraceback

from command_line import GAPFLOOR
from gapfloor.cli.error_boundary import run_guarded
from gapfloor.errors import GapfloorError, UsersCodeError
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.workers import sendable
from gapfloor.policies.notes import PolicyWarning
from gapfloor.users_code import full_traceback, users_frame

POLICY = """
import os, signal, time
import numpy as np


class OddError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


class Policy:
    fingerprint = "late"

    def logits(self, observations):
        # The main process tries the policy and plays too: it is slow, so that a worker plays before everything is done.
        if "popen_loky" in open("/proc/self/cmdline").read():
            FAIL
        time.sleep(0.1)
        return np.zeros((len(observations), 15), dtype=np.float32)


def make():
    return Policy()
"""


def evaluate(folder, fail, *more):
    (folder / "late_policy.py").write_text(POLICY.replace("FAIL", fail))
    command = [
        *GAPFLOOR, *more, "evaluate", "late_policy:make", "--game", "starpilot", "--rules", "sampled", "--episodes",
        "8", "--slots", "4", "--draws", "0,1", "--workers", "2", "--store", str(folder / "store"),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_an_exception_in_a_worker_exits_2_with_the_users_line(tmp_path):
    done = evaluate(tmp_path, "raise OddError(1, 2)")
    assert done.returncode == 2
    assert "failed at step 0: OddError: 1 and 2" in done.stderr
    assert f"{tmp_path / 'late_policy.py'}, line 17, in logits: raise OddError(1, 2)" in done.stderr
    assert "Traceback" not in done.stderr
    assert "This is a bug" not in done.stderr


def test_the_whole_traceback_of_the_worker_is_shown_when_asked_for(tmp_path):
    done = evaluate(tmp_path, "return 1 / 0", "--traceback")
    assert done.returncode == 2
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "return 1 / 0" in done.stderr
    assert done.stderr.count("Traceback") >= 2


def test_a_worker_that_is_killed_is_explained_in_a_sentence(tmp_path):
    done = evaluate(tmp_path, "os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("gapfloor: A worker process exited unexpectedly")
    assert "Traceback" not in done.stderr


@pytest.mark.fast
def test_what_is_said_about_a_policy_is_one_line(capsys):
    def command():
        warnings.warn("mine: observations are flattened.", PolicyWarning, stacklevel=1)

    assert run_guarded(command) == 0
    assert capsys.readouterr().err == "gapfloor: mine: observations are flattened.\n"


@pytest.mark.fast
def test_other_warnings_are_left_as_they_are():
    with pytest.warns(UserWarning, match="strange"):
        run_guarded(lambda: warnings.warn("strange", UserWarning, stacklevel=1))


def sent(error):
    """The error as the process that waits receives it."""
    try:
        raise sendable(error) from error
    except Exception as raised:
        return pickle.loads(pickle.dumps(_ExceptionWithTraceback(raised)))


@pytest.mark.fast
def test_an_error_that_travels_keeps_the_users_line_and_its_traceback(tmp_path, monkeypatch):
    (tmp_path / "users_world.py").write_text("def step():\n    raise KeyError('lava')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KeyError) as caught:
        importlib.import_module("users_world").step()
    error = sent(caught.value)
    assert isinstance(error, UsersCodeError)
    assert str(error) == "Your own code raised KeyError: 'lava'"
    assert users_frame(error).line == "raise KeyError('lava')"
    assert "users_world.py" in full_traceback(error)


@pytest.mark.fast
def test_a_fault_of_ours_in_a_worker_stays_a_fault_of_ours():
    with pytest.raises(AttributeError) as caught:
        LevelSet.parse(None)
    error = sent(caught.value)
    assert not isinstance(error, GapfloorError)
    assert "schedule.py" in full_traceback(error)
