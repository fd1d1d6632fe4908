"""Two agents: what `analyse` says of them, reproduced, and the same of policies that were played into a store."""

import dataclasses
import math

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import small_policies
from gapfloor.analysis.apply import analyse
from gapfloor.analysis.episodes import read_inputs
from gapfloor.api.compare import compare
from gapfloor.api.evaluate import evaluate
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


SMALL = {"draws": [0], "episodes": 8, "slots": 4, "batch": 4, "workers": 1, "progress": False}
CARTPOLE = {**SMALL, "game": "gym:CartPole-v1", "rules": ["greedy"], "episodes": 4}


def test_two_policies_of_one_store_are_on_one_schedule_and_claim_these_runs_only(tmp_path):
    for agent, policy in (("first", "small_policies:linear"), ("second", "small_policies:other_linear")):
        evaluate(policy, game="fruitbot", rules="sampled", agent=agent, store=tmp_path, **SMALL)
    found = compare(tmp_path, agents=("first", "second"), games="fruitbot")
    for row in found.rows:
        assert math.isnan(row.difference.p)
        assert row.decision.call == "not tested"
        assert math.isfinite(row.floor)
        assert row.new_runs.value == pytest.approx(row.difference.value)
    assert any("these runs only" in line for line in found.sentences())
    expected = [plain(row) for row in analyse(tmp_path).encoders]
    assert [{name: plain(row)[name] for name in expected[0]} for row in found.rows] == expected


@pytest.mark.fast
@pytest.mark.parametrize(
    "source", ["small_policies:linear", "runs/*impala*", small_policies.linear, ["a", "b"]]
)
def test_a_policy_is_refused_with_the_command_that_plays_it(source):
    with pytest.raises(UsageError, match="gapfloor evaluate POLICY"):
        compare(source, source, agents=("a", "b"))


def test_stores_of_two_engines_or_options_are_not_compared(tmp_path):
    evaluate(lambda o: o[:, :2], agent="a", store=tmp_path / "one", **CARTPOLE)
    evaluate(
        lambda o: o[:, 2:], agent="c", store=tmp_path / "two", options={"max_episode_steps": 100}, **CARTPOLE
    )
    with pytest.raises(
        UsageError, match=r"played in gymnasium .* by one agent and in .*max_episode_steps=100"
    ):
        compare(tmp_path / "one", tmp_path / "two", agents=("a", "c"), games=["gym:CartPole-v1"])
