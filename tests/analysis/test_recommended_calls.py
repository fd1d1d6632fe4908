"""Every comparison and gap has the recommended call next to the paper's, and `call` is that of the plan's method."""

from __future__ import annotations

import numpy as np
import pytest

from gapfloor.analysis import analyse
from gapfloor.plan.model import parse_plan
from gapfloor.statistics.reference_calls import call_reference_family, compare_strata_to_reference
from known_truth import game_rows, repeated, table

pytestmark = pytest.mark.fast


def plan(lines: str = ""):
    return parse_plan(f'name = "small"\n{lines}', source="plan.toml")


def held_out(results):
    (row,) = [row for row in results.floor_comparisons if row.level_set == "test"]
    return row


def test_without_a_plan_the_recommended_method_calls_and_a_plan_without_the_setting_keeps_the_papers():
    episodes = table(game_rows())
    for given, method in ((None, "recommended"), (plan(), "paper")):
        results = analyse(episodes, given)
        assert {row.method for row in (*results.floor_comparisons, *results.gaps)} == {method}
        assert (results.plan.floor_method, results.plan.gap_method) == (method, method)


@pytest.mark.parametrize("method", ["paper", "recommended"])
def test_the_methods_differ_at_three_runs_and_call_is_the_plans(method):
    episodes = game_rows(n_runs=3, test=2.17, run_values=(-0.12, 0.0, 0.12), noise_sd=0.8, level_sd=0.0)
    row = held_out(analyse(table(episodes), plan(f'[floor]\nmethod = "{method}"')))
    assert (row.decision.call, row.recommended.call) == ("above", "not distinguishable")
    assert row.call == {"paper": "above", "recommended": "not distinguishable"}[method]


def test_the_recommended_interval_excludes_zero_exactly_when_a_call_is_made():
    parts = [game_rows(game=f"g{i}", test=2.0 + 0.12 * i, seed=i) for i in range(8)]
    results = analyse(table(*parts))
    made = [row for row in results.floor_comparisons if row.level_set == "test"]
    assert {row.call for row in made} >= {"above"}
    for row in made:
        low, high = row.call_interval
        assert (row.call in ("above", "below")) == (low > 0 or high < 0)


@pytest.mark.parametrize(("n", "label"), [(1, "not tested (1 run)"), (2, "not tested (2 runs)")])
@pytest.mark.parametrize("method", ["paper", "recommended"])
def test_fewer_runs_than_the_plan_asks_for_are_not_tested_by_either_method(n, label, method):
    chosen = plan(f'[floor]\nmethod = "{method}"\n[gaps]\nmethod = "{method}"')
    results = analyse(table(game_rows(n_runs=n)), chosen)
    assert held_out(results).call_label == label
    assert results.gaps[0].call == "not tested"
    (count,) = [row for row in results.plan_call_counts if row.level_set == "test"]
    assert (count.games, count.not_tested, count.not_distinguishable) == (1, 1, 0)


def test_the_least_number_of_runs_is_the_plans():
    episodes = table(game_rows(n_runs=4))
    assert held_out(analyse(episodes, plan("[floor]\nleast_runs = 4"))).call == "above"
    assert held_out(analyse(episodes, plan("[floor]\nleast_runs = 5"))).call_label == "not tested (4 runs)"


def test_copies_of_a_run_do_not_make_a_call():
    two = repeated(repeated(game_rows(n_runs=1), seed=0, under=7), seed=0, under=8)
    row = held_out(analyse(table(two)))
    assert (row.n, row.n_copies) == (3, 2)
    assert row.call_label == "not tested (1 run, 2 copies left out)"


def test_a_copy_among_enough_runs_is_left_out_of_the_recommended_call():
    row = held_out(analyse(table(repeated(game_rows(n_runs=4), seed=0, under=9))))
    assert (row.n, row.recommended.test.n) == (5, 4)


def test_a_gap_without_level_seeds_is_not_tested_and_says_why():
    found = analyse(table(game_rows(train=8.0, has_levels=False))).gaps[0]
    assert found.call_label == "not tested (no level seeds)"
    assert found.paper_call == "train higher"


def test_a_gap_with_level_seeds_has_excess_interval_and_levels():
    found = analyse(table(game_rows(train=8.0))).gaps[0]
    assert found.call == "train higher"
    assert found.recommended.test.n_levels == (60, 60)
    assert found.recommended.interval[0] > 0


def test_the_json_has_both_calls_of_both_kinds_of_rows():
    document = analyse(table(game_rows(n_runs=3))).to_dict()
    comparison, gap = document["floor_comparisons"][0], document["gaps"][0]
    assert comparison["call"] == comparison["recommended"]["call"]
    assert comparison["method"] == gap["method"] == "recommended"
    assert comparison["paper_call"] == "above"
    assert gap["call"] == gap["recommended"]["call"]
    assert gap["paper_call"] in ("train higher", "test higher", "not distinguishable")
    assert gap["recommended"]["test"]["n_levels"] == [60, 60]


def test_the_call_with_agents_as_strata_is_the_recommended_one():
    rows = game_rows(agents=("a", "b"), n_runs=3, test=2.6)
    found = analyse(table(rows)).floor_comparisons
    (robust,) = (row.robust for row in found if row.level_set == "test" and row.agent is None)
    by_run: dict[tuple[str, int], list[float]] = {}
    floor = []
    for row in rows:
        if row["level_set"] != "test":
            continue
        if row["rule"] == "uniform":
            floor.append(row["episode_return"])
        else:
            by_run.setdefault((row["agent"], row["seed"]), []).append(row["episode_return"])
    agents = [[np.mean(by_run[run]) for run in by_run if run[0] == agent] for agent in ("a", "b")]
    (expected,) = call_reference_family([compare_strata_to_reference(agents, floor)])
    assert robust.strata is not None
    assert (robust.strata.call, robust.strata.p_holm) == (expected.call, pytest.approx(expected.p_holm))
    too_few = analyse(table(game_rows(agents=("a", "b"), n_runs=2))).floor_comparisons
    assert all(row.robust.strata is None for row in too_few)
