"""Settings that decide who acts and whether anything is learned: gin, RLlib's configurations, TorchRL, flags."""

from __future__ import annotations

from dataclasses import astuple
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


@pytest.mark.parametrize(
    ("name", "around", "truth"),
    [
        ("", _DETERMINISTIC, (False, "argmax", "explicit-call-site", False)),
        ("'Acrobot-v1'", _DETERMINISTIC, (None, "argmax", "explicit-call-site", False)),
        ("", "", (False, "unresolved", "unresolved", False)),
    ],
)
def test_a_collector_of_torchrl_trains_on_the_environment_that_it_is_given(
    tmp_path: Path, name: str, around: str, truth: tuple[object, ...]
):
    files = {"train.py": COLLECTED.format(name=name, around=around)}
    assert astuple(scan(str(write_files(tmp_path, files))).verdict) == truth


TORCHRL_SCRIPT = """
from torchrl.envs import GymEnv
from torchrl.envs.utils import ExplorationType, set_exploration_type


def evaluate(policy):
    test_env = GymEnv('CartPole-v1')
    with set_exploration_type(ExplorationType.{kind}):
        return test_env.rollout(1000, policy=policy)


if __name__ == '__main__':
    print(evaluate(load()))
"""
PLAIN_SCRIPT = """
import gym
from torch.distributions import Categorical


def evaluate(net):
    env = gym.make('CartPole-v1')
    obs = env.reset()
    for _ in range(1000):
        obs, reward, done, info = env.step(Categorical(logits=net(obs)).sample())


if __name__ == '__main__':
    print(evaluate(load()))
"""
BUILDER = """
import argparse
from ray.rllib.algorithms.ppo import PPOConfig


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--explore', action='store_true')
    args = parser.parse_args()
    config = (
        PPOConfig()
        .environment('CartPole-v1', env_config={{'num_levels': 200}})
        .evaluation(evaluation_interval=5, evaluation_config={evaluation})
    )
    config.build().train()


if __name__ == '__main__':
    main()
"""
DICTIONARY = """
from ray import tune
SETTINGS = {{'env': 'CartPole-v1', 'evaluation_interval': 3, 'evaluation_config': {evaluation}}}
tune.run('PPO', config=SETTINGS)
"""


@pytest.mark.parametrize(
    ("text", "evaluation", "truth"),
    [
        (BUILDER, "{'explore': False}", (False, "argmax", "explicit-call-site", False)),
        (BUILDER, "PPOConfig.overrides(explore=False)", (False, "argmax", "explicit-call-site", False)),
        (BUILDER, "{'env_config': {'num_levels': 0}}", (True, "sampled", "default-argument", False)),
        (BUILDER, "{'explore': args.explore}", (False, "argmax", "config-option", False)),
        (BUILDER, "None", (False, "sampled", "default-argument", False)),
        (BUILDER, "from_a_file()", (None, "unresolved", "unresolved", False)),
        (DICTIONARY, "{'explore': False}", (False, "argmax", "explicit-call-site", False)),
        (DICTIONARY, "{}", (False, "sampled", "default-argument", False)),
        (DICTIONARY, "somewhere_else", (None, "unresolved", "unresolved", False)),
    ],
)
def test_an_evaluation_of_rllib_is_read_from_python_code(
    tmp_path: Path, text: str, evaluation: str, truth: tuple[object, ...]
):
    files = {"train.py": text.format(evaluation=evaluation)}
    assert astuple(scan(str(write_files(tmp_path, files))).verdict) == truth


def test_a_command_names_the_gin_file_and_the_bindings(tmp_path: Path):
    case = next(one for one in SWITCHED if one.name == "gin files that choose different agents")
    folder = str(write_files(tmp_path, case.files))
    assert scan(folder).verdict.rule == "unresolved"
    assert scan(folder, entry="python run.py a.gin").verdict.rule == "epsilon-greedy"
    bound = "python run.py --gin_bindings=\"make_agent.kind = 'draws'\""
    assert scan(folder, entry=bound).verdict.rule == "sampled"


def test_what_differs_between_gin_files_is_named(tmp_path: Path):
    case = next(one for one in SWITCHED if one.name == "gin files that choose different agents")
    document = scan(str(write_files(tmp_path, case.files))).to_dict()
    reasons = [reason for path in document["paths"] for reason in path["reasons"]]
    assert any("'make_agent.kind' differs between a.gin, b.gin" in reason for reason in reasons)


def test_the_flag_that_switches_learning_off_is_named(tmp_path: Path):
    case = next(one for one in SWITCHED if one.name == "the one gin file chooses the agent")
    text = repr(scan(str(write_files(tmp_path, case.files))))
    assert "the loop that trains, with learning switched off (agents.py:" in text
    assert "self.agent.eval_mode is set to True" in text


def test_a_budget_that_ran_out_names_what_was_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("gapfloor.audit.judgement.explore.MOST_FRAMES", 1)
    case = next(one for one in SWITCHED if one.name == "one function trains and tests, told by a flag")
    (warning,) = scan(str(write_files(tmp_path, case.files))).warnings
    assert "Not followed to the end: main.py." in warning
    assert '--entry "python main.py"' in warning


def test_every_question_mark_of_the_verdict_is_explained_before_the_table(tmp_path: Path):
    case = next(one for one in SWITCHED if one.name == "gin files that choose different agents")
    first = repr(scan(str(write_files(tmp_path, case.files)))).split("| script |")[0]
    assert "What is open, and what would resolve it:" in first
    assert "pass --entry with the command that was used" in first


def test_scripts_that_disagree_are_named_with_their_answers(tmp_path: Path):
    text = TORCHRL_SCRIPT.replace("{kind}", "DETERMINISTIC")
    plain = PLAIN_SCRIPT
    first = repr(scan(str(write_files(tmp_path, {"eval_a.py": text, "eval_b.py": plain})))).split(
        "| script |"
    )[0]
    assert "rule differs between paths (argmax in eval_a.py, sampled in eval_b.py)" in first


def test_a_scan_without_paths_says_what_to_do(tmp_path: Path):
    result = scan(str(write_files(tmp_path, {"main.py": "print('nothing is played here')\n"})))
    assert "pass --entry with the evaluation script" in repr(result)
