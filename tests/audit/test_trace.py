"""Tracing: what a running script does is told from what it says, with real environments and a real network."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gitrepos import write_files

pytest.importorskip("torch")
pytest.importorskip("gymnasium")

SCRIPT = """
import gymnasium as gym
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)

    def act(self, obs, deterministic=True):
        logits = self.net(torch.as_tensor(obs))
        return {action}


env = gym.make("CartPole-v1")
policy = Policy()
optimizer = torch.optim.SGD(policy.parameters(), lr=0.0)
obs, _ = env.reset(seed=1000)
for step in range(60):
    obs, _, terminated, truncated, _ = env.step(policy.act(obs, deterministic=True))
    if terminated or truncated:
        obs, _ = env.reset(seed=1001)
    {update}
"""
SAMPLE = "torch.distributions.Categorical(logits=logits).sample().item()"
ARGMAX = "int(torch.argmax(logits))"
UPDATE = "policy.net(torch.zeros(4)).sum().backward(); optimizer.step()"


def traced(folder: Path, action: str, update: str = "pass") -> dict[str, object]:
    write_files(folder, {"play.py": SCRIPT.format(action=action, update=update)})
    command = [
        sys.executable,
        "-m",
        "gapfloor.cli.main",
        "audit",
        "trace",
        "--json",
        "--",
        sys.executable,
        "play.py",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)
    (path,) = json.loads(done.stdout)["paths"]
    return dict(path)


def test_a_script_that_says_deterministic_and_samples_is_seen_to_sample(tmp_path: Path):
    path = traced(tmp_path, SAMPLE)
    assert (path["rule"], path["in_loop"], path["n_policy_versions"]) == ("sampled", False, 1)
    assert (path["file"], path["environment"], path["n_steps"]) == ("play.py", "CartPole-v1", 60)


def test_a_maximum_is_seen(tmp_path: Path):
    assert traced(tmp_path, ARGMAX)["rule"] == "argmax"


def test_an_update_between_two_steps_of_an_episode_is_in_loop(tmp_path: Path):
    path = traced(tmp_path, SAMPLE, UPDATE)
    assert path["in_loop"] is True
    assert path["n_policy_versions"] == 60


def test_a_command_that_does_not_exist_is_one_sentence():
    command = [sys.executable, "-m", "gapfloor.cli.main", "audit", "trace", "--", "no-such-program-here"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "was not found" in done.stderr


def test_a_run_can_be_ended_early(tmp_path: Path):
    write_files(tmp_path, {"play.py": SCRIPT.format(action=SAMPLE, update="pass")})
    report = tmp_path / "report.md"
    options = ["--steps", "10", "--out", str(report)]
    command = [sys.executable, "-m", "gapfloor.cli.main", "audit", "trace", *options]
    subprocess.run([*command, "--", sys.executable, "play.py"], cwd=tmp_path, check=True)
    row = next(line for line in report.read_text().splitlines() if line.startswith("| play.py"))
    assert "| **sampled** | no | 10 |" in row
