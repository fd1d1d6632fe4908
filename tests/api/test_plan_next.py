"""What a plan with looks says next, on small files whose truth is known."""

from __future__ import annotations

import dataclasses

import pyarrow.csv
import pytest

import gapfloor
from command_line import document_of, run
from gapfloor.analysis import analyse
from gapfloor.errors import UsageError
from gapfloor.plan.lock import lock_plan
from gapfloor.plan.model import parse_plan
from known_truth import game_rows, table

pytestmark = pytest.mark.fast

GAMES = '[scope.games]\n8M = ["coinrun", "heist", "miner", "maze"]\n'


def plan(games=GAMES, looks="[3, 6, 9]"):
    text = f'name = "grow"\n[scope]\nrules = ["sampled"]\n{games}[floor]\nmethod = "recommended"\n'
    return text + f"looks = {looks}\n[intervals]\nresamples = 100\n"


def study(n=(6, 6, 4), *, shuffled=False):
    parts = [
        game_rows(game=game, test=test, train=test, n_runs=runs, seed=at)
        for at, (game, test, runs) in enumerate(
            zip(("coinrun", "heist", "miner"), (6.0, 2.1, 2.3), n, strict=True)
        )
    ]
    rows = [row for part in parts for row in part]
    return table(rows[::-1] if shuffled else rows)


@pytest.fixture(scope="module")
def found():
    return gapfloor.Plan.next(study(), parse_plan(plan(), source="x"))


def test_each_game_stops_or_says_how_many_runs_it_needs(found):
    said = {game.game: (game.call, game.advice, game.runs_used, game.more_runs) for game in found.games}
    assert said == {
        "coinrun": ("above", "stop: called", 6, 0),
        "heist": ("not distinguishable", "continue", 6, 3),
        "miner": ("not distinguishable", "continue", 3, 2),
        "maze": ("not tested", "continue", 0, 3),
    }
    assert (found.more_runs, found.is_finished) == (8, False)


def test_the_analysis_makes_the_same_calls(found):
    rows = analyse(study(), parse_plan(plan(), source="x")).floor_comparisons
    calls = {
        row.game: (row.call, row.decision.p_adjusted, row.delta.interval)
        for row in rows
        if row.level_set == "test"
    }
    assert calls == {game.game: (game.call, game.p, game.interval) for game in found.games if game.runs}


def test_games_that_have_not_begun_count_in_the_family(found):
    begun = GAMES.replace(', "maze"', "")
    fewer = gapfloor.Plan.next(study(), parse_plan(plan(begun), source="x"))
    assert fewer.games[0].p == pytest.approx(found.games[0].p * 3 / 4, rel=0.02)


def test_runs_count_in_the_order_of_their_seeds_and_not_of_rows(found):
    again = gapfloor.Plan.next(study(shuffled=True), parse_plan(plan(), source="x"))
    assert [dataclasses.astuple(game)[:4] for game in again.games[:3]] == [
        dataclasses.astuple(game)[:4] for game in found.games[:3]
    ]
    assert [game.delta for game in again.games[:3]] == pytest.approx([game.delta for game in found.games[:3]])


def test_after_the_last_look_a_game_without_a_call_is_finished_and_may_be_equivalent():
    rows = table(game_rows(test=2.0, train=2.0, n_runs=6, run_sd=0.05, repeats=8))
    said = gapfloor.Plan.next(rows, parse_plan(plan("", "[3, 6]"), source="x"))
    assert (said.games[0].advice, said.games[0].call) == ("stop: all looks used", "equivalent")
    earlier = gapfloor.Plan.next(rows, parse_plan(plan("", "[3, 6, 9]"), source="x"))
    assert earlier.games[0].call == "not distinguishable"


def test_copies_of_a_run_do_not_reach_a_look():
    rows = game_rows(n_runs=2)
    copies = [{**row, "seed": 7} for row in rows if row["seed"] == 0]
    said = gapfloor.Plan.next(table(rows, copies), parse_plan(plan("", "[3, 6]"), source="x"))
    assert (said.games[0].runs, said.games[0].more_runs) == (2, 1)


def test_only_calls_against_the_floor_are_named_by_a_plan_with_looks(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(plan())
    lock_plan(path, cells_seen=0, seen_in="declared")
    results = analyse(study(), path)
    assert {row.status for row in results.floor_comparisons} == {"pre-registered"}
    assert {row.status for row in results.gaps} == {"exploratory"}
    assert "looks" in results.gaps[0].exploratory_reason


def test_looks_without_named_games_are_exploratory_because_the_family_is_open(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(plan(""))
    lock_plan(path, cells_seen=0, seen_in="declared")
    said = gapfloor.Plan.next(study(), path)
    assert said.status == "exploratory"
    assert "scope.games" in said.reason


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('name = "x"\n', "has no looks"),
        (plan("runs = 6\n" + GAMES), "leave one of them out"),
        (plan(looks="[2, 4]"), "at least 3"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused(content, message):
    with pytest.raises(UsageError, match=message):
        gapfloor.Plan.next(study(), parse_plan(content, source="x"))


def test_a_rule_without_runs_is_refused():
    with pytest.raises(UsageError, match="no runs with the rule 'merged'"):
        gapfloor.Plan.next(study(), parse_plan(plan(), source="x"), rule="merged")


def test_the_command_prints_the_next_runs(tmp_path, capsys, found):
    pyarrow.csv.write_csv(study(), tmp_path / "episodes.csv")
    (tmp_path / "plan.toml").write_text(plan())
    arguments = ("plan", "next", tmp_path / "episodes.csv", "--plan", tmp_path / "plan.toml")
    done = run(capsys, *arguments)
    assert done.code == 0
    assert "Train 8 more runs: heist at 8M 3, miner at 8M 2, maze at 8M 3." in done.out
    document = document_of(run(capsys, *arguments, "--json").out)
    assert document["more_runs"] == 8
    assert document["games"][0]["call"] == "above"
