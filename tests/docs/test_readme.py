"""The README: its Python block runs in a plain script without a guard, and it stays short."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from source_tree import ROOT, SOURCE, readme_script

pytest.importorskip("procgen")


def test_the_python_block_runs_as_a_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(readme_script(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "episodes" not in done.stderr, "progress is for terminals and notebooks"
    lines = done.stdout.splitlines()
    assert lines[0] == "Compared with the floor"
    assert lines[1].split()[:4] == ["game", "agent", "rule", "levels"]
    assert [line.split()[:4] for line in lines[3:7]] == [
        ["starpilot", "policy", rule, levels]
        for rule in ("sampled", "greedy")
        for levels in ("train", "test")
    ]
    assert (tmp_path / "starpilot.png").stat().st_size > 10_000


def test_the_readme_has_about_five_hundred_words() -> None:
    pieces = (ROOT / "README.md").read_text(encoding="utf-8").split()
    assert sum(any(letter.isalpha() for letter in piece) for piece in pieces) <= 510
