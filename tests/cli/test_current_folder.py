"""A command that is typed in a folder of downloads imports nothing from it, in any process that it starts.

The folder has a file for every module of Python and every installed package; each leaves a mark when it is imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from study.tiny_study import STUDY

GAPFLOOR = str(Path(sys.executable).with_name("gapfloor"))

FEW = ("--draws", "0", "--episodes", "4", "--slots", "2", "--workers", "2")


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """A folder whose files have the names of modules."""
    for name in sys.stdlib_module_names | set(importlib.metadata.packages_distributions()):
        if importlib.util.find_spec(name) is not None:
            text = f"import posix\nposix.mkdir({str(tmp_path / 'marks' / name)!r})\n"
            (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "marks").mkdir()
    (tmp_path / "tiny.toml").write_text(STUDY)
    (tmp_path / "neighbour.py").write_text("def scale():\n    return 2.0\n")
    (tmp_path / "mine.py").write_text(
        "import numpy as np\nimport neighbour\n\n"
        "def make():\n"
        "    def logits(rows):\n"
        "        return neighbour.scale() * np.ones((len(rows), 2))\n"
        "    return logits\n"
    )
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        ("floor", "gym:CartPole-v1", *FEW),
        ("evaluate", "mine:make", "--game", "gym:CartPole-v1", "--rules", "sampled", *FEW),
        ("evaluate", "random-weights:impala:1", "--game", "bossfight", "--rules", "sampled", *FEW),
        ("doctor", "gym:CartPole-v1"),
        ("doctor",),
        ("study", "run", "tiny.toml", "--store", "store", "--workers", "2"),
        ("study", "run", "tiny.toml", "--store", "store", "--ray", "local"),
    ],
    ids=lambda command: " ".join(command[:2]) + (f" {command[-2]}" if command[0] == "study" else ""),
)
def test_no_file_of_the_current_folder_is_imported(command: tuple[str, ...], downloads: Path) -> None:
    if "--ray" in command:
        pytest.importorskip("ray")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["RAY_ADDRESS"] = (
        "127.0.0.9:1"  # `local` starts a cluster, whatever others this machine may have
    )
    done = subprocess.run(
        [GAPFLOOR, *command], cwd=downloads, env=environment, capture_output=True, text=True, check=False
    )
    assert sorted(mark.name for mark in (downloads / "marks").iterdir()) == []
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_module_that_the_user_names_comes_from_the_current_folder(tmp_path: Path) -> None:
    """Even one that has the name of an installed package; nothing else takes the place of an installed module."""
    (tmp_path / "crafter.py").write_text(
        "import numpy as np\ndef make():\n    return lambda rows: np.ones((len(rows), 2))\n"
    )
    (tmp_path / "scipy.py").write_text("raise SystemExit('it ran')\n")
    done = subprocess.run(
        [GAPFLOOR, "evaluate", "crafter:make", "--game", "gym:CartPole-v1", "--rules", "greedy", *FEW],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_packages_that_announce_themselves_in_the_current_folder_are_not_imported(tmp_path: Path) -> None:
    """torch imports what any package on the path announces as a backend, also once the user's module is found here."""
    package = tmp_path / "other-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[torch.backends]\nother = other:begin\n")
    (tmp_path / "other.py").write_text("import os\nos.mkdir('it-ran')\ndef begin():\n    pass\n")
    (tmp_path / "mine.py").write_text(
        "import neighbour\nimport torch\ndef make():\n    return torch.nn.Linear(4, neighbour.SIZE)\n"
    )
    (tmp_path / "neighbour.py").write_text("SIZE = 2\n")
    done = subprocess.run(
        [GAPFLOOR, "evaluate", "mine:make", "--game", "gym:CartPole-v1", "--rules", "sampled", *FEW],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not (tmp_path / "it-ran").exists()
    assert done.returncode == 0, done.stderr


def test_python_dash_m_gapfloor_imports_no_package_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("click", "numpy", "gymnasium"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('it ran')\n")
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef make():\n    return lambda rows: np.ones((len(rows), 2))\n"
    )
    command = ["evaluate", "mine:make", "--game", "gym:CartPole-v1", "--rules", "greedy", *FEW]
    done = subprocess.run(
        [sys.executable, "-m", "gapfloor", *command],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "CartPole-v1" in done.stdout
