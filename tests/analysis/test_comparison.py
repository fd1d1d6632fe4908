"""Two agents selected from one study and compared, without a store or a policy."""

import pyarrow as pa
import pytest

from gapfloor.analysis.comparison import analyse_comparison, join_agents, select_agent
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.grouping import group
from gapfloor.errors import UsageError
from gapfloor.plan.model import Plan

pytestmark = pytest.mark.fast


def study(*, levels_of_b=range(6)):
    """Agent b returns exactly one more than agent a on every level, in three runs each."""
    rows = [
        {
            "game": "heist", "mode": "easy", "budget": "8M", "agent": agent, "seed": seed, "reference": "",
            "rule": "sampled", "level_set": level_set, "draw": 0, "slot": 0, "index": index,
            "level_seed": level, "episode_return": float(level % 3) + 0.1 * seed + (agent == "b"), "length": 9,
        }
        for agent in ("a", "b")
        for seed in (1, 2, 3)
        for level_set in ("train", "test")
        for index, level in enumerate(levels_of_b if agent == "b" else range(6))
    ]  # fmt: skip
    return group(read_inputs(pa.Table.from_pylist(rows)), Plan.paper())


def compared(episodes):
    first, second = (select_agent(episodes, agent, source="the table") for agent in ("a", "b"))
    return analyse_comparison(join_agents(first, second), plan=Plan.paper())


def test_a_constant_difference_is_found_on_both_level_sets_and_cancels_in_the_gap():
    found = compared(study())
    differences = {row.quantity: row.difference.value for row in found.rows}
    assert differences == pytest.approx({"train": -1.0, "test": -1.0, "gap": 0.0})
    assert found.row("heist", "sampled", "test").decision.call == "second higher"
    assert found.row("heist", "sampled", "gap").decision.call == "not distinguishable"


def test_runs_on_other_levels_are_refused():
    with pytest.raises(UsageError, match="did not play the same schedule"):
        compared(study(levels_of_b=range(1, 7)))


def test_an_agent_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="Unknown agent in the table 'c'"):
        select_agent(study(), "c", source="the table")
