"""Held out, in-loop, workers and dependencies: one small repository per pattern, with near misses."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepos import write_files
from smallrepos import MODEL, evaluate, frozen, in_loop, train

from gapfloor.audit.judgement.verdict import AuditVerdict
from gapfloor.audit.scan import ScanResult, scan

pytestmark = pytest.mark.fast


def scanned(folder: Path, files: dict[str, str]) -> ScanResult:
    return scan(str(write_files(folder, files)))


def test_a_second_environment_stepped_during_training_is_in_loop(tmp_path: Path):
    result = scanned(tmp_path, in_loop())
    assert result.verdict == AuditVerdict(True, "sampled", "training-rollout", True)
    assert result.paths[0].levels == "full distribution"


def test_an_evaluation_called_from_the_training_loop_is_not_in_loop(tmp_path: Path):
    assert scanned(tmp_path, frozen("action, _ = net.act(obs)")).verdict.in_loop is False


def test_an_environment_made_once_and_reset_for_each_evaluation_is_not_in_loop(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    body = files["evaluation.py"]
    body = body.replace("def evaluate(args, net):", "def evaluate(envs, net):")
    start = body.index("    envs = ProcgenEnv")
    files["evaluation.py"] = body[:start] + body[body.index("\n", start) + 1 :]
    files["train.py"] = train(
        imports="from evaluation import evaluate",
        setup="test_envs = ProcgenEnv(num_envs=1, env_name='heist', num_levels=0)",
        evaluation="print(evaluate(test_envs, net))",
    )
    assert scanned(tmp_path, files).verdict == AuditVerdict(True, "sampled", "default-argument", False)


def test_training_alone_has_no_heldout_evaluation(tmp_path: Path):
    result = scanned(tmp_path, {"net.py": MODEL, "train.py": train()})
    assert result.verdict == AuditVerdict(False, "sampled", "n/a", None)
    assert (result.paths, [item.levels for item in result.training]) == (
        (),
        ["option num_levels (default 200) from 0"],
    )


def test_an_absence_is_not_claimed_when_a_file_could_not_be_read(tmp_path: Path):
    files = {"net.py": MODEL, "train.py": train(), "old.py": "print 'evaluating'\nenv.step(a)\n"}
    result = scanned(tmp_path, files)
    assert result.verdict.evaluates_heldout is None
    assert [(item.file, item.reason) for item in result.unread] == [("old.py", "Python 2 syntax")]


def test_the_full_distribution_is_not_held_out_when_training_uses_it_too(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    files["train.py"] = files["train.py"].replace("num_levels=args.num_levels, start_level=0", "num_levels=0")
    result = scanned(tmp_path, files)
    assert result.verdict.evaluates_heldout is False
    assert result.verdict.rule == "sampled"


def test_evaluating_on_the_training_levels_is_not_held_out_whatever_it_is_called(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)", levels="args.num_levels")
    files = {name: text.replace("envs", "heldout_test_envs") for name, text in files.items()}
    assert scanned(tmp_path, files).verdict.evaluates_heldout is False


def test_two_ranges_that_differ_are_held_out(tmp_path: Path):
    files = {
        "net.py": MODEL,
        "evaluation.py": evaluate("action, _ = net.act(obs)", levels="100", start="1000"),
        "train.py": train(
            imports="from evaluation import evaluate", evaluation="print(evaluate(args, net))"
        ).replace("num_levels=args.num_levels", "num_levels=200"),
    }
    result = scanned(tmp_path, files)
    assert result.verdict.evaluates_heldout is True
    assert result.paths[0].levels == "100 levels from 1000"


@pytest.mark.parametrize(
    ("levels", "start", "heldout"),
    [
        ("200", "0", False),  # the training levels themselves, which are an option with default 200
        ("100", "50", False),  # some of them
        ("100", "1000", True),  # none of them
        ("100", "150", None),  # half of them
        ("0", "0", True),  # every level there is
        ("args.num_levels", "0", False),
        ("args.num_levels", "args.num_levels", True),
    ],
)
def test_level_sets_are_compared_as_sets(tmp_path: Path, levels: str, start: str, heldout: bool | None):
    files = frozen("action, _ = net.act(obs)")
    files["evaluation.py"] = evaluate("action, _ = net.act(obs)", levels=levels, start=start)
    assert scanned(tmp_path, files).verdict.evaluates_heldout is heldout


def test_a_range_is_not_held_out_from_the_full_distribution(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)", levels="100")
    files["train.py"] = files["train.py"].replace("num_levels=args.num_levels", "num_levels=0")
    assert scanned(tmp_path, files).verdict.evaluates_heldout is False


FACTORY = """
from procgen import ProcgenEnv
from gym.wrappers import RecordEpisodeStatistics


