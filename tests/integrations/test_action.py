"""The GitHub Action: its shell steps are run as they are written, with the inputs in the environment."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from gapfloor import __version__

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
    """A repository whose last commit changes the rule of its evaluation."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "evaluate.py").write_text(BEFORE)
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "before")
    (folder / "evaluate.py").write_text(BEFORE.replace("deterministic=True", "deterministic=False"))
    git(folder, "commit", "--quiet", "-a", "-m", "after")
    return folder


def run_step(name: str, folder: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does: the script in bash, the inputs as environment variables."""
    step = STEPS[name]
    assert {key for key, value in step["env"].items() if "${{" in value} == set(inputs)
    assert "${{" not in step["run"], "an expression inside a script would let its value run as code"
    binaries = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PYTHONPATH": ".",  # as a job may set it for its own tests
        **step["env"],
        **inputs,
        "RUNNER_TEMP": str(folder.parent),
        "GITHUB_STEP_SUMMARY": str(folder.parent / "summary.md"),
        "GITHUB_OUTPUT": str(folder.parent / "output.txt"),
        "PATH": f"{binaries}:{os.environ['PATH']}",
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_rule_is_in_the_summary_and_in_the_findings(repository):
    folder = repository
    done = run_step("Audit", folder, AUDITED=".", CARD="")
    assert done.returncode == 0, done.stderr
    summary = (folder.parent / "summary.md").read_text()
    assert "evaluate.py" in summary
    assert "sampled" in summary
    findings = json.loads((folder.parent / "gapfloor.sarif").read_text())
    assert findings["runs"][0]["invocations"][0]["executionSuccessful"] is True
    assert (folder.parent / "output.txt").read_text() == f"comment={folder.parent}/gapfloor.md\n"


def test_a_card_that_is_a_link_is_not_copied_into_the_summary(repository):
    folder = repository
    (folder / "card.md").symlink_to(".git/config")
    done = run_step("Audit", folder, AUDITED=".", CARD="card.md")
    assert done.returncode == 1
    assert "The card is a symbolic link" in done.stderr
    assert not (folder.parent / "summary.md").exists()


def test_an_explicit_rule_passes_and_a_default_fails(repository):
    folder = repository
    assert run_step("Require explicit rules", folder, AUDITED=".").returncode == 0
    (folder / "evaluate.py").write_text(BEFORE.replace(", deterministic=True", ""))
    assert run_step("Require explicit rules", folder, AUDITED=".").returncode == 1


def set_traps(folder: Path) -> Path:
    """Modules in the checkout with the names of those that the steps import; returns the file that they would write."""
    mark = folder.parent / "ran"
    for name in ("pip", "sitecustomize", "usercustomize", "gapfloor", "click", "yaml", "json"):
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').write({name!r})\n")
    return mark


def test_the_install_step_imports_nothing_from_the_checkout(repository, tmp_path, monkeypatch):
    folder = repository
    mark = set_traps(folder)
    wheel = tmp_path / "smallest-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("smallest.py", "")
        archive.writestr(
            "smallest-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: smallest\nVersion: 1.0\n"
        )
        archive.writestr("smallest-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("smallest-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "installed"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    done = run_step("Install", folder, PACKAGE=str(wheel))
    assert not mark.exists()
    assert (tmp_path / "installed" / "smallest.py").exists(), done.stderr


def test_the_other_steps_import_nothing_from_the_checkout(repository):
    folder = repository
    mark = set_traps(folder)
    run_step("Audit", folder, AUDITED=".", CARD="")
    run_step("Require explicit rules", folder, AUDITED=".")
    assert not mark.exists()
    assert (folder.parent / "summary.md").exists()


def test_the_action_installs_the_version_that_it_is_part_of():
    assert ACTION["inputs"]["package"]["default"] == f"gapfloor=={__version__}"


SHOWN = ["action.yml", "docs/audit.md", "docs/during-training.md", ".github/workflows/tests.yml"]


@pytest.mark.parametrize("path", SHOWN)
def test_every_action_is_pinned_by_its_hash(path):
    used = re.findall(r"uses: (.*)", (ROOT / path).read_text())
    assert used
    for action in used:
        is_ours = action == f"OWNER/gapfloor@v{__version__}"  # a reader puts in the address and the hash
        assert is_ours or re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_every_workflow_states_its_permissions():
    workflows = [*(ROOT / ".github" / "workflows").glob("*.yml")]
    shown = re.findall(
        r"```yaml\n(# \.github/workflows.*?)```", (ROOT / "docs/audit.md").read_text(), re.DOTALL
    )
    texts = [path.read_text() for path in workflows] + shown
    assert len(texts) > len(workflows) > 0
    for text in texts:
        assert "permissions" in yaml.safe_load(text)
