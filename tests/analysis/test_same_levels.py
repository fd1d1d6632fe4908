"""A gap is tested on the levels that every run and the floor have played, and says how many they are."""

from __future__ import annotations

import pytest

from gapfloor.analysis.apply import analyse
from known_truth import game_rows, table

pytestmark = pytest.mark.fast

ELSEWHERE = {"train": range(0, 60), "test": range(5000, 5060)}
HALF = {"train": range(0, 60), "test": range(1030, 1090)}


def test_a_gap_whose_floor_is_on_other_levels_is_not_tested():
    found = analyse(table(game_rows(train=8.0, floor_levels=ELSEWHERE))).gaps[0]
    assert found.decision.label == "not tested (fewer than two common levels)"


def test_a_gap_counts_the_levels_that_all_have_played():
    found = analyse(table(game_rows(train=8.0, floor_levels=HALF))).gaps[0]
    assert (found.n_levels, found.n_levels_played) == ((60, 30), (60, 60))
