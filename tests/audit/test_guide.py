"""The commands of the guide do what the guide says, as they are written there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from gitrepos import write_files
from smallrepos import frozen

from gapfloor.cli.main import main

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]


def commands() -> list[str]:
    guide = (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")
    hook = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    return re.findall(r"(?:run|entry): (gapfloor audit scan .*)", guide + hook)


def test_the_guide_has_a_ci_step_and_both_forms_of_the_hook():
    assert len(commands()) == 3
    assert all("--require-explicit" in command for command in commands())


@pytest.mark.parametrize("command", commands())
@pytest.mark.parametrize(("flag", "code"), [("", 1), (", deterministic=False", 0)])
def test_a_path_without_a_stated_rule_stops_the_commit_and_the_build(
    tmp_path: Path, monkeypatch, command: str, flag: str, code: int
):
    write_files(tmp_path, frozen(f"action, _ = net.act(obs{flag})"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(shlex.split(command)[1:])
    assert stopped.value.code == code
    assert (tmp_path / "audit.sarif").exists() == ("--out" in command)
