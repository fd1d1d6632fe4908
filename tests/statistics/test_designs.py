"""Power of the recommended tests agrees with statsmodels and simulation; designs are the cheapest that reach it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from gapfloor.errors import UsageError
from gapfloor.statistics.component_power import (
    design_parts,
    equivalence_power,
    floor_episodes_for_equivalence,
    power_of_parts,
    recommended_power,
    simulate_recommended_family,
)
from gapfloor.statistics.components import squared_reach
from gapfloor.statistics.conventions import GENERATOR
from gapfloor.statistics.designs import (
    LEAST_FLOOR,
    Costs,
    PilotEstimate,
    assured_design,
    assured_power,
    assured_runs,
    best_design,
    careful_floor_sd,
    cheapest_design,
    cheapest_equivalence_design,
)
from gapfloor.statistics.power import Effect

pytestmark = pytest.mark.fast

BIGFISH = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
HEIST = Effect(delta=-0.27, run_sd=0.21 * 6**0.5, floor_sd=0.24 * 384**0.5)
COSTS = Costs(run=1.0, floor_episode=0.0005, level=0.001)


@pytest.mark.parametrize(("effect", "n"), [(0.5, 10), (1.2, 6), (2.0, 4)])
def test_a_known_floor_gives_statsmodels_power(effect, n):
    theirs = TTestPower().power(effect_size=effect, nobs=n, alpha=0.05 / 8, alternative="two-sided")
    ours = recommended_power(Effect(effect, 1.0, 0.0), n_runs=n, n_floor=384, family_size=8)
    assert ours == pytest.approx(theirs, abs=2e-3)


@pytest.mark.parametrize("n_levels", [None, 40])
def test_power_agrees_with_simulation(n_levels):
    effect = Effect(delta=1.5, run_sd=1.0, floor_sd=6.0, level_sd=2.0, residual_sd=1.0)
    variances, dfs = design_parts(effect, n_runs=6, n_floor=200, n_levels=n_levels)
    rng, size = np.random.default_rng(0), 100_000
    estimate = effect.delta + rng.standard_normal(size) * math.sqrt(variances.sum())
    parts = variances * rng.chisquare(dfs, (size, dfs.size)) / dfs
    simulated = np.mean(estimate**2 > squared_reach(parts, dfs, 0.05))
    formula = recommended_power(effect, n_runs=6, n_floor=200, n_levels=n_levels)
    assert formula == pytest.approx(simulated, abs=0.008)


def test_power_without_an_effect_is_at_most_alpha():
    null = dataclasses.replace(BIGFISH, delta=0.0)
    assert recommended_power(null, n_runs=6, n_floor=384) <= 0.0501


def test_floor_episodes_for_equivalence_have_the_power_they_promise():
    """The normal formula for known runs: ((z(.95) + z(.9)) sd / margin)^2, 3.15 times (1.65 sd / margin)^2."""
    margin, sd = 0.315, 0.24 * 384**0.5
    advised = floor_episodes_for_equivalence(Effect(0.0, 0.0, sd), n_runs=None, margin=margin)
    assert advised == pytest.approx(
        ((stats.norm.ppf(0.95) + stats.norm.ppf(0.9)) * sd / margin) ** 2, rel=2e-3
    )
    rng, size = np.random.default_rng(0), 40_000
    mean = rng.standard_normal(size) * sd / math.sqrt(advised)
    sem = sd * np.sqrt(rng.chisquare(advised - 1, size) / (advised - 1) / advised)
    passed = np.mean(np.abs(mean) + stats.t.isf(0.05, advised - 1) * sem < margin)
    assert passed == pytest.approx(0.8, abs=0.01)
    before = math.ceil((1.65 * sd / margin) ** 2)
    assert equivalence_power(Effect(0.0, 0.0, sd), n_runs=None, n_floor=before, margin=margin) < 0.02


def test_equivalence_that_the_runs_forbid_is_said():
    assert floor_episodes_for_equivalence(Effect(0.0, 2.0, 1.0), n_runs=6, margin=0.25) is None
    with pytest.raises(UsageError, match="positive"):
        equivalence_power(Effect(0.0, 2.0, 1.0), n_runs=6, n_floor=100, margin=0.0)


def test_runs_and_floor_episodes_are_planned_together():
    """With the pilot's 384 floor episodes no affordable number of runs finds heist's difference; together they do."""
    alone = max(recommended_power(HEIST, n_runs=n, n_floor=384) for n in (10, 100, 1000))
    assert alone < 0.25
    design = cheapest_design(HEIST, costs=COSTS)
    assert design.power >= 0.8
    assert design.n_floor > 5000


def test_the_cheapest_design_is_cheaper_than_its_neighbours():
    design = cheapest_design(BIGFISH, costs=COSTS, family_size=8)
    assert design.cost == pytest.approx(COSTS.of(design.n_runs, design.n_floor, None))
    for n_runs in range(12, 20):
        for n_floor in (LEAST_FLOOR, 100, 300, 1000, 3000):
            power = recommended_power(BIGFISH, n_runs=n_runs, n_floor=n_floor, family_size=8)
            assert power < 0.8 or COSTS.of(n_runs, n_floor, None) >= design.cost


def test_levels_are_planned_for_claims_about_the_generator():
    effect = Effect(delta=1.0, run_sd=0.8, floor_sd=4.0, level_sd=3.0, residual_sd=2.0)
    design = cheapest_design(effect, costs=COSTS, estimand=GENERATOR)
    assert design.n_levels is not None
    again = recommended_power(effect, n_runs=design.n_runs, n_floor=design.n_floor, n_levels=design.n_levels)
    assert again == design.power >= 0.8
    with pytest.raises(UsageError, match="estimand"):
        cheapest_design(effect, costs=COSTS, estimand="all levels")


def test_a_budget_buys_the_highest_power():
    cheapest = cheapest_design(BIGFISH, costs=COSTS, family_size=8)
    same = best_design(BIGFISH, costs=COSTS, budget=cheapest.cost, family_size=8)
    more = best_design(BIGFISH, costs=COSTS, budget=1.3 * cheapest.cost, family_size=8)
    assert same.power >= 0.8 - 1e-9
    assert same.cost <= cheapest.cost
    assert more.power > same.power
    assert best_design(BIGFISH, costs=COSTS, budget=2.0) is None


def test_equivalence_designs_reach_their_power():
    design = cheapest_equivalence_design(Effect(0.0, 0.3, 4.7), costs=COSTS, margin=0.315)
    found = equivalence_power(
        Effect(0.0, 0.3, 4.7), n_runs=design.n_runs, n_floor=design.n_floor, margin=0.315
    )
    assert found == design.power >= 0.8


def test_a_pilot_advises_more_runs_than_its_estimates_taken_as_true():
    pilot = PilotEstimate(BIGFISH.delta, BIGFISH.run_sd, 6, BIGFISH.floor_sd, 384)
    naive = cheapest_design(pilot.effect, costs=COSTS, family_size=8)
    assured = assured_runs(pilot, n_floor=384, family_size=8)
    assert assured > 2 * naive.n_runs
    larger = dataclasses.replace(pilot, n_runs=60, n_floor=3840)
    assert naive.n_runs < assured_runs(larger, n_floor=384, family_size=8) < assured
    design = assured_design(pilot, costs=COSTS, family_size=8)
    assert design.n_runs == pytest.approx(assured, abs=3)


def test_a_pilot_that_leaves_the_sign_open_needs_a_stated_difference():
    pilot = PilotEstimate(HEIST.delta, HEIST.run_sd, 6, HEIST.floor_sd, 384)
    assert assured_runs(pilot, n_floor=384) is None
    assert assured_runs(pilot, n_floor=20_000, smallest_delta=0.8) is not None


def test_an_exact_pilot_gives_the_power_of_its_estimates():
    pilot = PilotEstimate(1.0, 1.0, 100_000, 1.0, 1_000_000)
    expected, quantile = assured_power(pilot, n_runs=10, n_floor=384)
    known = recommended_power(pilot.effect, n_runs=10, n_floor=384)
    assert expected == pytest.approx(known, abs=5e-3)
    assert quantile == pytest.approx(known, abs=5e-3)


def test_true_power_is_reached_in_most_pilots():
    """Pilots of six runs, a true difference of 1.2 standard deviations; without care it is about half of them."""
    rng, truth = np.random.default_rng(0), Effect(1.2, 1.0, 1.0)
    reached, naive = [], []
    for _ in range(60):
        runs = truth.delta + rng.standard_normal(6)
        pilot = PilotEstimate(float(runs.mean()), float(runs.std(ddof=1)), 6, 1.0, 384)
        advised = assured_runs(pilot, n_floor=384, family_size=8)
        if advised is not None:
            reached.append(recommended_power(truth, n_runs=advised, n_floor=384, family_size=8) >= 0.8)
        plain = cheapest_design(pilot.effect, costs=Costs(1.0, 1e-9), family_size=8)
        naive.append(recommended_power(truth, n_runs=plain.n_runs, n_floor=384, family_size=8) >= 0.8)
    assert np.mean(naive) < 0.65
    assert np.mean(reached) > np.mean(naive) + 0.15


def test_the_guess_of_a_floor_is_half_of_the_runs_spread():
    assert careful_floor_sd(2.0, n_episodes=384) / math.sqrt(384) == pytest.approx(1.0)


def test_arrays_of_truths_equal_one_at_a_time():
    variances = np.array([[0.3, 0.1], [0.2, 0.4]])
    together = power_of_parts([1.0, 2.0], variances, np.array([5.0, 383.0]), alpha=0.05)
    alone = [
        float(power_of_parts(d, v, np.array([5.0, 383.0]), alpha=0.05))
        for d, v in zip((1.0, 2.0), variances, strict=True)
    ]
    assert list(together) == pytest.approx(alone)


def test_designs_that_cannot_be_tested_are_refused():
    with pytest.raises(UsageError, match="at least 2 runs"):
        recommended_power(BIGFISH, n_runs=1, n_floor=384)
    with pytest.raises(UsageError, match="at least 2 runs"):
        assured_power(PilotEstimate(1.0, 1.0, 1, 1.0, 384), n_runs=6, n_floor=384)
    with pytest.raises(UsageError, match="cost something"):
        best_design(BIGFISH, costs=Costs(0.0, 0.0), budget=10)


def test_a_call_below_the_floor_is_planned_with_the_runs_degrees_of_freedom():
    above = Effect(delta=2.0, run_sd=1.0, floor_sd=0.3 * 384**0.5)
    below = Effect(delta=-2.0, run_sd=1.0, floor_sd=0.3 * 384**0.5)
    design = {"n_runs": 6, "n_floor": 384, "family_size": 8}
    se = math.sqrt(1 / 6 + 0.3**2)
    found = recommended_power(below, **design)
    assert found < recommended_power(above, **design)
    rng = np.random.default_rng(0)
    simulated = simulate_recommended_family([below] * 8, n_runs=[6] * 8, n_floor=384, rng=rng)
    assert min(simulated.rejected) >= found - 0.05
    t = stats.t.isf(0.05 / 16, 5)
    runs = rng.chisquare(5, 100_000) / 5 / 6
    played = stats.norm.cdf((2 - t * np.sqrt(runs + 0.3**2)) / se).mean()
    assert found == pytest.approx(played, abs=0.01)
