"""What a dependency's flag means for this agent, and where its constructors hide the levels."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepos import write_files

from gapfloor.audit.scan import ScanResult, scan

pytestmark = pytest.mark.fast


def scanned(folder: Path, files: dict[str, str]) -> ScanResult:
    return scan(str(write_files(folder, files)))


PREDICT = """
import gymnasium as gym
{imports}

env = gym.make('procgen-heist-v0', num_levels=0)
model = {model}
obs = env.reset()
action, _ = model.predict(obs{flag})
env.step(action)
"""


@pytest.mark.parametrize(
    ("imports", "model", "flag", "rule"),
    [
        ("from stable_baselines3 import PPO", "PPO.load('m')", "", "sampled"),
        ("from stable_baselines3.ppo import PPO", "PPO('CnnPolicy', env)", "", "sampled"),
        ("import stable_baselines3 as sb3", "sb3.PPO.load('m')", "", "sampled"),
        ("from stable_baselines3 import DQN", "DQN.load('m')", "", "epsilon-greedy"),
        ("from stable_baselines3 import DQN", "DQN.load('m')", ", deterministic=True", "argmax"),
        ("from stable_baselines3 import TD3", "TD3.load('m')", ", deterministic=False", "argmax"),
        ("from sb3_contrib import QRDQN", "QRDQN.load('m')", "", "epsilon-greedy"),
        ("from stable_baselines import PPO2", "PPO2.load('m')", "", "sampled"),
        ("from stable_baselines import DQN", "DQN.load('m')", "", "argmax"),
        (
            "from stable_baselines3.common.base_class import BaseAlgorithm",
            "BaseAlgorithm.load('m')",
            "",
            "unresolved",
        ),
    ],
)
def test_predict_follows_the_algorithm_and_not_the_package(
    tmp_path: Path, imports: str, model: str, flag: str, rule: str
):
    text = PREDICT.format(imports=imports, model=model, flag=flag)
    assert {path.rule for path in scanned(tmp_path, {"run.py": text}).paths} == {rule}


EVALUATE = """
import gymnasium as gym
{imports}
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.callbacks import EvalCallback

env = gym.make('procgen-heist-v0', num_levels=0)
{tail}
"""
BY_HAND = "evaluate_policy({model}, env, deterministic=False)"
BY_CALLBACK = "EvalCallback(env, deterministic=False)"


@pytest.mark.parametrize(
    ("imports", "tail", "rule"),
    [
        ("from stable_baselines3 import PPO", BY_HAND.format(model="PPO.load('m')"), "sampled"),
        ("from stable_baselines3 import DQN", BY_HAND.format(model="DQN.load('m')"), "epsilon-greedy"),
        ("from stable_baselines3 import PPO, DQN", BY_HAND.format(model="DQN.load('m')"), "epsilon-greedy"),
        ("from stable_baselines3 import PPO, DQN", BY_HAND.format(model="made_elsewhere"), "unresolved"),
        ("from stable_baselines3 import PPO", BY_CALLBACK, "sampled"),
        ("from stable_baselines3 import PPO, DQN", BY_CALLBACK, "unresolved"),
        ("from stable_baselines3 import PPO, SAC", BY_CALLBACK, "sampled"),
        ("import stable_baselines3\nfrom stable_baselines3 import PPO", BY_CALLBACK, "unresolved"),
        ("from stable_baselines3 import PPO, DQN", "EvalCallback(env)", "argmax"),
    ],
)
def test_an_evaluation_that_is_not_deterministic_follows_the_agent(
    tmp_path: Path, imports: str, tail: str, rule: str
):
    text = EVALUATE.format(imports=imports, tail=tail)
    assert {path.rule for path in scanned(tmp_path, {"run.py": text}).paths} == {rule}


PFRL = """
import gym
from pfrl.agents import DQN, PPO
from pfrl.experiments import train_agent_with_evaluation

train = gym.make('procgen-heist-v0', num_levels=200)
test = gym.make('procgen-heist-v0', num_levels=0)
agent = {agent}
train_agent_with_evaluation(agent, train, 100, None, 10, 10, 'out', eval_env=test)
"""


@pytest.mark.parametrize(
    ("agent", "rule", "provenance"),
    [
        ("PPO(model, optimizer)", "sampled", "default-argument"),
        ("PPO(model, optimizer, act_deterministically=True)", "argmax", "explicit-call-site"),
        ("PPO(model, optimizer, **settings)", "unresolved", "unresolved"),
        ("made_elsewhere()", "unresolved", "unresolved"),
    ],
)
def test_a_flag_of_the_constructor_decides_how_the_agent_is_evaluated(
    tmp_path: Path, agent: str, rule: str, provenance: str
):
    result = scanned(tmp_path, {"run.py": PFRL.format(agent=agent)})
    assert {(path.rule, path.provenance) for path in result.paths} == {(rule, provenance)}


LOOP = """
import gym
{imports}

