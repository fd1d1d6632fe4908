"""The registry of audits: entries can be checked line by line, and files of one's own are added."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gitrepos import commit_files

from gapfloor.audit.ledger.registry import SCHEMA, compare_entries, load_registry
from gapfloor.audit.ledger.verify import hash_line, verify_ledger
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast


def test_the_registry_holds_the_ledger_and_more():
    entries = load_registry()
    assert len(entries) > 12
    assert all(line.line_sha256 and line.line > 0 for entry in entries for line in entry.evidence)
    page = compare_entries(entries)
    assert page.count("\n| ") == len(entries) + 1
    assert f"{len(entries)} repositories" in page


def test_an_entry_of_ones_own_is_verified_at_its_commit(tmp_path: Path):
    clone = tmp_path / "someone+agent"
    clone.mkdir()
    commit = commit_files(clone, {"evaluate.py": "env.step(policy(obs).argmax())\n"})
    line = {
        "file": "evaluate.py",
        "line": 1,
        "what": "argmax",
        "line_sha256": hash_line("env.step(policy(obs).argmax())"),
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
