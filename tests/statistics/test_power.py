"""Power by formula agrees with statsmodels and with simulation, and designs are the smallest that reach it."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from command_line import run
from gapfloor.errors import UsageError
from gapfloor.statistics.families import call_family
from gapfloor.statistics.power import (
    EPISODES_PER_RUN,
    LEAST_FLOOR,
    LEAST_RUNS,
    MAX_RUNS,
    PlannedComparison,
    _kept,
    minimum_detectable_effect,
    power_of_t,
    smallest_reaching,
)
from gapfloor.statistics.reference_calls import compare_to_floor, compare_to_reference
from gapfloor.statistics.welch import equivalence_unreachable

pytestmark = pytest.mark.fast

BIGFISH = PlannedComparison(1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5, family_size=8)
BOSSFIGHT = PlannedComparison(1.27, run_sd=0.49 * 6**0.5, floor_sd=0.05 * 384**0.5, family_size=8)
HEIST = PlannedComparison(-0.27, run_sd=0.21 * 6**0.5, floor_sd=0.24 * 384**0.5)


def required_runs(planned):
    """The fewest runs that reach 80% power with a floor of 384 episodes."""
    return smallest_reaching(lambda n: planned.power(n, 384), 0.8, MAX_RUNS, least=LEAST_RUNS)


METHODS = pytest.mark.parametrize("method", ["paper", "recommended"])


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
    ours = PlannedComparison(effect, 1.0, 0.0, method=method, family_size=8).power(n, 384)
    kept = _kept(n, 8, 1) if method == "recommended" else 1.0
    assert ours == pytest.approx(theirs * kept, abs=2e-3)


@METHODS
def test_bigfish_and_bossfight_need_about_15_runs_in_a_family_of_8(method):
    bigfish, bossfight = (dataclasses.replace(each, method=method) for each in (BIGFISH, BOSSFIGHT))
    assert required_runs(bigfish) in (15, 16, 17)
    assert required_runs(bossfight) in (14, 15, 16, 17)


@METHODS
def test_the_answer_is_the_smallest_that_reaches_the_power(method):
    bigfish = dataclasses.replace(BIGFISH, method=method)
    n = required_runs(bigfish)
    assert bigfish.power(n, 384) >= 0.8 > bigfish.power(n - 1, 384)
    noisy = PlannedComparison(delta=1.0, run_sd=0.4, floor_sd=10.0, method=method)
    episodes = noisy.required_floor_episodes(6)
    assert noisy.power(6, episodes) >= 0.8 > noisy.power(6, episodes - 1)


@METHODS
def test_what_the_runs_alone_forbid_is_said(method):
    bigfish = dataclasses.replace(BIGFISH, method=method)
    nothing = dataclasses.replace(bigfish, delta=0.0, family_size=1)
    assert bigfish.required_floor_episodes(6) is None
    assert required_runs(nothing) is None
    assert nothing.smallest_design() is None


def simulated(effect, *, n_runs, n_floor, families, draw):
    """How often a game of a family of eight with this effect is called at Holm's first step."""
    rng = np.random.default_rng(0)
    called = 0
    for _ in range(families):
        tests = [
            compare_to_reference(
                effect.delta + effect.run_sd * draw(rng, n_runs),
                effect.floor_sd * rng.standard_normal(n_floor),
            )
            for _ in range(8)
        ]
        sign = "above" if effect.delta > 0 else "below"
        called += sum(call.test.p < 0.05 / 8 and call.call == sign for call in call_family(tests))
    return called / families / 8


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("n_runs", "ratio"), [(6, 0.3), (15, 1.0)])
def test_the_stated_power_is_that_of_the_method_that_calls(n_runs, ratio, sign):
    effect = PlannedComparison(sign * (2.0 if n_runs == 6 else 1.6), 1.0, ratio * 384**0.5 / 2, family_size=8)
    stated = effect.power(n_runs, 384)
    played = simulated(
        effect, n_runs=n_runs, n_floor=384, families=80, draw=lambda rng, n: rng.standard_normal(n)
    )
    assert stated == pytest.approx(played, abs=0.06)


