"""Power by formula agrees with statsmodels and with simulation, and designs are the smallest that do."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from command_line import run
from gapfloor.errors import UsageError
from gapfloor.statistics.detectable import equivalence_unreachable, minimum_detectable_effect, power_of_t
from gapfloor.statistics.power import (
    Effect,
    floor_power,
    generator_power,
    required_floor_episodes,
    required_levels,
    required_runs,
    simulate_family,
)

pytestmark = pytest.mark.fast

BIGFISH = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
BOSSFIGHT = Effect(delta=1.27, run_sd=0.49 * 6**0.5, floor_sd=0.05 * 384**0.5)


def test_power_of_t_is_statsmodels():
    for effect, n in ((0.5, 10), (1.2, 6), (2.0, 4)):
        theirs = TTestPower().power(effect_size=effect, nobs=n, alpha=0.05 / 8, alternative="two-sided")
        ours = power_of_t(effect, se=1 / np.sqrt(n), df=n - 1, alpha=0.05 / 8)
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_minimum_detectable_effect_has_the_power_it_promises():
    smallest = minimum_detectable_effect(se=0.5, df=5.1, family_size=8)
    assert power_of_t(smallest, se=0.5, df=5.1, alpha=0.05 / 8) == pytest.approx(0.8, abs=1e-4)


def test_bigfish_and_bossfight_need_about_15_runs_in_a_family_of_8():
    assert required_runs(BIGFISH, n_floor=384, family_size=8) == 15
    assert required_runs(BOSSFIGHT, n_floor=384, family_size=8) in (14, 15, 16)


def test_the_answer_is_the_smallest_that_reaches_the_power():
    n = required_runs(BIGFISH, n_floor=384, family_size=8)
    assert floor_power(BIGFISH, n_runs=n, n_floor=384, family_size=8) >= 0.8
    assert floor_power(BIGFISH, n_runs=n - 1, n_floor=384, family_size=8) < 0.8
    noisy = Effect(delta=1.0, run_sd=0.4, floor_sd=10.0)
    episodes = required_floor_episodes(noisy, n_runs=6)
    assert (
        floor_power(noisy, n_runs=6, n_floor=episodes)
        >= 0.8
        > floor_power(noisy, n_runs=6, n_floor=episodes - 1)
    )
    crossed = Effect(delta=1.0, run_sd=0.4, floor_sd=0.0, level_sd=4.0, residual_sd=2.0)
    levels = required_levels(crossed, n_runs=6)
    assert generator_power(crossed, n_runs=6, n_levels=levels) >= 0.8
    assert generator_power(crossed, n_runs=6, n_levels=levels - 1) < 0.8


def test_what_the_runs_alone_forbid_is_said():
    assert required_floor_episodes(BIGFISH, n_runs=6, family_size=8) is None
    assert required_runs(dataclasses.replace(BIGFISH, delta=0.0), n_floor=384) is None


def test_formula_agrees_with_simulation():
    formula = floor_power(BIGFISH, n_runs=15, n_floor=384, family_size=8)
    others = [dataclasses.replace(BIGFISH, delta=0.0)] * 7
    played = simulate_family(
        [BIGFISH, *others], n_runs=[15] * 8, n_floor=384, rng=np.random.default_rng(0), n_simulations=4000
    )
    assert played.rejected[0] == pytest.approx(formula, abs=4 * played.error)


def test_family_wise_error_is_kept_without_effects():
    null = [Effect(delta=0.0, run_sd=1.0, floor_sd=1.0)] * 8
    played = simulate_family(
        null, n_runs=[12] * 8, n_floor=384, rng=np.random.default_rng(1), n_simulations=4000
    )
    assert played.any_rejected == pytest.approx(0.05, abs=4 * 0.0034)


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
    assert row["simulated_power"] == pytest.approx(0.8, abs=0.05)
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
        floor_power(BIGFISH, n_runs=1, n_floor=384)
