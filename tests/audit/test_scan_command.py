"""`gapfloor audit scan`: its targets, its formats and its exit codes."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
from gitrepos import commit_files, git, write_files
from smallrepos import frozen, in_loop

from command_line import exit_code
from gapfloor.audit.ledger import find_clone, load_ledger
from gapfloor.audit.scan import scan

pytestmark = pytest.mark.fast

RULES = {"sampled", "argmax", "epsilon-greedy", "mixed", "unresolved"}
STATED = {"explicit-call-site", "default-argument", "training-rollout", "config-option", "n/a", "unresolved"}
IMPLICIT = frozen("action, _ = net.act(obs)")
EXPLICIT = frozen("action, _ = net.act(obs, deterministic=True)")


run = partial(exit_code, "audit", "scan")


def test_json_has_the_promised_keys_and_values(tmp_path: Path, capsys):
    assert run(str(write_files(tmp_path, IMPLICIT)), "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert {"repo", "commit", "verdict", "paths", "unread"} <= set(document)
    assert document["verdict"] == {
        "evaluates_heldout": True,
        "rule": "sampled",
        "provenance": "default-argument",
        "in_loop": False,
        "levels": dict.fromkeys(("evaluates_heldout", "rule", "provenance", "in_loop"), "proved"),
    }
    for path in document["paths"]:
        assert {"script", "rule", "provenance", "in_loop", "inert_flags", "levels"} <= set(path)
        assert path["rule"] in RULES
        assert path["provenance"] in STATED
        assert all(set(line) == {"file", "line", "what"} for line in path["evidence"])


def test_sarif_points_at_the_step_of_a_path_without_a_stated_rule(tmp_path: Path, capsys):
    out = tmp_path / "audit.sarif"
    assert run(str(write_files(tmp_path, IMPLICIT)), "--out", str(out)) == 0
    (sarif_run,) = json.loads(out.read_text())["runs"]
    (found,) = sarif_run["results"]
    assert found["ruleId"] == "implicit-rule"
    place = found["locations"][0]["physicalLocation"]
    line = IMPLICIT["evaluation.py"].splitlines()[place["region"]["startLine"] - 1]
    assert (place["artifactLocation"]["uri"], "envs.step(action)" in line) == ("evaluation.py", True)
    assert found["ruleId"] in {rule["id"] for rule in sarif_run["tool"]["driver"]["rules"]}


def test_sarif_is_empty_when_every_rule_is_stated(tmp_path: Path, capsys):
    out = tmp_path / "audit.sarif"
    run(str(write_files(tmp_path, EXPLICIT)), "--out", str(out))
    assert json.loads(out.read_text())["runs"][0]["results"] == []


def test_markdown_shows_the_verdict_and_the_chain(tmp_path: Path, capsys):
    run(str(write_files(tmp_path, EXPLICIT)))
    text = capsys.readouterr().out
    assert "- rule: **argmax** (proved)." in text
    assert "- provenance: **explicit-call-site** (proved)." in text
    assert "net.act(obs, deterministic=True)" in text
    assert text.index("## Evidence") < text.index("## Verdict")


@pytest.mark.parametrize(("files", "code"), [(IMPLICIT, 1), (in_loop(), 1), (EXPLICIT, 0)])
def test_require_explicit_fails_when_nobody_set_the_rule(tmp_path: Path, files: dict[str, str], code: int):
    assert run(str(write_files(tmp_path, files)), "--require-explicit") == code


def test_a_report_can_go_to_a_file(tmp_path: Path, capsys):
    out = tmp_path / "report" / "scan.json"
    page = tmp_path / "report" / "scan.md"
    folder = str(write_files(tmp_path / "repo", EXPLICIT))
    assert run(folder, "--out", str(out)) == 0
    assert json.loads(out.read_text())["verdict"]["rule"] == "argmax"
    shown = capsys.readouterr().out
    assert run(folder, "--out", str(page)) == 0
    assert page.read_text() == shown


@pytest.mark.parametrize("command", ["scan", "ledger"])
def test_a_folder_is_refused_as_the_file_of_a_report(tmp_path: Path, capsys, command: str):
    assert exit_code("audit", command, "--out", str(tmp_path)) == 2
    assert "is a folder: give the name of a file." in capsys.readouterr().err


def test_a_commit_is_read_and_not_the_work_tree(tmp_path: Path):
    old = commit_files(tmp_path, EXPLICIT)
    write_files(tmp_path, IMPLICIT)
    assert scan(f"{tmp_path}@{old}").verdict.rule == "argmax"
    assert scan(str(tmp_path)).verdict.rule == "sampled"
    assert scan(f"{tmp_path}@{old[:10]}").commit == old


def test_a_bare_repository_is_scanned_at_its_head(tmp_path: Path):
    source = tmp_path / "source"
    source.mkdir()
    commit = commit_files(source, EXPLICIT)
    git(tmp_path, "clone", "-q", "--bare", str(source), str(tmp_path / "who+what"))
    result = scan(str(tmp_path / "who+what"))
    assert (result.repo, result.commit, result.verdict.rule) == ("who/what", commit, "argmax")


def test_one_file_can_be_scanned_alone(tmp_path: Path):
    write_files(tmp_path, EXPLICIT)
    assert [item.file for item in scan(str(tmp_path / "evaluation.py")).unread] == []


def test_the_same_tree_gives_the_same_answer(tmp_path: Path, capsys):
    write_files(tmp_path, IMPLICIT | in_loop())
    run(str(tmp_path), "--json")
    first = capsys.readouterr().out
    run(str(tmp_path), "--json")
    assert capsys.readouterr().out == first


def test_an_empty_folder_is_neither_an_error_nor_a_verdict(tmp_path: Path):
    result = scan(str(tmp_path))
    assert (result.verdict.evaluates_heldout, result.verdict.rule, result.paths) == (None, "unresolved", ())


def test_the_ledger_and_the_scanner_agree_where_clones_are_available():
    folder = os.environ.get("GAPFLOOR_AUDIT_REPOS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set GAPFLOOR_AUDIT_REPOS to a folder of clones of the registry's repositories")
    wrong, agreed = [], 0
    for entry in load_ledger():
        clone = find_clone(Path(folder), entry.repo)
        if clone is None:
            pytest.skip(f"{entry.repo} is not in {folder}")
        verdict = scan(f"{clone}@{entry.commit}").verdict
        pairs = (
            (verdict.evaluates_heldout, entry.evaluates_heldout),
            (verdict.rule, entry.rule),
            (verdict.provenance, entry.provenance),
            (verdict.in_loop, entry.in_loop),
        )
        agreed += all(found == expected for found, expected in pairs)
        wrong += [(entry.name, *pair) for pair in pairs if pair[0] not in (None, "unresolved", pair[1])]
    assert wrong == []
    assert agreed >= 10
