"""A command that reads fewer pictures files the same bytes as the same command in a process that reads them all."""

import subprocess
from pathlib import Path

import pytest
from tests.command_line import GAPFLOOR, exit_code

AGENT = Path(__file__).parents[2] / "agents" / "fruitbot-easy-impala-100k-s1"
FEW = ("--draws", "0", "--episodes", "16", "--workers", "2")


def cells(store):
    return {path.name: path.read_bytes() for path in (store / "cells").iterdir()}


@pytest.mark.parametrize(
    "command",
    [
        ("floor", "maze", "starpilot"),
        ("floor", "maze", "--reference", "random-weights:impoola:1"),
        ("evaluate", AGENT, "--game", "fruitbot", "--rules", "sampled,greedy"),
    ],
    ids=["nobody-looks", "a-reference-looks", "a-policy-looks"],
)
def test_cells_do_not_depend_on_the_pictures_that_were_read(command, tmp_path, capsys):
    arguments = [*map(str, command), *FEW, "--store"]
    subprocess.run([*GAPFLOOR, *arguments, tmp_path / "own"], capture_output=True, check=True)
    assert exit_code(*arguments, tmp_path / "shared") == 0
    assert cells(tmp_path / "own") == cells(tmp_path / "shared")
