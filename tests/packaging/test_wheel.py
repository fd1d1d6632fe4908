"""The built wheel in an environment of its own, outside the repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def gapfloor(tmp_path_factory):
    """The command of a fresh environment that has the wheel and ProcGen's engine, and nothing of the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns(
        ".git", ".venv", "site", "*-store", ".mypy_cache", ".pytest_cache", "__pycache__"
    )
    shutil.copytree(ROOT, source, ignore=ignored)
    python = folder / "environment" / "bin" / "python"
    steps = [
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--wheel-dir",
            str(folder),
            str(source),
        ],
        [sys.executable, "-m", "venv", str(folder / "environment")],
    ]
    for step in steps:
        subprocess.run(step, check=True, cwd=folder)
    wheel = next(folder.glob("gapfloor-*.whl"))
    subprocess.run(
        ["tools/install.sh", str(python), "-c", "constraints.txt", f"{wheel}[procgen]"], check=True, cwd=ROOT
    )
    return python.parent / "gapfloor"


def run(command: Path, folder: Path, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(command), *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_stranger_can_measure_analyse_report_and_audit(gapfloor, tmp_path):
    out = run(
        gapfloor, tmp_path, "floor", "bossfight", "--draws", "0", "--episodes", "16", "--store", "store"
    )
    assert "bossfight" in out
    assert "32 episodes" in run(gapfloor, tmp_path, "analyse", "store")
    run(gapfloor, tmp_path, "report", "store", "--out", "page")
    assert (tmp_path / "page" / "index.html").is_file()
    (tmp_path / "evaluate.py").write_text("def act(model, x):\n    return model(x).argmax()\n")
    run(gapfloor, tmp_path, "audit", "scan", "evaluate.py")