def make_envs(name, **kwargs):
    num_levels = kwargs.get('num_levels', 1)
    envs = ProcgenEnv(num_envs=8, env_name=name, num_levels=num_levels, start_level=kwargs.get('start_level', 0))
    return RecordEpisodeStatistics(envs), None
"""


def test_constants_are_followed_through_a_factory_of_keywords(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    files["factory.py"] = FACTORY
    text = files["evaluation.py"]
    start = text.index("    envs = ProcgenEnv")
    files["evaluation.py"] = (
        "from factory import make_envs\n"
        + text[:start]
        + "    envs, _ = make_envs('heist', num_levels=0)\n"
        + text[text.index("\n", start) + 1 :]
    )
    result = scanned(tmp_path, files)
    assert result.verdict == AuditVerdict(True, "sampled", "default-argument", False)


WORKER = """
import argparse
from baselines.ppo2 import ppo2
from procgen import ProcgenEnv
from mpi4py import MPI
{extra}

def train(levels, plays_tests=False):
    weight = 0 if plays_tests else 1
    levels = 0 if plays_tests else levels
    venv = ProcgenEnv(num_envs=64, env_name='heist', num_levels=levels, start_level=0)
    {replace}
    ppo2.learn(env=venv, network=None, total_timesteps=100, mpi_rank_weight=weight)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--num_levels', type=int, default=0)
    parser.add_argument('--every', type=int, default=0)
    args = parser.parse_args()
    plays_tests = False
    if args.every > 0:
        plays_tests = MPI.COMM_WORLD.Get_rank() % args.every == 0
    train(args.num_levels, plays_tests={worker})
"""


def test_a_test_worker_of_a_dependency_is_an_in_loop_test(tmp_path: Path):
    files = {"train.py": WORKER.format(extra="", replace="", worker="plays_tests")}
    result = scanned(tmp_path, files)
    assert result.verdict == AuditVerdict(True, "sampled", "training-rollout", True)


def test_a_worker_switch_that_does_not_come_from_the_rank_is_not_a_test_worker(tmp_path: Path):
    files = {"train.py": WORKER.format(extra="", replace="", worker="False")}
    assert scanned(tmp_path, files).verdict.evaluates_heldout is False


def test_a_replaced_function_is_followed_instead_of_the_dependency(tmp_path: Path):
    files = {
        "train.py": WORKER.format(
            extra="from mine import learn", replace="ppo2.learn = learn", worker="plays_tests"
        ),
        "mine.py": """
import numpy as np


def learn(*, env, network, total_timesteps, mpi_rank_weight=1):
    obs = env.reset()
    for update in range(total_timesteps):
        for step in range(256):
            actions = np.argmax(network(obs), axis=-1)
            obs, rewards, dones, infos = env.step(actions)
        optimizer.minimize(network)
""",
    }
    result = scanned(tmp_path, files)
    assert result.verdict == AuditVerdict(True, "argmax", "training-rollout", True)
    assert any(mark.what.endswith("is replaced here") for path in result.paths for mark in path.evidence)
    assert ("mine.py", 9) in {(mark.file, mark.line) for path in result.paths for mark in path.evidence}


RUNNER = """
from baselines.common.runners import AbstractEnvRunner


