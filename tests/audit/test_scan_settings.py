"""Settings that decide whether anything is claimed: library rollouts and budgets."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from gitrepos import write_files
from switched_learning import SWITCHED

from gapfloor.audit.scan import scan

pytestmark = pytest.mark.fast

COLLECTED = """
import torch
from torchrl.collectors import SyncDataCollector
from torchrl.envs import GymEnv, StepCounter, TransformedEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type


def make_env(name='CartPole-v1'):
    return TransformedEnv(GymEnv(name), StepCounter())


def main():
    policy = load()
    optimizer = torch.optim.Adam(policy.parameters())
    collector = SyncDataCollector(make_env, policy, frames_per_batch=100)
    other = make_env({name})
    for data in collector:
        loss = compute(policy, data)
        loss.backward()
        optimizer.step()
        with torch.no_grad(){around}:
            print(other.rollout(1000, policy))


if __name__ == '__main__':
    main()
"""
_DETERMINISTIC = ", set_exploration_type(ExplorationType.DETERMINISTIC)"


@pytest.mark.parametrize("around", ["", _DETERMINISTIC])
def test_a_rollout_of_torchrl_keeps_the_absence_of_an_evaluation_open(tmp_path: Path, around: str):
    files = {"train.py": COLLECTED.format(name="", around=around)}
    result = scan(str(write_files(tmp_path, files)))
    assert (result.verdict.rule, set(result.verdict.levels.values())) == ("unresolved", {"open"})
    assert [mark.line for mark in result.hints]


def test_a_budget_that_ran_out_names_what_was_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(importlib.import_module("gapfloor.audit.interpreter.evaluator"), "MOST_STEPS", 1)
    case = next(one for one in SWITCHED if one.name == "one function trains and tests, told by a flag")
    (warning,) = scan(str(write_files(tmp_path, case.files))).warnings
    assert "Not followed to the end: main.py." in warning
    assert '--entry "python main.py"' in warning


def test_a_scan_without_paths_says_what_to_do(tmp_path: Path):
    result = scan(str(write_files(tmp_path, {"main.py": "print('nothing is played here')\n"})))
    assert "No evaluation path was found." in repr(result)
