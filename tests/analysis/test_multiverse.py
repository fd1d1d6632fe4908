"""Which calls flip under other choices of the analysis."""

from __future__ import annotations

import csv

import pytest

from command_line import run
from gapfloor.analysis.apply import analyse
from gapfloor.plan.model import Plan
from known_truth import game_rows, table

ONE_LOW_RUN = (0.0, 0.1, -0.1, 0.05, -0.05, -6.0)


def one_run_decides():
    """Five runs well above the floor of 2, and one far below it."""
    parts = [
        {**row, "draw": index % 3}
        for index, row in enumerate(game_rows(train=4, test=4, run_values=ONE_LOW_RUN))
    ]
    return table(parts)


def flips(row):
    return {flip.choice: flip.call for flip in row.flips}


@pytest.mark.fast
def test_the_one_run_that_decides_a_call_is_named():
    results = analyse(one_run_decides(), Plan.paper())
    (row,) = [row for row in results.sensitivity if row.quantity == "test"]
    assert row.call == "not distinguishable"
    assert {choice: call for choice, call in flips(row).items() if "seed" in choice} == {
        "without a seed 5": "above"
    }
    # Six runs, three draws, the recommended tests, new levels.
    assert row.n_choices == 11
    assert row.n_stays == 11 - len(row.flips)


@pytest.mark.fast
def test_a_choice_that_leaves_too_few_runs_does_not_count():
    rows = analyse(table(game_rows(n_runs=3)), Plan.paper()).sensitivity
    # One draw and three runs: neither can be left out. The other method and new levels remain.
    assert {row.n_choices for row in rows} == {2}
    rows = analyse(table(game_rows(n_runs=2)), Plan.paper()).sensitivity
    assert {choice for row in rows for choice in flips(row)} <= {"new levels"}


def test_the_papers_own_calls_and_the_choices_that_flip_them(paper, paper_results):
    rows = {
        (row.game, row.rule, row.quantity): row for row in paper_results.sensitivity if row.budget == "8M"
    }
    # The other method, six runs, three draws, either encoder alone, new levels.
    assert {row.n_choices for row in rows.values() if row.quantity != "gap"} == {13}
    assert not rows["coinrun", "sampled", "test"].flips
    dodgeball = rows["dodgeball", "sampled", "test"]
    assert dodgeball.call == "above"
    assert flips(dodgeball) == dict.fromkeys(
        ("without FPN seed 1", "without IMPALA seed 2", "without draw 2", "FPN alone"), "not distinguishable"
    )
    called = {
        (row.game, row.rule, row.level_set): row.call
        for row in paper_results.floor_comparisons
        if row.budget == "8M"
    }
    assert called == {key: row.call for key, row in rows.items() if row.quantity != "gap"}
    assert paper_results.other_method is not None
    for other in paper_results.other_method.floor_comparisons:
        if other.budget == "8M" and other.call != "not tested":
            row = rows[other.game, other.rule, other.level_set]
            assert flips(row).get("the recommended tests", row.call) == other.call


def test_leaving_a_run_or_a_draw_out_is_analysing_without_it(paper):
    """The choices of one game, each against an analysis of episodes without that run or draw."""
    import numpy as np

    columns = {
        name: paper.episodes[name].to_numpy(zero_copy_only=False).astype(str)
        for name in ("agent", "seed", "draw")
    }
    is_game = paper.episodes["game"].to_numpy(zero_copy_only=False) == "dodgeball"
    for plan in (Plan.paper(), None):
        rows = analyse(paper.episodes.filter(is_game), plan).sensitivity
        some = {(row.agent, row.budget, row.rule, row.quantity): row for row in rows}
        for choice, left_out in (
            ("without FPN seed 1", (columns["agent"] == "FPN") & (columns["seed"] == "1")),
            ("without draw 2", columns["draw"] == "2"),
        ):
            less = analyse(paper.episodes.filter(is_game & ~np.asarray(left_out)), plan)
            for row in (*less.floor_comparisons, *less.gaps):
                whole = some[row.agent, row.budget, row.rule, getattr(row, "level_set", "") or "gap"]
                if row.call != "not tested" and (choice == "without draw 2" or row.agent is None):
                    assert flips(whole).get(choice, whole.call) == row.call, (choice, row)


def test_the_report_has_the_table_in_every_format(tmp_path, capsys):
    import pyarrow.csv

    pyarrow.csv.write_csv(one_run_decides(), tmp_path / "episodes.csv")
    code, _, err = run(capsys, "report", tmp_path / "episodes.csv", "--out", tmp_path / "report")
    assert code == 0, err
    (written,) = (tmp_path / "report").rglob("multiverse.csv")
    rows = list(csv.DictReader(written.open()))
    assert [row["quantity"] for row in rows] == ["train", "test", "gap"]
    assert all(int(row["stays"]) <= int(row["choices"]) for row in rows)
    assert list((tmp_path / "report").rglob("multiverse.tex"))
    assert "Which calls flip under other choices" in (tmp_path / "report" / "index.html").read_text()
