"""The result of a verification in a store: valid for the cells that it saw, and for no others."""

import dataclasses

import pytest

import small_stores
from gapfloor.records.verification import StoreVerification, read_verification, write_verification

pytestmark = pytest.mark.fast

FOUND = StoreVerification(
    cells=1, problems=(), episodes=20, replayable=10, replayed=3, replayed_cells=1, recomputed_cells=0,
    not_replayed=(), seed=4, version="1",
)  # fmt: skip


def test_it_is_read_back_as_long_as_no_cell_changes(empty_store):
    small_stores.write_cell(empty_store)
    write_verification(empty_store.root, FOUND, empty_store.cells())
    assert read_verification(empty_store.root, empty_store.cells()) == FOUND
    small_stores.write_cell(empty_store, agent="other")
    assert read_verification(empty_store.root, empty_store.cells()) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "gapfloor-verification/2"}', "[" * 100_000])
def test_a_file_that_is_none_is_passed_over(empty_store, text):
    (empty_store.root / "results").mkdir()
    (empty_store.root / "results" / "verification.json").write_text(text)
    assert read_verification(empty_store.root, []) is None


def test_the_sentence_says_what_was_checked_and_what_failed():
    assert "3 of 20 episodes of 1 cell " in FOUND.sentence
    assert "entropies and action counts were not computed again" in FOUND.sentence
    some = dataclasses.replace(FOUND, cells=5, recomputed_cells=2)
    assert "action counts of 2 whole cells were computed again" in some.sentence
    assert "those of the other 3 were not" in some.sentence
    assert "no episode was played again" in dataclasses.replace(FOUND, replayed=0).sentence
    assert dataclasses.replace(FOUND, problems=("x: bad",)).sentence == "failed: 1 problem, e.g. x: bad"


def test_the_share_that_a_sample_notices():
    many = dataclasses.replace(FOUND, replayed=60, replayable=10_000)
    assert 1 - (1 - many.noticed_share) ** 60 == pytest.approx(0.95)
    assert dataclasses.replace(FOUND, replayed=10).noticed_share == 0
    assert dataclasses.replace(FOUND, replayed=0).noticed_share == 1
