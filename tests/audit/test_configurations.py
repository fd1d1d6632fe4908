"""Evaluations that are only described in configuration files, and agents of libraries that are known by data."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepos import write_files

from gapfloor.audit.scan import scan

pytestmark = pytest.mark.fast

VERL = """
actor_rollout_ref:
  rollout:
    temperature: 1.0
    val_kwargs:
      do_sample: {sample}
      temperature: {heat}
"""


@pytest.mark.parametrize(
    ("sample", "heat", "rule"), [("false", 1.0, "argmax"), ("true", 0.6, "sampled"), ("true", 0, "argmax")]
)
def test_a_validation_of_verl_follows_its_own_settings(tmp_path: Path, sample: str, heat: float, rule: str):
    result = scan(str(write_files(tmp_path, {"ppo.yaml": VERL.format(sample=sample, heat=heat)})))
    (path,) = result.paths
    assert (path.rule, path.provenance, path.grades["rule"]) == (rule, "config-option", "likely")


def test_a_greedy_baseline_next_to_a_sampled_method_is_seen(tmp_path: Path):
    files = {
        "baseline.yaml": VERL.format(sample="false", heat=0),
        "method.yaml": VERL.format(sample="true", heat=1.0),
    }
    result = scan(str(write_files(tmp_path, files)))
    assert {path.script: path.rule for path in result.paths} == {
        "baseline.yaml": "argmax",
        "method.yaml": "sampled",
    }


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("grpo: {val_period: 10}\npolicy: {generation: {temperature: 1.0}}\n", "sampled"),
        (
            "eval: {num_tests_per_prompt: 1, metric: pass@k}\ngeneration: {temperature: 0.0}\n",
            "argmax",
        ),
        (
            "rollout: {do_sample: true, temperature: 1.0}\ntrainer: {critic_warmup: 0, test_freq: 5}\n",
            "argmax",
        ),
        ("num_generations: 8\neval_strategy: steps\ntemperature: 0.9\n", "sampled"),
        ("eval: {n_episodes: 50}\npolicy: {type: act}\n", "unresolved"),
        ("run: PPO\nconfig: {evaluation_interval: 5, evaluation_config: {explore: false}}\n", "argmax"),
    ],
)
def test_other_frameworks_are_known_by_their_keys(tmp_path: Path, text: str, rule: str):
    (path,) = scan(str(write_files(tmp_path, {"config.yaml": text}))).paths
    assert path.rule == rule
    assert "proved" not in path.grades.values()


LOOP = """
import gym
{imports}

env = gym.make('CartPole-v1')
policy = {policy}
obs = env.reset()
for _ in range(1000):
    action = {act}
    obs, reward, done, info = env.step(action)
"""


@pytest.mark.parametrize(
    ("imports", "policy", "act", "rule"),
    [
        ("from stable_baselines import PPO2", "PPO2.load('x')", "policy.predict(obs)[0]", "sampled"),
        (
            "from stable_baselines import PPO2",
            "PPO2.load('x')",
            "policy.predict(obs, deterministic=True)[0]",
            "argmax",
        ),
        ("from stable_baselines import SAC", "SAC.load('x')", "policy.predict(obs)[0]", "argmax"),
        (
            "from rsl_rl.runners import OnPolicyRunner",
            "OnPolicyRunner(env, {}).get_inference_policy()",
            "policy(obs)",
            "argmax",
        ),
    ],
)
def test_agents_of_two_more_libraries_act_by_their_own_flags(
    tmp_path: Path, imports: str, policy: str, act: str, rule: str
):
    text = LOOP.format(imports=imports, policy=policy, act=act)
    assert {path.rule for path in scan(str(write_files(tmp_path, {"run.py": text}))).paths} == {rule}
