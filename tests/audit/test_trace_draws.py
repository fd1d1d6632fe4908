"""Tracing sees every draw: numpy's generators, `random`, Gumbel noise and rare random actions, for each site."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gitrepos import write_files

pytest.importorskip("gymnasium")

SCRIPT = """
import random
import gymnasium as gym
import numpy as np

rng = np.random.default_rng(7)
env = gym.make("CartPole-v1")


def play(episodes, epsilon=0.0):
    for _ in range(episodes):
        obs, _ = env.reset(seed=3)
        done = False
        while not done:
            logits = np.array([obs[2], -obs[2]])
            obs, _, terminated, truncated, _ = env.step({action})
            done = terminated or truncated


play(3{first})
{second}
"""
EPSILON_GREEDY = "int(rng.integers(2)) if rng.random() < epsilon else int(np.argmax(logits))"


def traced(folder: Path, action: str, first: str = "", second: str = "") -> list[dict[str, object]]:
    write_files(folder, {"play.py": SCRIPT.format(action=action, first=first, second=second)})
    command = [sys.executable, "-m", "gapfloor.cli.main", "audit", "trace", "--json", "--"]
    done = subprocess.run(
        [*command, sys.executable, "play.py"], capture_output=True, text=True, check=True, cwd=folder
    )
    return list(json.loads(done.stdout)["paths"])


@pytest.mark.parametrize(
    ("action", "rule"),
    [
        ("int(rng.choice(2, p=[0.3, 0.7]))", "sampled"),
        ("int(rng.integers(2))", "random"),
        ("random.choices([0, 1], weights=[1, 2])[0]", "sampled"),
        ("random.randrange(2)", "random"),
        ("int(np.argmax(logits))", "argmax"),
        ("int(np.argmax(logits + rng.gumbel(size=2)))", "noisy"),
    ],
)
def test_the_generator_that_chose_the_action_is_seen(tmp_path: Path, action: str, rule: str):
    (path,) = traced(tmp_path, action)
    assert path["rule"] == rule


def test_a_few_random_actions_are_reported_and_not_called_argmax(tmp_path: Path):
    (path,) = traced(tmp_path, EPSILON_GREEDY, ", epsilon=0.1")
    assert path["rule"] == "epsilon-greedy"
    assert 0 < path["n_random"] < 0.3 * path["n_steps"]


def test_two_callers_with_another_epsilon_are_two_sites(tmp_path: Path):
    paths = traced(tmp_path, EPSILON_GREEDY, ", epsilon=0.5", "play(3)")
    assert sorted(path["rule"] for path in paths) == ["argmax", "epsilon-greedy"]
    assert sorted(bool(path["n_random"]) for path in paths) == [False, True]


def test_episodes_are_counted_for_each_site(tmp_path: Path):
    paths = traced(tmp_path, "int(np.argmax(logits))", "", "play(2)")
    assert sorted(path["n_episodes"] for path in paths) == [2, 3]
