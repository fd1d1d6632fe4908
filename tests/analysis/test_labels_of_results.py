"""What results are called where data were chosen, dropped or relabelled: refused, or with what the plan left open."""

from __future__ import annotations

import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.errors import CheckFailedError
from gapfloor.plan.lock import lock_path, lock_plan
from known_truth import game_rows, repeated, table

pytestmark = pytest.mark.fast

OPEN = '[scope]\nrules = ["sampled"]\n'
FIXED = f"""{OPEN}agents = ["a"]
seeds = ["0", "1", "2", "3"]
draws = 2
episodes = 120
[scope.games]
8M = ["coinrun", "heist"]
"""


def study(*, without=lambda row: False, change=lambda row: {}):
    rows = [
        {**row, "draw": draw, **change(row)}
        for game, seed in (("coinrun", 0), ("heist", 1))
        for row in game_rows(game=game, n_runs=4, seed=seed)
        for draw in (0, 1)
    ]
    return table([row for row in rows if not without(row)])


@pytest.fixture
def used(tmp_path):
    """The plan as an analysis reports it, by a plan that was locked before there were any cells."""

    def plan_of(text, rows):
        path = tmp_path / "plan.toml"
        path.write_text(f'name = "x"\n[floor]\nmethod = "recommended"\n[agents]\npooled = false\n{text}')
        for each in (lock_path(path), path.with_suffix(".lock-history")):
            each.unlink(missing_ok=True)
        lock_plan(path, cells_seen=0, seen_in="no cells")
        return analyse(rows, path).plan

    return plan_of


WAYS = {
    "one game analysed alone": study(without=lambda row: row["game"] == "heist"),
    "one run dropped": study(without=lambda row: row["seed"] == 3),
    "one run of one game dropped": study(without=lambda row: (row["game"], row["seed"]) == ("heist", 3)),
    "one draw dropped": study(without=lambda row: row["draw"] == 1),
    "one seed replaced": study(change=lambda row: {"seed": 9} if row["seed"] == 3 else {}),
    "a family per game by a label": study(
        change=lambda row: {"budget": row["budget"] and f"8M {row['game']}"}
    ),
    "a family per game by the agent's name": study(
        change=lambda row: {"agent": row["agent"] and f"a {row['game']}"}
    ),
    "a copy instead of a run": table(
        repeated([row for row in study().to_pylist() if row["seed"] != 3], seed=0, under=3)
    ),
}


def test_a_study_as_planned_is_pre_registered_and_leaves_nothing_open(used):
    plan = used(FIXED, study())
    assert plan.label.startswith("pre-registered")
    assert "leaves open" not in plan.label


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_that_fixes_everything_is_not_applied_to_it(used, way):
    with pytest.raises(CheckFailedError, match="The plan stops the analysis"):
        used(FIXED, WAYS[way])


@pytest.mark.parametrize("way", WAYS)
def test_a_plan_that_fixes_nothing_says_so_in_its_label(used, way):
    assert used(OPEN, WAYS[way]).label.endswith("leaves open: games, agents, runs, seeds, draws, episodes)")


def test_a_plan_that_fixes_the_number_of_runs_leaves_their_seeds_open(used):
    plan = used(FIXED.replace('seeds = ["0", "1", "2", "3"]', "runs = 4"), WAYS["one seed replaced"])
    assert plan.label.endswith("leaves open: seeds)")
