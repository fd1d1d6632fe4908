"""Power by formula agrees with statsmodels and with simulation, and designs are the smallest that reach it."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower

from command_line import run
from gapfloor.errors import UsageError
from gapfloor.statistics.detectable import equivalence_unreachable, minimum_detectable_effect, power_of_t
from gapfloor.statistics.power import (
    EPISODES_PER_RUN,
    LEAST_FLOOR,
    Effect,
    comparison_power,
    equivalence_power,
    floor_episodes_for_equivalence,
    required_floor_episodes,
    required_runs,
    smallest_design,
)
from simulated_families import simulate_paper_family, simulate_recommended_family

pytestmark = pytest.mark.fast

BIGFISH = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
BOSSFIGHT = Effect(delta=1.27, run_sd=0.49 * 6**0.5, floor_sd=0.05 * 384**0.5)
HEIST = Effect(delta=-0.27, run_sd=0.21 * 6**0.5, floor_sd=0.24 * 384**0.5)
METHODS = pytest.mark.parametrize("method", ["paper", "recommended"])
SIMULATED = {"paper": simulate_paper_family, "recommended": simulate_recommended_family}


def test_power_of_t_is_statsmodels():
    for effect, n in ((0.5, 10), (1.2, 6), (2.0, 4)):
        theirs = TTestPower().power(effect_size=effect, nobs=n, alpha=0.05 / 8, alternative="two-sided")
        ours = power_of_t(effect, se=1 / np.sqrt(n), df=n - 1, alpha=0.05 / 8)
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_minimum_detectable_effect_has_the_power_it_promises():
    smallest = minimum_detectable_effect(se=0.5, df=5.1, family_size=8)
    assert power_of_t(smallest, se=0.5, df=5.1, alpha=0.05 / 8) == pytest.approx(0.8, abs=1e-4)


@pytest.mark.parametrize(("effect", "n"), [(0.5, 10), (1.2, 6), (2.0, 4)])
@METHODS
def test_a_known_floor_gives_statsmodels_power(effect, n, method):
    theirs = TTestPower().power(effect_size=effect, nobs=n, alpha=0.05 / 8, alternative="two-sided")
    ours = comparison_power(Effect(effect, 1.0, 0.0), n_runs=n, n_floor=384, method=method, family_size=8)
    assert ours == pytest.approx(theirs, abs=2e-3)


@METHODS
def test_bigfish_and_bossfight_need_about_15_runs_in_a_family_of_8(method):
    assert required_runs(BIGFISH, n_floor=384, method=method, family_size=8) == 15
    assert required_runs(BOSSFIGHT, n_floor=384, method=method, family_size=8) in (14, 15, 16)


@METHODS
def test_the_answer_is_the_smallest_that_reaches_the_power(method):
    def power(effect, n_runs, n_floor, family_size=1):
        return comparison_power(
            effect, n_runs=n_runs, n_floor=n_floor, method=method, family_size=family_size
        )

    n = required_runs(BIGFISH, n_floor=384, method=method, family_size=8)
    assert power(BIGFISH, n, 384, 8) >= 0.8 > power(BIGFISH, n - 1, 384, 8)
    noisy = Effect(delta=1.0, run_sd=0.4, floor_sd=10.0)
    episodes = required_floor_episodes(noisy, n_runs=6, method=method)
    assert power(noisy, 6, episodes) >= 0.8 > power(noisy, 6, episodes - 1)


@METHODS
def test_what_the_runs_alone_forbid_is_said(method):
    assert required_floor_episodes(BIGFISH, n_runs=6, method=method, family_size=8) is None
    assert required_runs(dataclasses.replace(BIGFISH, delta=0.0), n_floor=384, method=method) is None
    assert smallest_design(dataclasses.replace(BIGFISH, delta=0.0), method=method) is None


@METHODS
def test_formula_agrees_with_simulation(method):
    formula = comparison_power(BIGFISH, n_runs=15, n_floor=384, method=method, family_size=8)
    others = [dataclasses.replace(BIGFISH, delta=0.0)] * 7
    played = SIMULATED[method](
        [BIGFISH, *others], n_runs=[15] * 8, n_floor=384, rng=np.random.default_rng(0), n_simulations=4000
    )
    assert played.rejected[0] == pytest.approx(formula, abs=4 * played.error)


def test_the_papers_calls_keep_the_family_wise_level_with_twelve_runs():
    null = [Effect(delta=0.0, run_sd=1.0, floor_sd=1.0)] * 8
    played = simulate_paper_family(
        null, n_runs=[12] * 8, n_floor=384, rng=np.random.default_rng(1), n_simulations=4000
    )
    assert played.any_rejected == pytest.approx(0.05, abs=4 * 0.0034)


def test_the_recommended_calls_keep_the_family_wise_level_with_six_runs():
    null = [Effect(delta=0.0, run_sd=1.0, floor_sd=10.0)] * 8
    played = simulate_recommended_family(
        null, n_runs=[6] * 8, n_floor=384, rng=np.random.default_rng(0), n_simulations=4000
    )
    assert 0.005 < played.any_rejected <= 0.05 + 3 * 0.0034


def test_power_without_an_effect_is_at_most_alpha():
    null = dataclasses.replace(BIGFISH, delta=0.0)
    assert comparison_power(null, n_runs=6, n_floor=384) <= 0.0501


def test_a_call_below_the_floor_is_planned_with_the_runs_degrees_of_freedom():
    above = Effect(delta=2.0, run_sd=1.0, floor_sd=0.3 * 384**0.5)
    below = Effect(delta=-2.0, run_sd=1.0, floor_sd=0.3 * 384**0.5)
    design = {"n_runs": 6, "n_floor": 384, "family_size": 8}
    se = math.sqrt(1 / 6 + 0.3**2)
    found = comparison_power(below, **design)
    assert found < comparison_power(above, **design)
    rng = np.random.default_rng(0)
    simulated = simulate_recommended_family([below] * 8, n_runs=[6] * 8, n_floor=384, rng=rng)
    assert min(simulated.rejected) >= found - 0.05
    t = stats.t.isf(0.05 / 16, 5)
    runs = rng.chisquare(5, 100_000) / 5 / 6
    played = stats.norm.cdf((2 - t * np.sqrt(runs + 0.3**2)) / se).mean()
    assert found == pytest.approx(played, abs=0.01)


def test_runs_and_floor_episodes_are_planned_together():
    """With the pilot's 384 floor episodes no affordable number of runs finds heist's difference; together they do."""
    alone = max(comparison_power(HEIST, n_runs=n, n_floor=384) for n in (10, 100, 1000))
    assert alone < 0.25
    design = smallest_design(HEIST)
    assert design.power >= 0.8
    assert design.n_floor > 5000


def test_the_design_is_smaller_than_its_neighbours():
    design = smallest_design(BIGFISH, family_size=8)
    size = design.n_runs + design.n_floor / EPISODES_PER_RUN
    for n_runs in range(12, 20):
        for n_floor in (LEAST_FLOOR, 100, 300, 1000, 3000):
            power = comparison_power(BIGFISH, n_runs=n_runs, n_floor=n_floor, family_size=8)
            assert power < 0.8 or n_runs + n_floor / EPISODES_PER_RUN >= size


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


def test_equivalence_is_unreachable_for_the_papers_noisy_floors():
    floors = {"fruitbot": (-2.66, 0.21), "coinrun": (3.28, 0.24), "heist": (3.15, 0.24), "miner": (1.17, 0.10),
              "starpilot": (1.67, 0.11), "dodgeball": (0.47, 0.05)}  # fmt: skip
    found = {
        game
        for game, (mean, error) in floors.items()
        if equivalence_unreachable(margin=max(0.1 * abs(mean), 0.25), floor_sem=error, floor_n=384)
    }
    assert found == {"fruitbot", "coinrun", "heist"}


NUMBERS = (
    "--delta",
    1.98,
    "--sem",
    0.75,
    "--runs",
    6,
    "--floor-sem",
    0.06,
    "--floor-episodes",
    384,
    "--family",
    8,
)


def test_the_command_answers_from_numbers(capsys):
    code, out, _ = run(capsys, "power", *NUMBERS, "--json")
    assert code == 0
    (row,) = json.loads(out)["comparisons"]
    assert row["required_runs"] == 15
    assert row["design"]["power"] == pytest.approx(0.8, abs=0.05)
    assert "with this floor: 15 runs" in run(capsys, "power", *NUMBERS)[1]


@pytest.mark.parametrize(
    "arguments", [("--delta", 1), ("--power", 2, *NUMBERS), ("nowhere.csv", *NUMBERS), ("nowhere.csv",)]
)
def test_wrong_use_is_one_sentence_and_exit_2(capsys, arguments):
    code, out, err = run(capsys, "power", *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_designs_that_cannot_be_tested_are_refused():
    with pytest.raises(UsageError, match="at least 2 runs"):
        comparison_power(BIGFISH, n_runs=1, n_floor=384)
