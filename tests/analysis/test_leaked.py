"""Gaps with and without leaked levels, on episodes small enough to calculate by hand."""

import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.grouping import group
from gapfloor.analysis.leaked import gap_without, split_by_leak
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.levels.overlap import Leakage
from gapfloor.plan.model import paper_plan
from small_stores import leaked_levels

pytestmark = pytest.mark.fast


HELD_OUT = LevelSet(1000, 1003)


def leakage(leaked=(1000,), test=HELD_OUT):
    return leaked_levels(leaked, train=LevelSet(0, 2), test=test)


def rows(returns, **labels):
    """One episode a (level set, level, return)."""
    return [
        {"game": "coinrun", "mode": "easy", "budget": "8M", "draw": 0, "slot": 0, "index": at, "level_set": level_set,
         "level_seed": level, "episode_return": value, "reference": "", **labels}
        for at, (level_set, level, value) in enumerate(returns)
    ]  # fmt: skip


FIRST = [
    ("train", 0, 10.0),
    ("train", 1, 8.0),
    ("test", 1000, 10.0),
    ("test", 1001, 4.0),
    ("test", 1002, 2.0),
]
SECOND = [("train", 0, 9.0), ("train", 1, 9.0), ("test", 1000, 9.0), ("test", 1001, 3.0), ("test", 1000, 9.0)]
FLOOR = [("train", 0, 3.0), ("train", 1, 1.0), ("test", 1000, 4.0), ("test", 1001, 1.0), ("test", 1002, 2.0)]


def table(*, agents=("a", "a")):
    every = rows(FIRST, agent=agents[0], seed=1, rule="sampled") + rows(
        SECOND, agent=agents[1], seed=2, rule="sampled"
    )
    every += rows(FLOOR, agent=None, seed=None, rule="uniform", reference="uniform")
    return pa.Table.from_pylist(every)


def test_the_gap_is_the_mean_over_runs_on_the_levels_that_are_left():
    (row,) = gap_without(table(), leakage())
    # Run 1: train 9, test 16/3, without 3. Run 2: train 9, test 7, without 3.
    assert row.gap == pytest.approx(((9 - 16 / 3) + 2) / 2)
    assert row.gap_without == pytest.approx(6)
    assert row.sem_without == pytest.approx(0)
    assert row.test_leaked == pytest.approx((10 + 9) / 2)


def test_the_floor_is_taken_on_the_same_levels():
    (row,) = gap_without(table(), leakage())
    assert row.floor_gap == pytest.approx(2 - 7 / 3)
    assert row.floor_gap_without == pytest.approx(2 - 1.5)
    assert (row.floor_episodes, row.floor_episodes_left) == (3, 2)


def test_without_shared_layouts_the_training_twins_go_too():
    (row,) = gap_without(table(), leakage())
    # Level 0 is the twin of 1000: run 1 keeps 8 on level 1, run 2 keeps 9; the floor keeps 1.
    assert row.gap_unshared == pytest.approx(((8 - 3) + (9 - 3)) / 2)
    assert row.sem_unshared == pytest.approx(0.5)
    assert row.floor_gap_unshared == pytest.approx(1 - 1.5)


def test_episodes_left_are_counted_over_runs():
    (row,) = gap_without(table(), leakage())
    assert (row.episodes, row.episodes_left, row.leaked_levels, row.levels) == (6, 3, 1, 3)


def test_without_leaks_nothing_changes():
    (row,) = gap_without(table(), leakage(leaked=()))
    assert row.gap_without == row.gap
    assert row.floor_gap_without == row.floor_gap
    assert row.episodes_left == row.episodes
    assert math.isnan(row.test_leaked)


def test_several_agents_get_a_row_each_and_one_together():
    found = {row.agent: row for row in gap_without(table(agents=("a", "b")), leakage())}
    assert set(found) == {"a", "b", ""}
    assert found[""].gap_without == pytest.approx((found["a"].gap_without + found["b"].gap_without) / 2)
    assert math.isnan(found["a"].sem)


def test_a_run_of_which_nothing_is_left_has_no_gap():
    found = gap_without(table(), leakage(leaked=(1000, 1001, 1002)))[0]
    assert math.isnan(found.gap_without)
    assert found.to_dict()["gap_without"] is None


def test_games_that_were_not_checked_have_no_row():
    assert gap_without(table(), Leakage(())) == ()


def test_a_check_of_other_levels_is_refused():
    with pytest.raises(
        UsageError, match="played on level 1002, but its leakage was checked for 0:2 and 1000:1002"
    ):
        gap_without(table(), leakage(test=LevelSet(1000, 1002)))


def test_episodes_without_level_seeds_are_refused():
    with pytest.raises(UsageError, match="no level seeds"):
        gap_without(table().drop_columns(["level_seed"]), leakage())


def test_a_floor_without_runs_has_a_row_of_its_own():
    only_floor = table().filter(pc.equal(table()["rule"], "uniform"))
    (row,) = gap_without(only_floor, leakage())
    assert (row.rule, row.n_runs) == ("uniform", 0)
    assert row.gap == row.floor_gap == pytest.approx(2 - 7 / 3)
    assert row.test_leaked == 4.0


def test_splitting_loses_no_episode():
    study = group(read_inputs(table()), paper_plan())
    for sample in study.runs("coinrun", "easy", "8M", "sampled", "test").values():
        leaked, rest = split_by_leak(sample, {1000})
        assert leaked.size + rest.size == sample.returns.size
        assert leaked.sum() + rest.sum() == sample.returns.sum()
