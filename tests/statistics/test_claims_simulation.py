"""Each world of docs/methods.md with few families: false calls are as rare as they must be, and true ones are made."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from scipy import stats

import claims_simulation as simulation
from claims_simulation import LATE, SHIFTED, WORLDS

pytestmark = pytest.mark.fast

FAMILIES = 40


def named(world):
    return f"{world.name}, {world.n} runs"


@pytest.mark.parametrize("world", [*WORLDS, *LATE], ids=named)
def test_false_calls_are_rare(world):
    any_false, *_ = simulation.false_calls(world, FAMILIES, seed=1)
    # Three runs are too few to show left skew: docs/methods.md says so.
    allowed = 0.1 if (world.name, world.n) == ("mirrored log-normal", 3) else world.goal
    assert any_false * FAMILIES <= stats.binom.isf(1e-3, FAMILIES, allowed)


#: What today's method calls with these seeds, less three standard errors.
LEAST_POWER = {("normal, +2 SD", 6): 0.68, ("normal, +2 SD", 20): 0.85, ("normal, -2 SD", 6): 0.3,
               ("normal, -2 SD", 20): 0.75, ("0-or-1 returns, rate .005 and .03", 6): 0.6}  # fmt: skip


@pytest.mark.parametrize("world", [w for w in SHIFTED if (w.name, w.n) in LEAST_POWER], ids=named)
def test_true_differences_are_called(world):
    assert simulation.power_of(world, FAMILIES, seed=1) > LEAST_POWER[world.name, world.n]


def test_a_world_depends_on_nothing_but_its_seed():
    world = WORLDS[1]
    first, again, other = (next(iter(world.families(1, seed)))[0][0] for seed in (3, 3, 4))
    assert (first == again).all()
    assert (first != other).all()


def test_gaps_that_are_not_there_are_rarely_called():
    fisher, recommended, _, established = next(simulation.gaps(30, seed=0))[3:]
    assert fisher > 0.5
    assert recommended <= 0.05 + 3 * 0.014
    assert established <= 0.1


def test_above_on_ten_levels_is_common_and_not_said_to_transfer():
    above, said = next(simulation.transfers(50, seed=1))[3:]
    assert above > 0.3
    assert said <= 0.15


@pytest.mark.parametrize("sizes", [(6, 6), (3, 12)])
def test_equal_agents_are_rarely_said_to_differ(sizes):
    wrong, right = (
        simulation.rates(partial(simulation.agents_differ, "normal", sizes, difference=difference), 100, 1)
        for difference in (0.0, 6.0)
    )
    assert wrong <= 0.08
    assert right > 0.5


def test_the_stated_power_is_what_games_of_the_design_have():
    planned = simulation.PlannedComparison(1.5, 1.0, 3.0, family_size=8)
    design = planned.smallest_design()
    found = simulation.rates(partial(simulation.first_step, planned, design.n_runs, design.n_floor), 150, 1)
    assert found == pytest.approx(design.power, abs=0.05)


@pytest.mark.parametrize("method", simulation.METHODS)
def test_a_difference_of_the_stated_size_is_missed_once_in_five(method):
    seen = simulation.PlannedComparison(0.0, 1.0, 3.0, method=method, family_size=8)
    planned = replace(seen, delta=seen.smallest_delta(6, 384))
    assert simulation.rates(partial(simulation.first_step, planned, 6, 384), 150, 1) == pytest.approx(
        0.8, abs=0.05
    )
