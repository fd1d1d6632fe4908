"""Gaps with and without leaked levels, on episodes small enough to calculate by hand."""

import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.grouping import Place, group
from gapfloor.analysis.leaked import gap_without, split_by_leak
from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.levels.overlap import Leakage
from gapfloor.levels.schedule import LevelSet
from gapfloor.plan.model import Plan
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


def by_left_out(*arguments):
    return {row.left_out: row for row in gap_without(*arguments)}


def test_the_gap_is_the_mean_over_runs_on_the_levels_that_are_left():
    found = by_left_out(table(), leakage())
    # Run 1: train 9, test 16/3, without 3. Run 2: train 9, test 7, without 3.
    assert found[""].gap == pytest.approx(((9 - 16 / 3) + 2) / 2)
    assert (found["leaked"].gap, found["leaked"].gap_sem) == pytest.approx((6, 0))
    assert found["leaked"].test_left_out == pytest.approx((10 + 9) / 2)
    assert {(row.n, row.decision.call) for row in found.values()} == {(2, "not tested")}


def test_the_floor_is_taken_on_the_same_levels():
    found = by_left_out(table(), leakage())
    assert found[""].floor_gap == pytest.approx(2 - 7 / 3)
    assert found["leaked"].floor_gap == pytest.approx(2 - 1.5)
    assert [row.floor_episodes for row in found.values()] == [3, 2, 2]


def test_without_shared_layouts_the_training_twins_go_too():
    row = by_left_out(table(), leakage())["shared"]
    # Level 0 is the twin of 1000: run 1 keeps 8 on level 1, run 2 keeps 9; the floor keeps 1.
    assert row.gap == pytest.approx(((8 - 3) + (9 - 3)) / 2)
    assert row.gap_sem == pytest.approx(0.5)
    assert row.floor_gap == pytest.approx(1 - 1.5)


def test_episodes_left_are_counted_over_runs():
    found = by_left_out(table(), leakage())
    assert [row.n_episodes for row in found.values()] == [6, 3, 3]
    assert [row.n_levels for row in found.values()] == [(2, 3), (2, 2), (1, 2)]


def test_without_leaks_nothing_changes():
    found = by_left_out(table(), leakage(leaked=()))
    assert {(row.gap, row.floor_gap, row.n_episodes) for row in found.values()} == {
        (found[""].gap, found[""].floor_gap, 6)
    }
    assert all(math.isnan(row.test_left_out) for row in found.values())


def test_several_agents_get_rows_each_and_together():
    rows = gap_without(table(agents=("a", "b")), leakage())
    found = {row.agent: row for row in rows if row.left_out == "leaked"}
    assert set(found) == {"a", "b", None}
    assert found[None].gap == pytest.approx((found["a"].gap + found["b"].gap) / 2)
    assert math.isnan(found["a"].gap_sem)


def test_a_run_of_which_nothing_is_left_has_no_gap():
    row = by_left_out(table(), leakage(leaked=(1000, 1001, 1002)))["leaked"]
    assert math.isnan(row.gap)
    assert jsonable(row)["gap"] is None


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


def test_a_floor_without_runs_has_rows_of_its_own():
    only_floor = table().filter(pc.equal(table()["rule"], "uniform"))
    found = by_left_out(only_floor, leakage())
    assert {(row.rule, row.n) for row in found.values()} == {("uniform", 0)}
    assert found[""].gap == found[""].floor_gap == pytest.approx(2 - 7 / 3)
    assert found["leaked"].test_left_out == 4.0


def test_splitting_loses_no_episode():
    study = group(read_inputs(table()), Plan.paper())
    for sample in study.runs(Place("coinrun", "easy", "8M"), "sampled", "test").values():
        leaked, rest = split_by_leak(sample, {1000})
        assert leaked.size + rest.size == sample.returns.size
        assert leaked.sum() + rest.sum() == sample.returns.sum()
