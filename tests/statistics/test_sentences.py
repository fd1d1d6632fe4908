"""Sentences are printed where they are true and supported, and not where they are false."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from gapfloor.statistics.families import call_family
from gapfloor.statistics.gaps import excess_gap, gap_is_established, may_say_played_levels_differ
from gapfloor.statistics.reference_calls import compare_to_reference
from gapfloor.statistics.sentences import may_say_new_levels_cost, may_say_training_levels_learnt

pytestmark = pytest.mark.fast


def gap_call(seed=0, *, gap=0.0, floor_gap=0.0, n=6, size=60, level_sd=1.0, run_sd=0.2):
    rng = np.random.default_rng(seed)
    halves, floors = [], []
    for sign, first in ((0.5, 0), (-0.5, 1000)):
        ease = rng.standard_normal(size) * level_sd + sign * floor_gap
        seeds = np.repeat(np.arange(first, first + size), 2)
        own = rng.standard_normal((n, 1)) * run_sd
        returns = np.repeat(5 + ease + own + sign * gap, 2, axis=1) + 0.3 * rng.standard_normal((n, 2 * size))
        halves.append([(row, seeds) for row in returns])
        floors.append((np.repeat(ease, 2) + rng.standard_normal(2 * size), seeds))
    (call,) = call_family([excess_gap(*halves, train_floor=floors[0], test_floor=floors[1])])
    return call


def reference_call(delta, seed=0, n=6, sd=0.2):
    rng = np.random.default_rng(seed)
    (call,) = call_family(
        [compare_to_reference(delta + sd * rng.standard_normal(n), rng.standard_normal(384))]
    )
    return call


ABOVE, AT_FLOOR = reference_call(5.0), reference_call(0.0)


def test_new_levels_cost_needs_the_gap_and_two_returns_above_chance():
    real = gap_call(gap=2.0)
    assert may_say_new_levels_cost(gap_is_established(real), train=ABOVE.call, test=ABOVE.call)
    assert not may_say_new_levels_cost(
        gap_is_established(gap_call(gap=0.0)), train=ABOVE.call, test=ABOVE.call
    )
    assert not may_say_new_levels_cost(gap_is_established(real), train=ABOVE.call, test=AT_FLOOR.call)
    assert not may_say_new_levels_cost(
        gap_is_established(gap_call(gap=-2.0)), train=ABOVE.call, test=ABOVE.call
    )


def test_new_levels_cost_is_not_said_where_the_floor_has_the_same_gap():
    call = gap_call(gap=0.0, floor_gap=3.0)
    assert may_say_played_levels_differ(call)
    assert not may_say_new_levels_cost(gap_is_established(call), train=ABOVE.call, test=ABOVE.call)


def test_a_call_that_the_shape_forbids_supports_no_sentence():
    withheld = dataclasses.replace(ABOVE, call="not tested", not_tested="the runs may be left-skewed")
    assert not may_say_new_levels_cost(gap_is_established(gap_call(gap=2.0)), train=ABOVE.call, test=withheld)


def test_two_calls_that_differ_do_not_say_that_training_levels_were_learnt():
    assert not may_say_training_levels_learnt(
        gap_is_established(gap_call(gap=0.0)), train=ABOVE.call, test=AT_FLOOR.call
    )
    assert may_say_training_levels_learnt(
        gap_is_established(gap_call(gap=2.0)), train=ABOVE.call, test=AT_FLOOR.call
    )
    assert not may_say_training_levels_learnt(
        gap_is_established(gap_call(gap=2.0)), train=ABOVE.call, test=ABOVE.call
    )
    assert not may_say_training_levels_learnt(
        gap_is_established(gap_call(gap=2.0)), train=ABOVE.call, test=reference_call(0.0, n=1).call
    )


def test_an_untested_gap_supports_no_sentence():
    seeds = np.array([], dtype=np.int64)
    runs = [(np.arange(5.0), seeds)] * 6
    (call,) = call_family([excess_gap(runs, runs, train_floor=None, test_floor=None)])
    assert not gap_is_established(call)
    assert not may_say_played_levels_differ(call)
    assert not may_say_new_levels_cost(gap_is_established(call), train=ABOVE.call, test=ABOVE.call)


def test_the_same_seed_gives_the_same():
    assert gap_call(3) == gap_call(3)
    assert gap_call(3) != gap_call(4)
