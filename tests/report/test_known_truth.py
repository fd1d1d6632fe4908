"""What the verdict says about small files whose truth is known."""

import pytest

from gapfloor.analysis import analyse
from gapfloor.report.findings import Findings
from gapfloor.report.verdict import build_verdicts
from known_truth import game_rows, repeated, table

pytestmark = pytest.mark.fast


def verdict(rows):
    return build_verdicts(Findings(analyse(table(rows))))[0]


@pytest.mark.parametrize(
    ("changes", "badge", "supports"),
    [
        ({"train": 8.0}, "above the floor", "what new levels cost"),
        ({}, "above the floor", "transfers"),
        ({"train": 8.0, "floor_train": 4.0}, "above the floor", "transfers"),
        ({"train": 8.0, "has_levels": False}, "above the floor", "not established"),
        ({"train": 6.0, "test": 2.0, "noise_sd": 2.0}, None, "learnt about the training levels"),
        (
            {"train": 0.5, "test": 0.5, "run_values": (-0.2, -0.1, 0.0, 0.0, 0.1, 0.2)},
            "below the floor",
            "worse",
        ),
        ({"n_runs": 1}, "not tested", "not tested (1 run)"),
        ({"n_runs": 2}, "not tested", "not tested (2 runs)"),
    ],
)
def test_the_reading_follows_from_what_is_true(changes, badge, supports):
    said = verdict(game_rows(**changes))
    assert badge in (None, said.badge)
    assert supports in said.supports


@pytest.mark.parametrize(
    "changes", [{}, {"train": 8.0, "floor_train": 4.0}, {"has_levels": False, "train": 8.0}]
)
def test_new_levels_are_not_said_to_cost_what_they_do_not(changes):
    assert "what new levels cost" not in verdict(game_rows(**changes)).supports


def test_copies_of_one_run_are_named_in_the_verdict():
    said = verdict(repeated(repeated(game_rows(n_runs=1), seed=0, under=7), seed=0, under=8))
    assert said.badge == "not tested"
    assert any("2 copies left out" in remark for remark in said.remarks)


def test_equal_agents_are_not_said_to_differ_and_unequal_ones_are():
    same = verdict(game_rows(agents=("a", "b"), n_runs=4))
    assert not any("Agents differ" in remark for remark in same.remarks)
    rows = game_rows(agents=("a", "b"), n_runs=4)
    apart = [{**row, "episode_return": row["episode_return"] + 3 * (row["agent"] == "b")} for row in rows]
    assert any("Agents differ: a scores" in remark for remark in verdict(apart).remarks)
