"""Verification tells ok from moved from changed, in every layout of clones."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path

import pytest
from gitrepos import commit_files, git

from gapfloor.audit.ledger import EvidenceLine, LedgerEntry, find_clone, hash_line, load_ledger, verify_ledger
from gapfloor.cli.main import main

pytestmark = pytest.mark.fast

TEXT = "first = 1\n    second = 2\nthird = 3\n"


def entry_with(*lines: EvidenceLine) -> LedgerEntry:
    return dataclasses.replace(load_ledger()[0], evidence=lines)


def evidence(
    commit: str, *, number: int = 2, text: str = "second = 2", repo: str = "who/what"
) -> EvidenceLine:
    return EvidenceLine(
        repo=repo, commit=commit, file="code.py", line=number, what="a line", line_sha256=hash_line(text)
    )


@pytest.mark.parametrize("layout", ["who+what/repo", "who+what", "who/what", "what"])
def test_every_layout_of_clones_is_found(tmp_path: Path, layout: str):
    folder = tmp_path / layout
    folder.mkdir(parents=True)
    commit = commit_files(folder, {"code.py": TEXT})
    assert find_clone(tmp_path, "who/what") == folder / ".git"
    assert verify_ledger(tmp_path, entries=(entry_with(evidence(commit)),)).is_confirmed


def test_a_bare_clone_is_read_without_a_work_tree(tmp_path: Path):
    source = tmp_path / "source"
    source.mkdir()
    commit = commit_files(source, {"code.py": TEXT})
    git(tmp_path, "clone", "-q", "--bare", str(source), str(tmp_path / "who+what"))
    assert verify_ledger(tmp_path, entries=(entry_with(evidence(commit)),)).is_confirmed


def test_a_line_elsewhere_in_the_file_has_moved(tmp_path: Path):
    folder = tmp_path / "what"
    folder.mkdir()
    commit = commit_files(folder, {"code.py": TEXT})
    check = verify_ledger(tmp_path, entries=(entry_with(evidence(commit, number=3)),)).checks[0]
    assert (check.state, check.found_at) == ("moved", (2,))


@pytest.mark.parametrize("number", [0, 2, 99])
def test_another_text_has_changed_whatever_the_number(tmp_path: Path, number: int):
    folder = tmp_path / "what"
    folder.mkdir()
    commit = commit_files(folder, {"code.py": TEXT})
    entry = entry_with(evidence(commit, number=number, text="second = 3"))
    assert verify_ledger(tmp_path, entries=(entry,)).checks[0].state == "changed"


def test_the_pinned_commit_is_read_not_the_newest(tmp_path: Path):
    folder = tmp_path / "what"
    folder.mkdir()
    old = commit_files(folder, {"code.py": TEXT})
    new = commit_files(folder, {"code.py": "gone = 0\n"})
    assert verify_ledger(tmp_path, entries=(entry_with(evidence(old)),)).is_confirmed
    assert verify_ledger(tmp_path, entries=(entry_with(evidence(new)),)).checks[0].state == "changed"


def test_missing_clones_and_commits_are_told_apart(tmp_path: Path):
    folder = tmp_path / "what"
    folder.mkdir()
    commit_files(folder, {"code.py": TEXT})
    states = [
        verify_ledger(tmp_path, entries=(entry_with(line),)).checks[0].state
        for line in (evidence("0" * 40), evidence("0" * 40, repo="no/where"))
    ]
    assert states == ["no commit", "no clone"]


def test_the_command_fails_with_1_when_lines_are_missing_and_2_without_a_folder(tmp_path: Path, capsys):
    with pytest.raises(SystemExit) as absent:
        main(["audit", "ledger", "--repos", str(tmp_path / "none")])
    with pytest.raises(SystemExit) as unconfirmed:
        main(["audit", "ledger", "--repos", str(tmp_path), "--json"])
    assert (absent.value.code, unconfirmed.value.code) == (2, 1)
    document = json.loads(capsys.readouterr().out)
    assert document["lines"]["no clone"] == 151


def test_every_line_of_the_ledger_is_confirmed_where_clones_are_available():
    folder = os.environ.get("GAPFLOOR_AUDIT_REPOS")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set GAPFLOOR_AUDIT_REPOS to a folder of clones of the ledger's repositories")
    result = verify_ledger(Path(folder))
    missing = result.count("no clone") + result.count("no commit")
    if missing:
        pytest.skip(f"{missing} lines belong to clones that are not in {folder}")
    assert [check for check in result.checks if check.state != "ok"] == []


def test_verification_reads_nothing_but_git(tmp_path: Path):
    """A text filter that the repository configures is not run."""
    folder = tmp_path / "what"
    folder.mkdir()
    mark = tmp_path / "ran"
    commit = commit_files(folder, {"code.py": TEXT, ".gitattributes": "*.py diff=evil filter=evil\n"})
    for key in ("diff.evil.textconv", "filter.evil.smudge", "core.fsmonitor"):
        subprocess.run(["git", "-C", str(folder), "config", key, f"touch {mark}"], check=True)
    assert verify_ledger(tmp_path, entries=(entry_with(evidence(commit)),)).is_confirmed
    assert not mark.exists()