class Runner(AbstractEnvRunner):
    def __init__(self, *, env, model, nsteps):
        super().__init__(env=env, model=model, nsteps=nsteps)

    def run(self):
        infos = []
        for _ in range(self.nsteps):
            actions, values = self.model.draw(self.obs)
            self.obs, rewards, self.dones, info = self.env.step(actions)
            infos.extend(info)
        return rewards, infos


def learn(env, model, eval_env=None):
    runner = Runner(env=env, model=model, nsteps=256)
    if eval_env is not None:
        eval_runner = Runner(env=eval_env, model=model, nsteps=256)
    for update in range(1000):
        rewards, infos = runner.run()
        if eval_env is not None:
            _, eval_infos = eval_runner.run()
        model.train(rewards, 0.1)
"""

RUNNER_MAIN = """
from procgen import ProcgenEnv
from net import Net
from runner import learn

if __name__ == '__main__':
    env = ProcgenEnv(num_envs=64, env_name='heist', num_levels=200)
    other = ProcgenEnv(num_envs=64, env_name='heist', num_levels=0)
    learn(env, Net(64){test})
"""


def test_a_second_runner_of_one_class_is_kept_apart_from_the_first(tmp_path: Path):
    files = {"net.py": MODEL, "runner.py": RUNNER, "main.py": RUNNER_MAIN.format(test=", eval_env=other")}
    assert scanned(tmp_path, files).verdict == AuditVerdict(True, "sampled", "training-rollout", True)


def test_a_second_runner_that_is_never_made_is_not_a_test(tmp_path: Path):
    files = {"net.py": MODEL, "runner.py": RUNNER, "main.py": RUNNER_MAIN.format(test="")}
    result = scanned(tmp_path, files)
    # The roles are not proved, so an absence is not claimed either.
    assert (result.verdict.evaluates_heldout, result.paths) == (None, ())


SB3 = """
import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

env = gym.make('procgen-heist-v0', num_levels=0)
model = PPO.load('model.zip')
{tail}
"""


@pytest.mark.parametrize(
    ("tail", "rule", "provenance"),
    [
        ("evaluate_policy(model, env)", "argmax", "default-argument"),
        ("evaluate_policy(model, env, deterministic=False)", "sampled", "explicit-call-site"),
        ("evaluate_policy(model, env, 10, True)", "argmax", "explicit-call-site"),
        (
            "obs = env.reset()\naction, _ = model.predict(obs)\nenv.step(action)",
            "sampled",
            "default-argument",
        ),
        (
            "obs = env.reset()\naction, _ = model.predict(obs, deterministic=True)\nenv.step(action)",
            "argmax",
            "explicit-call-site",
        ),
        ("evaluate_policy(model, env, **settings)", "unresolved", "unresolved"),
    ],
)
def test_facts_about_a_dependency_give_its_defaults(tmp_path: Path, tail: str, rule: str, provenance: str):
    result = scanned(tmp_path, {"run.py": SB3.format(tail=tail)})
    assert {(path.rule, path.provenance) for path in result.paths} == {(rule, provenance)}
    assert result.verdict.evaluates_heldout is None


def test_a_value_based_agent_does_not_decide_the_verdict_next_to_a_policy_gradient_one(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    files["qnet.py"] = """
from torch import nn

class QNet(nn.Module):
    def best(self, obs):
        return self.body(obs).argmax(1)
"""
    files["train_dqn.py"] = """
import torch
from procgen import ProcgenEnv
from qnet import QNet


def test(q_network):
    envs = ProcgenEnv(num_envs=1, env_name='heist', num_levels=0)
    obs = envs.reset()
    for _ in range(1000):
        obs, _, done, infos = envs.step(q_network.best(obs))


if __name__ == '__main__':
    envs = ProcgenEnv(num_envs=64, env_name='heist', num_levels=200)
    q_network = QNet()
    optimizer = torch.optim.Adam(q_network.parameters())
    obs = envs.reset()
    for t in range(1000):
        obs, reward, done, info = envs.step(q_network.best(obs))
        td_error = replay_buffer.loss(q_network)
        td_error.backward()
        optimizer.step()
        test(q_network)
