"""The GitHub Action: its shell steps are run as they are written, with the inputs in the environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"] if "run" in step}

BEFORE = """
import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

model = PPO.load("model")
print(evaluate_policy(model, gymnasium.make("CartPole-v1"), n_eval_episodes=10, deterministic=True))
"""


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=someone", "-c", "user.email=someone@example.org"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    """A repository whose last commit changes the rule of its evaluation; returns it with the commit before."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "evaluate.py").write_text(BEFORE)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "before")
    base = git(folder, "rev-parse", "HEAD")
    (folder / "evaluate.py").write_text(BEFORE.replace("deterministic=True", "deterministic=False"))
    git(folder, "commit", "--quiet", "-a", "-m", "after")
    return folder, base


def run_step(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does: the script in bash, the inputs as environment variables."""
    step = STEPS[name]
    assert set(step["env"]) == set(inputs)
    assert "${{" not in step["run"], "an expression inside a script would let its value run as code"
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        **inputs,
        "RUNNER_TEMP": str(folder.parent),
        "GITHUB_STEP_SUMMARY": str(folder.parent / "summary.md"),
        "GITHUB_OUTPUT": str(folder.parent / "output.txt"),
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_changed_rule_is_in_the_summary_and_in_the_findings(repository):
    folder, base = repository
    done = run_step("Audit", folder, AUDITED=".", BASE=base, CARD_BEFORE="", CARD_AFTER="")
    assert done.returncode == 0, done.stderr
    summary = (folder.parent / "summary.md").read_text()
    assert "sampled" in summary
    findings = json.loads((folder.parent / "gapfloor.sarif").read_text())
    assert findings["runs"][0]["invocations"][0]["executionSuccessful"] is True
    assert (folder.parent / "output.txt").read_text() == f"comment={folder.parent}/gapfloor.md\n"


def test_without_a_base_everything_is_audited(repository):
    folder, _ = repository
    done = run_step("Audit", folder, AUDITED=".", BASE="", CARD_BEFORE="", CARD_AFTER="")
    assert done.returncode == 0, done.stderr
    assert "evaluate.py" in (folder.parent / "summary.md").read_text()


def test_an_explicit_rule_passes_and_a_default_fails(repository):
    folder, _ = repository
    assert run_step("Require explicit rules", folder, AUDITED=".").returncode == 0
    (folder / "evaluate.py").write_text(BEFORE.replace(", deterministic=True", ""))
    assert run_step("Require explicit rules", folder, AUDITED=".").returncode == 1


def test_every_step_that_is_not_a_script_is_a_published_action():
    used = [step["uses"] for step in ACTION["runs"]["steps"] if "uses" in step]
    assert used == ["actions/setup-python@v5", "github/codeql-action/upload-sarif@v3"]