env = gym.make('procgen-heist-v0', num_levels=0)
policy = {policy}
obs = env.reset()
for _ in range(1000):
    obs, reward, done, info = env.step({act})
"""


@pytest.mark.parametrize(
    ("imports", "policy", "act", "rule"),
    [
        ("from baselines import deepq", "deepq.load_act('m')", "policy(obs)[0]", "epsilon-greedy"),
        ("from baselines import deepq", "deepq.load_act('m')", "policy(obs, stochastic=False)[0]", "argmax"),
        (
            "from tianshou.policy import PPOPolicy",
            "PPOPolicy(actor)",
            "policy.compute_action(obs)",
            "sampled",
        ),
        (
            "from tianshou.policy import PPOPolicy",
            "PPOPolicy(actor, deterministic_eval=True)",
            "policy.compute_action(obs)",
            "argmax",
        ),
        (
            "from ray.rllib.algorithms.ppo import PPOConfig",
            "PPOConfig().build()",
            "policy.compute_single_action(obs)",
            "unresolved",
        ),
        (
            "from ray.rllib.algorithms.ppo import PPOConfig",
            "PPOConfig().build()",
            "policy.compute_single_action(obs, explore=False)",
            "argmax",
        ),
        (
            "from ray.rllib.algorithms.dqn import DQNConfig",
            "DQNConfig().build()",
            "policy.compute_single_action(obs, explore=True)",
            "epsilon-greedy",
        ),
    ],
)
def test_agents_of_dependencies_act_by_their_own_flags(
    tmp_path: Path, imports: str, policy: str, act: str, rule: str
):
    text = LOOP.format(imports=imports, policy=policy, act=act)
    assert {path.rule for path in scanned(tmp_path, {"run.py": text}).paths} == {rule}


LEVELS = """
import gym
from gym3 import vectorize_gym
from procgen import ProcgenEnv
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

env = {env}
evaluate_policy(PPO.load('m'), env)
"""


@pytest.mark.parametrize(
    ("env", "levels"),
    [
        ("make_vec_env('procgen-heist-v0')", "full distribution"),
        ("make_vec_env('procgen-heist-v0', env_kwargs={'num_levels': 200})", "200 levels from 0"),
        ("make_vec_env('procgen-heist-v0', 8, 1, 0, None, None, dict(num_levels=200))", "200 levels from 0"),
        ("make_vec_env('procgen-heist-v0', env_kwargs=settings)", "not known"),
        ("make_vec_env('procgen-heist-v0', env_kwargs={**settings})", "not known"),
        ("make_vec_env(lambda: gym.make('procgen-heist-v0', num_levels=50))", "50 levels from 0"),
        ("vectorize_gym(8, env_kwargs={'id': 'procgen-heist-v0', 'num_levels': 200})", "200 levels from 0"),
        ("vectorize_gym(num=8, env_kwargs={'id': 'procgen-heist-v0'})", "full distribution"),
        ("gym.make(id='procgen-heist-v0')", "full distribution"),
        ("gym.make('procgen-heist-v0', **settings)", "not known"),
        ("ProcgenEnv(num_envs=1, env_name='coinrun', **settings)", "not known"),
        ("ProcgenEnv(num_envs=1, env_name='coinrun', distribution_mode='exploration')", "not known"),
        ("ProcgenEnv(num_envs=1, env_name='coinrun', distribution_mode='easy')", "full distribution"),
    ],
)
def test_levels_are_read_where_the_constructor_takes_them(tmp_path: Path, env: str, levels: str):
    result = scanned(tmp_path, {"run.py": LEVELS.format(env=env)})
    assert {path.levels for path in result.paths} == {levels}


def test_two_vectorized_environments_are_not_one_because_their_number_is(tmp_path: Path):
    text = """
from gym3 import vectorize_gym
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

train = vectorize_gym(8, env_kwargs={'id': 'First-v0'})
test = vectorize_gym(8, env_kwargs={'id': 'Second-v0'})
model = PPO('CnnPolicy', train)
model.learn(1000)
evaluate_policy(model, test)
"""
    assert scanned(tmp_path, {"run.py": text}).verdict.evaluates_heldout is not False
