"""The ledger says what the paper's tables and section say, corrections apart."""

from __future__ import annotations

import re
from dataclasses import FrozenInstanceError

import pytest

from gapfloor.api.audit import audit_ledger
from gapfloor.audit.ledger import count_ledger, load_ledger

pytestmark = pytest.mark.fast


def test_counts_are_those_of_the_papers_section():
    counts = count_ledger()
    assert (counts.codebases, counts.evaluate_heldout, counts.sample, counts.in_loop) == (12, 11, 11, 6)
    assert (counts.explicit_call_site, counts.config_option) == (1, 1)
    assert (counts.default_argument, counts.training_rollout, counts.without_explicit_choice) == (3, 6, 9)
    assert counts.evidence_lines == 151


def test_only_the_two_wrong_locations_are_marked_as_corrected():
    corrected = {entry.name: entry.location for entry in load_ledger() if entry.is_corrected}
    assert set(corrected) == {"DAAC", "VSOP"}
    assert corrected["DAAC"].startswith("test.py:33")
    assert corrected["VSOP"].startswith("vsop_procgen.py:352")


def test_every_location_is_backed_by_an_evidence_line():
    for entry in load_ledger():
        if not entry.evaluates_heldout:
            continue
        file_name, number = re.match(r"([\w.]+):(\d+)", entry.location).groups()
        lines = {(line.file.rsplit("/", 1)[-1], line.line) for line in entry.evidence}
        assert (file_name, int(number)) in lines, entry.name


def test_the_audit_table_keeps_the_papers_order_and_marks():
    rows = [[cell.plain for cell in row] for row in audit_ledger().tables()[0].body]
    assert [row[0] for row in rows][:3] == ["VSOP-3D", "VSOP", "ProcGen"]
    assert rows[-1] == ["PPG", "ICML'21", "n/a", "n/a"]
    assert {row[0]: row[2] for row in rows}["UCB-DrAC"] == "✓*"


def test_the_commit_table_prints_twelve_digits_and_shows_corrections():
    ledger = audit_ledger()
    rows = {row[0].plain: row for row in ledger.tables()[1].body}
    assert rows["PLR"][2].plain == "ccecf452ee33"
    assert rows["DAAC"][5].plain.endswith("*")
    assert any(line.startswith("* DAAC: corrected, the paper has test.py:31") for line in ledger.sentences())
    assert not rows["RAD"][5].plain.endswith("*")


def test_values_are_in_the_closed_sets_and_hashes_are_whole():
    for entry in load_ledger():
        assert entry.rule in {"sampled", "argmax", "epsilon-greedy", "mixed", "unresolved"}
        assert entry.train_test in {"same", "different", "n/a"}
        assert re.fullmatch(r"[0-9a-f]{40}", entry.commit)
        assert entry.evidence
        for line in entry.evidence:
            assert re.fullmatch(r"[0-9a-f]{64}", line.line_sha256)


def test_entries_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        load_ledger()[0].rule = "argmax"  # type: ignore[misc]
