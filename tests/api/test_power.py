"""How many runs, floor episodes and levels a study needs: runs and floor together, with the pilot's own error."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow.csv
import pytest

import gapfloor
from command_line import document_of, run
from gapfloor.errors import UsageError
from gapfloor.statistics.component_power import recommended_power, simulate_recommended_family
from gapfloor.statistics.designs import Costs
from gapfloor.statistics.power import Effect
from known_truth import game_rows, repeated, table

pytestmark = pytest.mark.fast

#: Heist on training levels and coinrun under greedy actions, as the paper prints them, and bigfish.
HEIST = {"delta": 0.88, "sem": 0.29, "runs": 6, "floor_sem": 0.24, "floor_episodes": 384, "family": 8}
COINRUN = {"delta": 0.82, "sem": 0.62, "runs": 6, "floor_sem": 0.23, "floor_episodes": 384, "family": 8}
BIGFISH = {"delta": 1.98, "sem": 0.75, "runs": 6, "floor_sem": 0.06, "floor_episodes": 384, "family": 8}


def answer(numbers, **options):
    (row,) = gapfloor.power(**numbers, **{"n_simulations": 0, **options}).comparisons
    return row


def power_of(numbers, n_runs, n_floor):
    effect = Effect(numbers["delta"], numbers["sem"] * 6**0.5, numbers["floor_sem"] * 384**0.5)
    return recommended_power(effect, n_runs=n_runs, n_floor=n_floor, family_size=numbers["family"])


@pytest.mark.parametrize(("numbers", "alone"), [(HEIST, 200), (COINRUN, None)])
def test_a_better_floor_replaces_runs_that_no_study_could_train(numbers, alone):
    found = answer(numbers)
    assert found.required_runs == alone or found.required_runs > alone
    assert found.design.n_runs < 60
    assert found.design.n_floor > 384
    assert power_of(numbers, found.design.n_runs, found.design.n_floor) >= 0.8


def test_the_advised_design_reaches_its_power_in_simulation():
    found = answer(HEIST, n_simulations=4000)
    assert found.simulated_power == pytest.approx(0.8, abs=4 * found.simulation_error)


def test_simulated_families_without_effects_keep_the_family_wise_level():
    null = [Effect(delta=0.0, run_sd=1.0, floor_sd=10.0)] * 8
    played = simulate_recommended_family(
        null, n_runs=[6] * 8, n_floor=384, rng=np.random.default_rng(0), n_simulations=4000
    )
    assert 0.005 < played.any_rejected <= 0.05 + 3 * 0.0034


def test_the_pilots_own_error_asks_for_more():
    found = answer(BIGFISH)
    assert found.assured.n_runs > 2 * found.design.n_runs
    assert found.assured.power >= 0.8
    sure = answer({**BIGFISH, "runs": 60, "sem": 0.75 / 10**0.5})
    assert sure.assured.n_runs < found.assured.n_runs


def test_a_pilot_that_leaves_the_difference_open_needs_the_smallest_one_worth_finding():
    open_ = {**HEIST, "delta": 0.1}
    assert answer(open_).assured is None
    assert answer(open_, smallest_delta=1.0).assured is not None


def test_a_budget_buys_the_highest_power_it_can():
    few, many = (answer(HEIST, budget=budget).affordable for budget in (8.0, 20.0))
    assert few.power < 0.8 < many.power
    assert many.cost <= 20.0
    assert answer(HEIST, budget=2.0).affordable is None
    assert answer(HEIST).affordable is None


def test_cheap_floors_are_made_larger():
    cheap = answer(HEIST, costs=Costs(1.0, 1e-4)).design
    dear = answer(HEIST, costs=Costs(1.0, 1e-2)).design
    assert cheap.n_floor > dear.n_floor
    assert cheap.n_runs < dear.n_runs


def test_without_a_floor_a_careful_guess_is_used_and_said():
    known = answer({"delta": 1.98, "sem": 0.75, "runs": 6, "floor_sem": 0.75 * 6**0.5 / 2})
    guessed = answer({"delta": 1.98, "sem": 0.75, "runs": 6})
    assert (guessed.floor_is_guessed, known.floor_is_guessed) == (True, False)
    assert dataclasses.replace(guessed, floor_is_guessed=False) == known


def test_the_method_is_the_plans(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('name = "x"\n')
    assert gapfloor.power(**BIGFISH, n_simulations=0).method == "recommended"
    papers = gapfloor.power(**BIGFISH, n_simulations=0, plan=path)
    assert papers.method == "paper"
    # Three runs: Welch's test claims more power than the recommended one, whose level holds.
    few = {**BIGFISH, "runs": 3, "delta": 4.0}
    assert answer(few, plan=path).power_now > answer(few).power_now


def test_a_pilot_says_what_levels_are_needed_and_its_copies_do_not_count():
    rows = game_rows(test=2.4, n_runs=4)
    (found,) = gapfloor.power(table(rows), n_simulations=0).comparisons
    assert (found.game, found.n_levels, found.n_runs) == ("coinrun", 60, 4)
    assert found.generator_design.n_levels > 0
    (copied,) = gapfloor.power(table(repeated(rows, seed=0, under=9)), n_simulations=0).comparisons
    assert (copied.n_runs, copied.required_runs) == (found.n_runs, found.required_runs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wanted": 2.0}, "power must lie"),
        ({"alpha": 0.0}, "alpha must lie"),
        ({"budget": -1.0}, "budget must be positive"),
        ({"costs": Costs(0.0, 1.0)}, "must cost something"),
        ({"sem": None}, "sem"),
        ({"sem": -1.0}, "cannot be negative"),
        ({"runs": 1}, "at least 2 runs"),
        ({"floor_episodes": 1}, "at least 2 episodes"),
    ],
)
def test_wrong_use_says_what_is_wrong(options, message):
    with pytest.raises(UsageError, match=message):
        gapfloor.power(**{**HEIST, **options})


def test_the_command_needs_three_numbers_and_prints_every_design(capsys):
    done = run(capsys, "power", "--delta", 0.88, "--sem", 0.29, "--runs", 6, "--budget", 12)
    assert done.code == 0
    for words in (
        "careful guess",
        "cheapest:",
        "with this floor:",
        "with 80% probability",
        "for a budget of 12:",
    ):
        assert words in done.out


def test_the_command_prints_what_the_function_returns(capsys, tmp_path):
    pyarrow.csv.write_csv(table(game_rows(test=2.4, n_runs=4)), tmp_path / "pilot.csv")
    document = document_of(run(capsys, "power", tmp_path / "pilot.csv", "--json", "--simulations", 0).out)
    assert document == gapfloor.power(tmp_path / "pilot.csv", n_simulations=0).to_dict()


def test_a_pilot_is_told_the_floor_that_equivalence_needs():
    advice = gapfloor.power(table(game_rows(n_runs=3, test=2.0)), n_simulations=0)
    needed = advice.comparisons[0].floor_episodes_for_equivalence
    assert needed is not None
    assert any(
        f"equivalent: {needed:,} floor episodes, with enough runs" in line for line in advice.sentences()
    )