"""
    result = scanned(tmp_path, files)
    assert result.verdict == AuditVerdict(True, "sampled", "default-argument", False)
    assert {(path.script, path.rule, path.agent) for path in result.paths} == {
        ("train.py", "sampled", "policy-gradient"),
        ("train_dqn.py", "argmax", "value-based"),
    }


def test_an_environment_of_the_repository_reads_its_levels_from_a_setting(tmp_path: Path):
    config = """
from mpi4py import MPI

class Settings:
    def __init__(self):
        keys = []
        keys.append(('nlev', 'n_levels', int, 500))
        keys.append(('test', 'test'))
        for key in keys:
            setattr(self, key[1].upper(), None)

    def is_tester(self):
        if self.TEST:
            return MPI.COMM_WORLD.Get_rank() % 4 == 1
        return False

    def finish(self):
        if self.is_tester():
            self.N_LEVELS = 0

Config = Settings()
"""
    world = """
import ctypes
from baselines.common.vec_env import VecEnv
from config import Config

class World(VecEnv):
    def __init__(self, count):
        ctypes.cdll.start(Config.N_LEVELS)

    def reset(self):
        return None

    def step_wait(self):
        return None
"""
    main = """
from net import Net
from runner import learn
from world import World

if __name__ == '__main__':
    learn(World(32), Net(64))
"""
    files = {"net.py": MODEL, "runner.py": RUNNER, "config.py": config, "world.py": world, "main.py": main}
    assert scanned(tmp_path, files).verdict == AuditVerdict(True, "sampled", "training-rollout", True)


def test_a_worker_process_that_passes_actions_on_is_not_an_evaluation(tmp_path: Path):
    files = {
        "net.py": MODEL,
        "train.py": train(),
        "pool.py": (
            "def worker(remote, env):\n    while True:\n        cmd, data = remote.recv()\n        env.step(data)\n"
        ),
    }
    assert scanned(tmp_path, files).verdict.evaluates_heldout is False


def test_no_absence_is_claimed_when_a_rollout_may_be_an_evaluation(tmp_path: Path):
    files = {
        "net.py": MODEL,
        "play.py": """
def play(envs, net):
    for _ in range(1000):
        if net.wants_reset:
            obs = envs.reset()
        action, _, _ = net.draw(obs)
        obs, reward, done, info = envs.step(action)
""",
        "train.py": train(
            imports="from play import play",
            setup="other = ProcgenEnv(num_envs=1, env_name='heist', num_levels=args.num_levels)",
            evaluation="play(other, net)",
        ),
    }
    assert "proved" not in scanned(tmp_path, files).verdict.levels.values()


def test_no_absence_is_claimed_when_a_block_says_evaluation(tmp_path: Path):
    files = {
        "net.py": MODEL,
        "train.py": train(
            rollout="with net.eval_mode():\n    obs, reward, done, info = envs.step(net.draw(obs)[0])",
        ),
    }
    assert scanned(tmp_path, files).verdict.evaluates_heldout is None


def test_evaluations_pooled_over_updates_are_not_called_a_fixed_checkpoint(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    files["train.py"] = train(
        imports="import numpy as np\nfrom evaluation import evaluate",
        setup="recent = []",
        evaluation="recent.extend(evaluate(args, net))\nprint(np.mean(recent[-100:]))",
    )
    assert scanned(tmp_path, files).verdict.in_loop is None


def test_a_curve_of_evaluations_is_still_a_fixed_checkpoint_each(tmp_path: Path):
    files = frozen("action, _ = net.act(obs)")
    files["train.py"] = train(
        imports="from evaluation import evaluate",
        setup="curve = []",
        evaluation="curve.append(evaluate(args, net))",
    )
    assert scanned(tmp_path, files).verdict.in_loop is False