def test_the_power_with_skewed_runs_is_that_of_the_method_that_calls():
    effect = PlannedComparison(1.4, 1.0, 0.1 * 384**0.5, family_size=8)
    stated = effect.skewed_power(8, 384)
    played = simulated(
        effect, n_runs=8, n_floor=384, families=80, draw=lambda rng, n: rng.exponential(size=n) - 1
    )
    assert stated == pytest.approx(played, abs=0.06)
    assert dataclasses.replace(effect, delta=-1.4).skewed_power(8, 384) < 0.1


def test_no_design_is_smaller_than_a_call_needs():
    huge = PlannedComparison(100.0, 0.1, 0.1)
    design = huge.smallest_design()
    # The shape of three runs of one game forbids a call three times in ten.
    assert 0.68 < huge.power(3, 384) < 0.72
    assert (design.n_runs, design.n_floor) == (4, LEAST_FLOOR)
    assert required_runs(huge) == 4
    assert huge.required_floor_episodes(4) == LEAST_FLOOR


def test_the_papers_calls_keep_the_family_wise_level_with_twelve_runs():
    rng = np.random.default_rng(1)
    p = np.array(
        [
            compare_to_floor(rng.standard_normal(12), rng.standard_normal(384), rng=rng, n_resamples=100).p
            for _ in range(4000)
        ]
    )
    assert np.mean(p.reshape(-1, 8).min(axis=1) < 0.05 / 8) == pytest.approx(0.05, abs=4 * 0.01)


def test_power_without_an_effect_is_at_most_alpha():
    assert dataclasses.replace(BIGFISH, delta=0.0, family_size=1).power(6, 384) <= 0.0501


def test_runs_and_floor_episodes_are_planned_together():
    """With the pilot's 384 floor episodes no affordable number of runs finds heist's difference; together they do."""
    alone = max(HEIST.power(n, 384) for n in (10, 100, 1000))
    assert alone < 0.25
    design = HEIST.smallest_design()
    assert design.power >= 0.8
    assert design.n_floor > 5000


def test_the_design_is_smaller_than_its_neighbours():
    design = BIGFISH.smallest_design()
    size = design.n_runs + design.n_floor / EPISODES_PER_RUN
    for n_runs in range(12, 20):
        for n_floor in (LEAST_FLOOR, 100, 300, 1000, 3000):
            assert BIGFISH.power(n_runs, n_floor) < 0.8 or n_runs + n_floor / EPISODES_PER_RUN >= size


def test_equivalence_is_unreachable_for_the_papers_noisy_floors():
    floors = {"fruitbot": (-2.66, 0.21), "coinrun": (3.28, 0.24), "heist": (3.15, 0.24), "miner": (1.17, 0.10),
              "starpilot": (1.67, 0.11), "dodgeball": (0.47, 0.05)}  # fmt: skip
    found = {
        game
        for game, (mean, error) in floors.items()
        if equivalence_unreachable(margin=max(0.1 * abs(mean), 0.25), sem=error, n=384)
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
    "--family",
    8,
)


def test_the_command_answers_from_numbers(capsys):
    code, out, _ = run(capsys, "power", *NUMBERS, "--json")
    assert code == 0
    (row,) = json.loads(out)["comparisons"]
    design = row["design"]
    assert design["power"] == pytest.approx(0.8, abs=0.05)
    printed = run(capsys, "power", *NUMBERS)[1].splitlines()[2].split()
    assert (printed[6], printed[7]) == (str(design["n_runs"]), f"{design['n_floor']:,}")


@pytest.mark.parametrize(
    "arguments", [("--delta", 1), ("--power", 2, *NUMBERS), ("nowhere.csv", *NUMBERS), ("nowhere.csv",)]
)
def test_wrong_use_is_one_sentence_and_exit_2(capsys, arguments):
    code, out, err = run(capsys, "power", *arguments)
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_designs_that_cannot_be_tested_are_refused():
    with pytest.raises(UsageError, match="at least 2 runs"):
        BIGFISH.power(1, 384)
