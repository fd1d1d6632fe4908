"""The lines after the evidence say what the verdict says, and where."""

from __future__ import annotations

from pathlib import Path

import pytest
from gitrepos import write_files
from smallrepos import MODEL, frozen, in_loop, train

from gapfloor.audit.scan import scan

pytestmark = pytest.mark.fast


def paragraph(folder: Path, files: dict[str, str]) -> str:
    return repr(scan(str(write_files(folder, files)))).partition("## Verdict")[2]


def test_a_stated_rule_is_quoted_with_the_line_of_the_call(tmp_path: Path):
    files = frozen("action, _ = net.act(obs, deterministic=True)")
    line = 1 + files["evaluation.py"].splitlines().index(
        "        action, _ = net.act(obs, deterministic=True)"
    )
    text = paragraph(tmp_path, files)
    assert (
        "- rule: **argmax** (proved). Actions are the best or mean ones of the policy, without a draw."
        in text
    )
    assert f"**explicit-call-site** (proved). The evaluation states it (evaluation.py:{line})." in text
    assert (
        "- held out: **yes** (proved). The test levels differ from those of training (full distribution)."
        in text
    )
    assert "- in-loop: **no** (proved). Weights do not change during an evaluation." in text


def test_an_inherited_rule_is_a_question_to_the_authors(tmp_path: Path):
    text = paragraph(tmp_path, frozen("action, _ = net.act(obs)"))
    assert "It is a default that no call overrides (net.py:" in text
    assert "whether this rule was intended for the reported numbers." in text


def test_an_average_over_several_policies_is_said(tmp_path: Path):
    text = paragraph(tmp_path, in_loop())
    assert "The evaluation acts through the call that training uses" in text
    assert "the number averages several policies" in text


def test_the_absence_of_an_evaluation_is_said(tmp_path: Path):
    text = paragraph(tmp_path, {"net.py": MODEL, "train.py": train()})
    assert "No evaluation was found: the returns are those of the training rollouts." in text
    assert "Actions are drawn from the policy." in text


def test_what_is_not_decided_is_said(tmp_path: Path):
    text = paragraph(tmp_path, frozen("action = mystery(obs)"))
    assert "How actions are chosen could not be decided." in text
