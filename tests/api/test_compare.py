"""Two agents: what `analyse` says of them, reproduced, and the same from policies that are played now."""

import dataclasses
import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import small_policies
from gapfloor.analysis import analyse
from gapfloor.analysis.episodes import read_inputs
from gapfloor.api.compare import compare
from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.statistics.families import holm

AGENTS = ("IMPALA", "FPN")


@pytest.fixture(scope="module")
def episodes():
    """Two games of the paper-shaped study under two rules, one of them at both budgets."""
    import paper_shaped

    table = paper_shaped.load().episodes
    for name, values in (("game", ["fruitbot", "heist"]), ("rule", ["sampled", "greedy", "uniform"])):
        table = table.filter(pc.is_in(table[name], value_set=pa.array(values)))
    return read_inputs(table)


@pytest.fixture(scope="module")
def comparison(episodes):
    return compare(episodes, agents=AGENTS)


def plain(row):
    """Every field of a row, nested ones too, with null for what is not a number."""
    return jsonable(dataclasses.asdict(row))


@pytest.mark.fast
def test_it_says_of_two_encoders_exactly_what_analyse_says(episodes, comparison):
    expected = analyse(episodes).encoders
    assert len(comparison.rows) == len(expected) == 24
    for row, theirs in zip(comparison.rows, expected, strict=True):
        ours = plain(row)
        assert {name: ours[name] for name in plain(theirs)} == plain(theirs)


@pytest.mark.fast
def test_the_paper_rows_by_level_estimate_the_same_difference(comparison):
    for row in comparison.rows:
        assert row.new_runs.value == pytest.approx(row.difference.value, abs=1e-9)
        assert row.n_levels == {"train": 175, "test": 99, "gap": 274}.get(row.quantity)
        # New levels can only add to what new runs leave open.
        assert row.new_runs.se >= row.difference.se - 1e-9


@pytest.mark.fast
def test_holm_runs_over_the_games_of_a_rule_quantity_and_budget(comparison):
    family = [
        row for row in comparison.rows if (row.rule, row.quantity, row.budget) == ("sampled", "test", "8M")
    ]
    assert [row.game for row in family] == ["fruitbot", "heist"]
    assert [row.decision.family_size for row in family] == [2, 2]
    assert [row.decision.p_adjusted for row in family] == list(holm([row.difference.p for row in family]))
    assert [row.new_runs_p_adjusted for row in family] == list(holm([row.new_runs.p for row in family]))
    for row in family:
        higher = "first higher" if row.difference.value > 0 else "second higher"
        assert row.decision.call == (higher if row.decision.p_adjusted < 0.05 else "not distinguishable")


@pytest.mark.fast
def test_a_smaller_difference_needs_more_runs(episodes):
    arguments = {"agents": AGENTS, "games": ["fruitbot"], "rules": ["sampled"], "budgets": ["8M"]}
    large, small = (
        compare(episodes, detect=d, **arguments).row("fruitbot", "sampled", "test") for d in (3.0, 1.0)
    )
    assert small.runs_needed > large.runs_needed >= 2
    assert abs(small.assumed_difference) == 1.0


@pytest.mark.fast
@pytest.mark.parametrize("difference", [math.nan, math.inf, 1e200])
def test_a_difference_that_cannot_be_computed_with_is_refused(episodes, difference):
    with pytest.raises(UsageError, match="difference to detect must be 0 or between"):
        compare(episodes, agents=AGENTS, games=["heist"], detect=difference)


@pytest.mark.fast
def test_the_other_order_is_the_other_sign(episodes, comparison):
    turned = compare(episodes, agents=AGENTS[::-1], games=["heist"])
    for row in turned.rows:
        straight = comparison.row("heist", row.rule, row.quantity, budget=row.budget)
        assert row.difference.value == pytest.approx(-straight.difference.value)
        assert row.new_runs.p == pytest.approx(straight.new_runs.p)


@pytest.mark.fast
def test_one_agent_of_two_budgets_is_compared_under_two_names(episodes):
    found = compare(
        episodes, episodes, agents=("FPN", "FPN"), budgets=("8M", "25M"), games=["heist"], rules=["greedy"]
    )
    assert (found.agent_a, found.agent_b) == ("FPN 8M", "FPN 25M")
    assert {row.budget for row in found.rows} == {"8M v. 25M"}
    assert found.row("heist", "greedy", "train").n_runs[1] == 6


@pytest.mark.fast
def test_an_episode_file_without_levels_is_compared_over_runs_only(episode_rows):
    rows = [{name: value for name, value in row.items() if name != "level_seed"} for row in episode_rows]
    found = compare(pa.Table.from_pylist(rows), agents=("a", "b"))
    assert all(
        row.n_levels == 0 and math.isnan(row.new_runs.value) and math.isnan(row.these_runs_p_adjusted)
        for row in found.rows
    )
    assert all(math.isfinite(row.difference.p) for row in found.rows)
    assert any("levels" in note for note in found.notes)


@pytest.mark.fast
def test_runs_of_another_schedule_are_refused(episode_rows):
    rows = [row for row in episode_rows if not (row["agent"] == "b" and row["draw"] == 1)]
    with pytest.raises(UsageError, match="did not play the same schedule"):
        compare(pa.Table.from_pylist(rows), agents=("a", "b"))


