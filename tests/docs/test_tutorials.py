"""The MiniGrid tutorial, command by command; training is cut short, and what does not depend on it is compared."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command_blocks import read_blocks, shown_commands

PAGE = Path(__file__).parents[2] / "docs" / "tutorial-minigrid.md"

pytest.importorskip("minigrid")
pytest.importorskip("stable_baselines3")


def is_the_same_at_any_number_of_steps(line: int) -> bool:
    return "<!-- same -->" in PAGE.read_text(encoding="utf-8").splitlines()[line - 2]


def without_versions(text: str) -> str:
    """Versions of packages and of the tutorial's file are the reader's own."""
    return re.sub(r"(gymnasium|minigrid|minigrid_agent)[- ][0-9a-f.]+", r"\1", text).rstrip()


def shown_pattern(lines: list[str]) -> str:
    return "".join(
        r"(?:.*\n)*?" if line == "..." else re.escape(without_versions(line)) + r"\n" for line in lines
    )


def shortened(command: str) -> str:
    """Agents that have learnt nothing play every episode to its end: a quarter of them will do."""
    if command.startswith("gapfloor floor"):
        return command + " --workers 1"
    if not command.startswith("gapfloor evaluate"):
        return command
    fewer = command.replace("--draws 0,1 --episodes 32", "--draws 0 --episodes 16").replace(
        "--probe 32", "--probe 4"
    )
    assert fewer != command
    return fewer + " --workers 1"


def run(command: str, folder: Path) -> str:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
        "TUTORIAL_STEPS": "64",
    }
    environment.pop("GAPFLOOR_STORE", None)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-c", shortened(command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_the_minigrid_tutorial_runs_from_the_check_to_the_page(tmp_path: Path):
    ran = []
    for block in read_blocks(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        if block.language != "console":
            continue
        for shown in shown_commands(block):
            printed = "".join(
                without_versions(line) + "\n" for line in run(shown.command, tmp_path).splitlines()
            )
            if is_the_same_at_any_number_of_steps(block.line):
                assert re.fullmatch(shown_pattern(shown.output), printed), f"{shown.command}\n{printed}"
            ran.append(shown.command.split()[1])
    assert ran == [
        "doctor",
        "minigrid_agent.py",
        "floor",
        "calibrate",
        "evaluate",
        "analyse",
        "replay",
        "report",
    ]
    page = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    for words in (
        "MiniGrid-MultiRoom-N2-S4-v0",
        "done (no-op)",
        "The same level under different rules",
        "sampled",
    ):
        assert words in page
    assert "LEFT+DOWN" not in page, "the actions are the environment's own, not ProcGen's"
