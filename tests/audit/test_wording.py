"""The paragraph after the evidence says what the verdict says, and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepos import write_files
from smallrepos import MODEL, frozen, in_loop, train

from gapfloor.audit.scan import scan

pytestmark = pytest.mark.fast


def paragraph(folder: Path, files: dict[str, str]) -> str:
    lines = repr(scan(str(write_files(folder, files)))).splitlines()
    return lines[lines.index("## Verdict") + 4]


def test_a_stated_rule_is_quoted_with_the_line_of_the_call(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=True)")
    line = 1 + files["evaluation.py"].splitlines().index(
        "        action, _ = net.act(obs, deterministic=True)"
    )
    text = paragraph(tmp_path, files)
    assert "held-out levels (full distribution)" in text
    assert f"without a draw; this is stated where the evaluation acts (evaluation.py:{line})." in text
    assert text.endswith("Weights do not change during an evaluation.")


def test_an_inherited_rule_is_a_question_to_the_authors(tmp_path: Path):
    text = paragraph(tmp_path, frozen("action, _ = net.act(obs)"))
    assert "Actions are drawn from the policy; this is a default that no call overrides (net.py:" in text
    assert text.endswith("whether this rule was intended for the reported numbers.")


def test_an_average_over_several_policies_is_said(tmp_path: Path):
    text = paragraph(tmp_path, in_loop())
    assert "the evaluation acts through the call that training uses" in text
    assert "the number averages several policies" in text


def test_the_absence_of_an_evaluation_is_said(tmp_path: Path):
    text = paragraph(tmp_path, {"net.py": MODEL, "train.py": train()})
    assert text == (
        "No evaluation was found: the returns are those of the training rollouts. Actions are drawn from the policy."
    )


def test_what_is_not_decided_is_said(tmp_path: Path):
    text = paragraph(tmp_path, frozen("action = mystery(obs)"))
    assert "The rule by which actions are chosen could not be decided." in text