@pytest.mark.fast
def test_a_run_that_was_measured_on_one_half_only_has_no_gap(episode_rows):
    rows = [
        row
        for row in episode_rows
        if not (row["agent"] == "a" and row["seed"] == 2 and row["level_set"] == "test")
        and not (row["agent"] == "b" and row["seed"] == 1 and row["level_set"] == "train")
    ]
    found = compare(pa.Table.from_pylist(rows), agents=("a", "b"))
    for row in found.rows:
        assert row.new_runs.value == pytest.approx(row.difference.value)
    assert found.row("heist", "greedy", "gap").n_runs[0] == 1


@pytest.mark.fast
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"agents": None}, "name the two agents, e.g. impala and fpn"),
        ({"agents": ("a", "c")}, "Unknown agent in .*: known: a, b"),
        ({"agents": ("a", "a")}, "named twice"),
        ({"games": ["starpilot"]}, "has no episodes of a for"),
        ({"budgets": ["1M", "2M", "3M"]}, "one budget, or one per agent"),
    ],
)
def test_what_cannot_be_compared_is_said(episode_rows, changes, words):
    table = pa.Table.from_pylist(episode_rows)
    with pytest.raises(UsageError, match=words):
        compare(table, **{"agents": ("a", "b"), **changes})


@pytest.mark.fast
def test_two_studies_whose_agents_are_not_named_are_asked_for(episode_rows):
    table = pa.Table.from_pylist(episode_rows)
    with pytest.raises(UsageError, match="holds the agents a, b: name the two"):
        compare(table, table)


def test_two_policies_are_played_on_one_schedule_and_claim_these_runs_only(tmp_path):
    arguments = {
        "agents": ("first", "second"), "games": ["fruitbot"], "rules": ["sampled"], "draws": [0], "episodes": 8,
        "slots": 4, "store": tmp_path, "batch": 4, "workers": 1,
    }  # fmt: skip
    found = compare("small_policies:linear", "small_policies:other_linear", **arguments)
    for row in found.rows:
        assert math.isnan(row.difference.p)
        assert row.decision.call == "not tested"
        assert math.isfinite(row.floor)
        assert row.new_runs.value == pytest.approx(row.difference.value)
    assert any("these runs only" in line for line in found.sentences())
    # The store that was filled is itself a source, and says the same.
    again = compare(tmp_path, agents=("first", "second"))
    assert again.to_dict()["rows"] == found.to_dict()["rows"]
    expected = [plain(row) for row in analyse(tmp_path).encoders]
    assert [{name: plain(row)[name] for name in expected[0]} for row in again.rows] == expected


def test_policies_are_compared_with_recorded_ones_of_another_loader(tmp_path):
    arguments = {
        "draws": [0],
        "episodes": 8,
        "slots": 4,
        "batch": 4,
        "workers": 1,
        "games": ["fruitbot"],
    }
    pair = [small_policies.LinearPolicy(), small_policies.LinearPolicy(seed=3)]
    compare(
        pair,
        "small_policies:other_linear",
        agents=("two", "one"),
        rules=["greedy"],
        store=tmp_path / "a",
        **arguments,
    )
    with pytest.raises(UsageError, match="did not play the same schedule"):
        compare(
            tmp_path / "a", "small_policies:linear", agents=("one", "new"), rules=["greedy"], store=tmp_path / "b",
            **{**arguments, "draws": [1]},
        )  # fmt: skip
    found = compare(
        tmp_path / "a",
        "small_policies:linear",
        agents=("one", "new"),
        rules=["greedy"],
        store=tmp_path / "b",
        **arguments,
    )
    row = found.row("fruitbot", "greedy", "test")
    assert row.n_runs == (1, 1)
    assert np.isfinite(row.new_runs.value)


def test_copies_and_unnamed_doubles_are_refused(tmp_path):
    arguments = {"games": ["fruitbot"], "rules": ["sampled"], "episodes": 8, "slots": 4, "store": tmp_path}
    with pytest.raises(UsageError, match="exactly the same content"):
        compare("small_policies:linear", "small_policies:linear", agents=("x", "y"), **arguments)
    with pytest.raises(UsageError, match="give them other names with --agents"):
        compare("small_policies:linear", "small_policies:other_linear", **arguments)
    assert not list(tmp_path.glob("cells/*"))


def test_games_of_other_engines_are_compared_by_their_full_names(tmp_path):
    arguments = {
        "agents": ("a", "b"), "games": ["gym:CartPole-v1"], "rules": ["greedy"], "draws": [0], "episodes": 4,
        "slots": 4, "batch": 4, "workers": 1,
    }  # fmt: skip
    found = compare(lambda o: o[:, :2], lambda o: -o[:, :2], store=tmp_path, **arguments)
    assert {row.game for row in found.rows} == {"CartPole-v1"}
    with pytest.raises(UsageError, match="is a group of games"):
        compare(lambda o: o[:, :2], lambda o: -o[:, :2], **{**arguments, "games": ["paper"]})


def test_episodes_of_two_engines_or_options_are_not_compared(tmp_path):
    arguments = {
        "games": ["gym:CartPole-v1"], "rules": ["greedy"], "draws": [0], "episodes": 4, "slots": 4,
        "batch": 4, "workers": 1,
    }  # fmt: skip
    compare(lambda o: o[:, :2], lambda o: -o[:, :2], agents=("a", "b"), store=tmp_path / "one", **arguments)
    longer = {**arguments, "options": {"max_episode_steps": 100}}
    with pytest.raises(
        UsageError, match=r"played in gymnasium .* by one agent and in .*max_episode_steps=100"
    ):
        compare(tmp_path / "one", lambda o: o[:, 2:], agents=("a", "c"), store=tmp_path / "two", **longer)
