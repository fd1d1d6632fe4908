"""How many runs and floor episodes a study needs: searched together, from numbers or from a pilot."""

from __future__ import annotations

import dataclasses

import pyarrow.csv
import pytest

import gapfloor
from command_line import document_of, run
from gapfloor.errors import UsageError
from gapfloor.statistics.power import PlannedComparison
from known_truth import game_rows, repeated, table

pytestmark = pytest.mark.fast

#: Heist on training levels and coinrun under greedy actions, as the paper prints them, and bigfish.
HEIST = {"delta": 0.88, "sem": 0.29, "runs": 6, "floor_sem": 0.24, "floor_episodes": 384, "family": 8}
COINRUN = {"delta": 0.82, "sem": 0.62, "runs": 6, "floor_sem": 0.23, "floor_episodes": 384, "family": 8}
BIGFISH = {"delta": 1.98, "sem": 0.75, "runs": 6, "floor_sem": 0.06, "floor_episodes": 384, "family": 8}


def answer(numbers, **options):
    (row,) = gapfloor.power(**numbers, **options).comparisons
    return row


def power_of(numbers, n_runs, n_floor):
    run_sd, floor_sd = numbers["sem"] * 6**0.5, numbers["floor_sem"] * 384**0.5
    planned = PlannedComparison(numbers["delta"], run_sd, floor_sd, family_size=numbers["family"])
    return planned.power(n_runs, n_floor)


@pytest.mark.parametrize("numbers", [HEIST, COINRUN])
def test_a_better_floor_replaces_runs_that_no_study_could_train(numbers):
    found = answer(numbers)
    assert found.design.n_runs < 60
    assert found.design.n_floor > 384
    assert power_of(numbers, found.design.n_runs, found.design.n_floor) >= 0.8


def test_without_a_floor_a_careful_guess_is_used_and_said():
    known = answer({"delta": 1.98, "sem": 0.75, "runs": 6, "floor_sem": 0.75 * 6**0.5 / 2})
    guessed = answer({"delta": 1.98, "sem": 0.75, "runs": 6})
    assert (guessed.floor_is_guessed, known.floor_is_guessed) == (True, False)
    assert dataclasses.replace(guessed, floor_is_guessed=False) == known


def test_the_method_is_the_plans(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('name = "x"\n')
    assert gapfloor.power(**BIGFISH).method == "recommended"
    papers = gapfloor.power(**BIGFISH, plan=path)
    assert papers.method == "paper"
    # Three runs: Welch's test claims more power than the recommended one, whose level holds.
    few = {**BIGFISH, "runs": 3, "delta": 4.0}
    assert answer(few, plan=path).power_now > answer(few).power_now


def test_the_design_is_the_plans_too(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('name = "x"\n')
    papers = answer(BIGFISH, plan=path).design
    planned = PlannedComparison(1.98, 0.75 * 6**0.5, 0.06 * 384**0.5, method="paper", family_size=8)
    power = planned.power(papers.n_runs, papers.n_floor)
    assert papers.power == power >= 0.8


def test_the_copies_of_a_pilots_runs_do_not_count():
    rows = game_rows(test=2.4, n_runs=4)
    (found,) = gapfloor.power(table(rows)).comparisons
    assert (found.game, found.n_runs) == ("coinrun", 4)
    (copied,) = gapfloor.power(table(repeated(rows, seed=0, under=9))).comparisons
    assert (copied.n_runs, copied.design) == (found.n_runs, found.design)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"wanted": 2.0}, "power must lie"),
        ({"alpha": 0.0}, "alpha must lie"),
        ({"sem": None}, "sem"),
        ({"sem": -1.0}, "must be positive"),
        ({"runs": 1}, "at least 2 runs"),
        ({"floor_episodes": 1}, "at least 2 episodes"),
    ],
)
def test_wrong_use_says_what_is_wrong(options, message):
    with pytest.raises(UsageError, match=message):
        gapfloor.power(**{**HEIST, **options})


def test_the_command_needs_three_numbers_and_prints_what_is_needed(capsys):
    done = run(capsys, "power", "--delta", 0.88, "--sem", 0.29, "--runs", 6)
    assert done.code == 0
    for words in ("careful guess", "needed runs", "needed episodes", "if skewed"):
        assert words in done.out


def test_the_command_prints_what_the_function_returns(capsys, tmp_path):
    pyarrow.csv.write_csv(table(game_rows(test=2.4, n_runs=4)), tmp_path / "pilot.csv")
    document = document_of(run(capsys, "power", tmp_path / "pilot.csv", "--json").out)
    assert document == gapfloor.power(tmp_path / "pilot.csv").to_dict()
