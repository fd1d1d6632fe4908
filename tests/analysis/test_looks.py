"""Analyses by a plan with looks, on small files whose truth is known."""

from __future__ import annotations

import pyarrow.csv
import pytest

from command_line import run
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


def by_plan(rows, text):
    """The comparisons on held-out levels."""
    results = analyse(rows, parse_plan(text, source="x"))
    return [row for row in results.floor_comparisons if row.level_set == "test"]


@pytest.fixture(scope="module")
def found():
    return by_plan(study(), plan())


def test_each_game_stops_or_says_how_many_runs_it_needs(found):
    said = {row.game: (row.call, row.look.advice, row.look.runs_used, row.look.more_runs) for row in found}
    assert said == {
        "coinrun": ("above", "stop: called", 6, 0),
        "heist": ("not distinguishable", "continue", 6, 3),
        "miner": ("not distinguishable", "continue", 3, 2),
    }


def test_games_that_have_not_begun_count_in_the_family(found):
    fewer = by_plan(study(), plan(GAMES.replace(', "maze"', "")))
    assert fewer[0].decision.p_adjusted == pytest.approx(found[0].decision.p_adjusted * 3 / 4, rel=0.02)


def test_runs_count_in_the_order_of_their_seeds_and_not_of_rows(found):
    again = by_plan(study(shuffled=True), plan())
    assert [(row.game, row.look) for row in again] == [(row.game, row.look) for row in found]
    assert [row.delta.value for row in again] == pytest.approx([row.delta.value for row in found])


def test_after_the_last_look_a_game_without_a_call_is_finished_and_may_be_equivalent():
    rows = table(game_rows(test=2.0, train=2.0, n_runs=6, run_sd=0.05, repeats=8))
    (said,) = by_plan(rows, plan("", "[3, 6]"))
    assert (said.look.advice, said.call) == ("stop: all looks used", "equivalent")
    (earlier,) = by_plan(rows, plan("", "[3, 6, 9]"))
    assert earlier.call == "not distinguishable"


def test_copies_of_a_run_do_not_reach_a_look():
    rows = game_rows(n_runs=2)
    copies = [{**row, "seed": 7} for row in rows if row["seed"] == 0]
    (said,) = by_plan(table(rows, copies), plan("", "[3, 6]"))
    assert (said.look.runs, said.look.more_runs) == (2, 1)


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
    said = analyse(study(), path).floor_comparisons[0]
    assert said.status == "exploratory"
    assert "scope.games" in said.exploratory_reason


@pytest.mark.parametrize(
    ("content", "message"),
    [(plan("runs = 6\n" + GAMES), "leave one of them out"), (plan(looks="[2, 4]"), "at least 3")],
)
def test_a_plan_that_cannot_be_followed_is_refused(content, message):
    with pytest.raises(UsageError, match=message):
        parse_plan(content, source="x")


def test_the_command_says_how_many_runs_to_train(tmp_path, capsys):
    pyarrow.csv.write_csv(study(), tmp_path / "episodes.csv")
    (tmp_path / "plan.toml").write_text(plan())
    done = run(capsys, "analyse", tmp_path / "episodes.csv", "--plan", tmp_path / "plan.toml")
    assert done.code == 0
    words = " ".join(done.out.split())
    assert "Looks at 3, 6, 9 runs. Runs to train before the next look: heist at 8M 3, miner at 8M 2." in words
    assert "maze, 8M: the plan names it; no episodes yet" in done.err
