"""The built wheel, installed from the registry without constraints.txt into empty environments of each Python.

On Python 3.11 with torch's CPU build where pip finds it (docs/install.md); elsewhere torch would be gigabytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from source_tree import ROOT, readme_script

CPU_TORCH = "torch==2.13.0+cpu"
POLICY = "import numpy as np\ndef load():\n    return lambda frames: np.zeros((len(frames), 15))\n"


class Environment(NamedTuple):
    """The programs of an environment, a folder to work in, and whether torch is installed."""

    programs: Path
    folder: Path
    has_torch: bool

    def run(self, program: str, *arguments: str, code: int = 0) -> str:
        """What a program writes; it must end with `code`."""
        done = _run([self.programs / program, *arguments], self.folder)
        assert done.returncode == code, done.stderr
        return done.stdout + done.stderr


def _run(command: Sequence[str | Path], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def _interpreter(version: str) -> str:
    here = sys.executable if sys.version.startswith(f"{version}.") else None
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for found in (here, *pyenv.glob(f"{version}.*/bin/python"), shutil.which(f"python{version}")):
        if found and _run([found, "-c", "import ensurepip"], ROOT).returncode == 0:
            return str(found)
    pytest.skip(f"Python {version} is not installed")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip"]
    reach = [*pip, "download", "--no-deps", "--retries", "0", "--timeout", "20", "--dest", folder, "click"]
    if _run(reach, folder).returncode:
        pytest.skip("pip cannot reach a registry of packages")
    ignored = (".git", ".venv", "site", "*-store", ".mypy_cache", ".pytest_cache", "__pycache__")
    shutil.copytree(ROOT, folder / "source", ignore=shutil.ignore_patterns(*ignored))
    built = _run([*pip, "wheel", "--no-deps", "--wheel-dir", folder, folder / "source"], folder)
    assert built.returncode == 0, built.stderr
    return next(folder.glob("gapfloor-*.whl"))


@pytest.fixture(scope="module", params=["3.11", "3.12", "3.13"])
def environment(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Environment:
    folder = tmp_path_factory.mktemp(f"python{request.param}")
    made = _run([_interpreter(request.param), "-m", "venv", folder / "environment"], folder)
    assert made.returncode == 0, made.stderr
    programs = folder / "environment" / "bin"
    install = [programs / "pip", "install", "--quiet"]
    has_torch = request.param == "3.11" and _run([*install, CPU_TORCH], folder).returncode == 0
    installed = _run([*install, f"{wheel}[procgen{',train' if has_torch else ''}]"], folder)
    assert installed.returncode == 0, installed.stderr
    return Environment(programs, folder, has_torch)


def test_a_stranger_can_use_what_was_installed(environment: Environment) -> None:
    environment.run("pip", "check")
    assert "ok       starpilot: 11 of 11" in environment.run("gapfloor", "doctor")
    short = ("--draws", "0", "--episodes", "16", "--store", "store")
    assert "bossfight" in environment.run("gapfloor", "floor", "bossfight", *short)
    (environment.folder / "mine.py").write_text(POLICY)
    policies = [
        "mine:load",
        *[str(ROOT / "agents" / "starpilot-easy-impala-100k-s1")] * environment.has_torch,
    ]
    for policy in policies:
        written = environment.run(
            "gapfloor", "evaluate", policy, "--game", "starpilot", "--rules", "sampled", *short
        )
        assert "not tested (1 run)" in written
    assert " episodes, " in environment.run("gapfloor", "analyse", "store")
    environment.run("gapfloor", "report", "store", "--out", "page")
    assert (environment.folder / "page" / "index.html").is_file()
    environment.run("gapfloor", "audit", "scan", "mine.py")


def test_the_readmes_script_runs(environment: Environment) -> None:
    (environment.folder / "script.py").write_text(readme_script(), encoding="utf-8")
    assert re.search(r"^starpilot +policy +greedy", environment.run("python", "script.py"), re.M)
    assert (environment.folder / "starpilot.png").is_file()


def test_an_extra_that_is_missing_is_named(environment: Environment) -> None:
    if environment.run("python", "-c", "import importlib.util as u; print(u.find_spec('gymnasium'))").count(
        "Spec"
    ):
        pytest.skip("ProcGen's engine for this Python brings Gymnasium")
    written = environment.run("gapfloor", "floor", "gym:CartPole-v1", code=2)
    assert written == 'gapfloor: Gymnasium is not installed: pip install "gapfloor[gymnasium]".\n'
