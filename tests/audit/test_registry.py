"""The registry of audits: entries can be checked line by line, and files of one's own are added."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gitrepos import commit_files

from command_line import run
from gapfloor.audit.ledger import SCHEMA, compare_entries, hash_line, load_registry, verify_ledger
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast


def test_the_registry_holds_the_ledger_and_more():
    entries = load_registry()
    assert len(entries) > 12
    assert all(line.line_sha256 and line.line > 0 for entry in entries for line in entry.evidence)
    page = compare_entries(entries)
    assert page.count("\n| ") == len(entries) + 1
    assert f"{len(entries)} repositories" in page


def own_registry(tmp_path: Path, text: str = "env.step(policy(obs).argmax())") -> Path:
    """A clone with one line, and a registry file that names it by the hash of `text`."""
    clone = tmp_path / "someone+agent"
    clone.mkdir()
    commit = commit_files(clone, {"evaluate.py": "env.step(policy(obs).argmax())\n"})
    line = {
        "file": "evaluate.py",
        "line": 1,
        "what": "argmax",
        "line_sha256": hash_line(text),
    }
    row = {
        "name": "Agent",
        "repo": "someone/agent",
        "commit": commit,
        "evaluates_heldout": None,
        "rule": "argmax",
    }
    row |= {"provenance": "explicit-call-site", "in_loop": False, "evidence": [line]}
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"schema": SCHEMA, "entries": [row]}))
    return file


def test_an_entry_of_ones_own_is_verified_at_its_commit(tmp_path: Path):
    file = own_registry(tmp_path)
    mine = tuple(entry for entry in load_registry((file,)) if entry.name == "Agent")
    assert verify_ledger(tmp_path, entries=mine).is_confirmed


@pytest.mark.parametrize(
    "text", ["nothing", "{}", '{"schema": "gapfloor-audit-registry/1", "entries": [{}]}']
)
def test_a_file_that_is_not_a_registry_is_one_sentence(tmp_path: Path, text: str):
    file = tmp_path / "mine.json"
    file.write_text(text)
    with pytest.raises(UsageError):
        load_registry((file,))


def test_the_page_of_the_registry_takes_files_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file, page = own_registry(tmp_path), tmp_path / "page.md"
    assert run(capsys, "audit", "ledger", "--file", file, "--out", page).code == 0
    assert "Agent (someone/agent)" in page.read_text()
    listed = run(capsys, "audit", "ledger", "--file", file, "--json")
    names = [entry["name"] for entry in json.loads(listed.out)["entries"]]
    assert {"Agent", "AMIGo"} <= set(names)


@pytest.mark.parametrize(("text", "state"), [("env.step(policy(obs).argmax())", "ok"), ("other", "changed")])
def test_verify_checks_the_lines_of_a_file_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, state: str
):
    file = own_registry(tmp_path, text)
    done = run(capsys, "audit", "ledger", "--repos", tmp_path, "--registry", "--file", file, "--json")
    assert done.code == 1, "the other repositories have no clone here"
    rows = [row for row in json.loads(done.out)["checks"] if row["repo"] == "someone/agent"]
    assert [row["state"] for row in rows] == [state]


def test_the_registry_can_be_filtered(capsys: pytest.CaptureFixture[str]):
    shown = run(capsys, "audit", "ledger", "--only", "epsilon-greedy").out
    rows = [line for line in shown.splitlines() if line.startswith("| ")][1:]
    assert rows
    assert all("epsilon-greedy" in row for row in rows)
    assert run(capsys, "audit", "ledger", "--only", "no such thing").code == 2
