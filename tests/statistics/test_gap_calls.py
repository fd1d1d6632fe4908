"""The recommended gap test: the excess over the floor's gap, crossed over runs and levels."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gapfloor.errors import UsageError
from gapfloor.statistics.families import call_family
from gapfloor.statistics.gaps import LEVELS_FOR_SLOPE, excess_gap
from gapfloor.statistics.level_crossing import (
    LevelTable,
    crossed_gap,
    level_table,
    reference_slope,
)

pytestmark = pytest.mark.fast


def study(rng, *, n=6, levels=(60, 40), gap=0.0, floor_gap=0.0, follows=1.0, run_sd=0.3, noise=0.5):
    """Runs and floor on two sets, two episodes per level; `follows`: how far the runs follow the floor over levels."""
    halves, floors = [], []
    for size, sign, first in zip(levels, (0.5, -0.5), (0, 1000), strict=True):
        ease = rng.standard_normal(size) + sign * floor_gap
        seeds = np.repeat(np.arange(first, first + size), 2)
        own = rng.standard_normal((n, 1)) * run_sd + rng.standard_normal((n, size)) * 0.3
        returns = np.repeat(5 + follows * ease + own + sign * gap, 2, axis=1)
        returns = returns + noise * rng.standard_normal(returns.shape)
        halves.append([(row, seeds) for row in returns])
        floors.append((np.repeat(ease, 2) + noise * rng.standard_normal(2 * size), seeds))
    return halves[0], halves[1], floors[0], floors[1]


def excess_of(rng, **options):
    train, test, train_floor, test_floor = study(rng, **options)
    return excess_gap(train, test, train_floor=train_floor, test_floor=test_floor)


def test_slope_one_is_the_crossed_gap_of_the_level_paired_matrices():
    """`crossed_gap` agrees with lmer; only the degrees of freedom differ."""
    train, test, train_floor, test_floor = study(np.random.default_rng(0))
    found = excess_gap(train, test, train_floor=train_floor, test_floor=test_floor)
    crossed = crossed_gap(level_table(train, train_floor), level_table(test, test_floor))
    assert found.plain_excess == pytest.approx(crossed.value, rel=1e-12)
    assert found.p_plain >= crossed.p


def test_the_slope_is_the_least_squares_slope_within_sets():
    rng = np.random.default_rng(1)
    tables = []
    for size in (30, 30):
        reference = rng.standard_normal(size)
        values = 0.7 * reference + 0.1 * rng.standard_normal((4, size))
        tables.append(LevelTable(values, np.full(size, 1 / size), reference))
    x = np.concatenate([t.reference - t.reference.mean() for t in tables])
    y = np.concatenate([t.values.mean(axis=0) - t.values.mean() for t in tables])
    assert reference_slope(tables) == pytest.approx(np.polyfit(x, y, 1)[0], rel=1e-10)


def test_the_slope_takes_out_noise_and_a_shared_difference_of_the_level_sets():
    rng = np.random.default_rng(3)
    raw, adjusted = [], []
    for _ in range(150):
        train, test, *floors = study(rng, follows=0.5)
        found = excess_gap(train, test, train_floor=floors[0], test_floor=floors[1])
        raw.append(crossed_gap(level_table(train), level_table(test)).value)
        adjusted.append(found.excess)
    assert np.var(adjusted) < 0.8 * np.var(raw)
    shifted = excess_of(rng, floor_gap=3.0, noise=0.05, run_sd=0.05)
    assert abs(shifted.plain_excess) < 0.2


def test_few_levels_take_slope_one():
    rng = np.random.default_rng(0)
    few = excess_of(rng, levels=(LEVELS_FOR_SLOPE - 1, 40), follows=0.2)
    many = excess_of(rng, levels=(LEVELS_FOR_SLOPE, 40), follows=0.2)
    assert few.slope == 1.0
    assert few.excess == few.plain_excess
    assert many.slope != 1.0


def test_what_cannot_be_tested_says_why():
    train, test, train_floor, test_floor = study(np.random.default_rng(0))
    unknown = [(returns, np.array([], dtype=np.int64)) for returns, _ in train]
    elsewhere = (test_floor[0], test_floor[1] + 5000)
    reasons = {
        "no floor": excess_gap(train, test, train_floor=None, test_floor=test_floor),
        "no level seeds": excess_gap(unknown, test, train_floor=train_floor, test_floor=test_floor),
        "fewer than two common levels": excess_gap(
            train, test, train_floor=train_floor, test_floor=elsewhere
        ),
        "1 run": excess_gap(train[:1], test[:1], train_floor=train_floor, test_floor=test_floor),
        "2 runs": excess_gap(train[:2], test[:2], train_floor=train_floor, test_floor=test_floor),
    }
    for reason, found in reasons.items():
        (call,) = call_family([found])
        assert (call.call, call.test.not_tested) == ("not tested", reason)
        assert math.isnan(call.estimate.interval[0])
    with pytest.raises(UsageError, match="same runs"):
        excess_gap(train, test[:3], train_floor=train_floor, test_floor=test_floor)


def test_levels_that_only_some_runs_played_are_counted():
    train, test, train_floor, test_floor = study(np.random.default_rng(0))
    returns, seeds = train[0]
    train[0] = (returns[:24], seeds[:24])
    found = excess_gap(train, test, train_floor=train_floor, test_floor=test_floor)
    assert found.n_levels == (12, 40)


def test_the_interval_excludes_zero_exactly_when_a_call_is_made():
    rng = np.random.default_rng(4)
    words = set()
    for _ in range(40):
        calls = call_family([excess_of(rng, gap=gap) for gap in (0.0, 0.4, -0.8, 2.0)])
        for call in calls:
            low, high = call.estimate.interval
            assert (low > 0 or high < 0) == (call.call in ("train higher", "test higher"))
            words.add(call.call)
    assert words == {"train higher", "test higher", "not distinguishable"}


def test_the_size_is_kept_for_the_generator_where_levels_are_few():
    rng = np.random.default_rng(5)
    wrong = [excess_of(rng, levels=(40, 25)).p < 0.05 for _ in range(500)]
    assert np.mean(wrong) <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 500)


def test_the_order_of_runs_and_of_episodes_does_not_matter():
    train, test, train_floor, test_floor = study(np.random.default_rng(6))
    found = excess_gap(train, test, train_floor=train_floor, test_floor=test_floor)
    order = np.random.default_rng(0).permutation(train[0][0].size)
    shuffled = [(returns[order], seeds[order]) for returns, seeds in train[::-1]]
    again = excess_gap(shuffled, test[::-1], train_floor=train_floor, test_floor=test_floor)
    assert (again.excess, again.se, again.p) == pytest.approx((found.excess, found.se, found.p), rel=1e-10)


def test_the_same_seed_gives_the_same_result_and_another_seed_another():
    first, again, other = (excess_of(np.random.default_rng(s)) for s in (1, 1, 2))
    assert first == again
    assert first != other
