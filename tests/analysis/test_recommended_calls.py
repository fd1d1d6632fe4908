"""Every call is that of the plan's method; what the other method says is in `other_method`."""

from __future__ import annotations

import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.plan.model import parse_plan
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
        assert {row.delta.method for row in results.floor_comparisons} == {method}
        assert {row.estimate.method for row in results.gaps} == {method}
        assert results.plan.method == method


@pytest.mark.parametrize("method", ["paper", "recommended"])
def test_the_methods_differ_at_three_runs_and_call_is_the_plans(method):
    episodes = game_rows(n_runs=3, test=2.17, run_values=(-0.12, 0.0, 0.12), noise_sd=0.8, level_sd=0.0)
    results = analyse(table(episodes), plan(f'[floor]\nmethod = "{method}"'))
    calls = {"paper": "above", "recommended": "not distinguishable"}
    assert held_out(results).call == calls.pop(method)
    assert {held_out(results.other_method).call} == set(calls.values())


def test_the_recommended_interval_excludes_zero_exactly_when_a_call_is_made():
    parts = [game_rows(game=f"g{i}", test=2.0 + 0.12 * i, seed=i) for i in range(8)]
    results = analyse(table(*parts))
    made = [row for row in results.floor_comparisons if row.level_set == "test"]
    assert {row.call for row in made} >= {"above"}
    for row in made:
        low, high = row.delta.interval
        assert (row.call in ("above", "below")) == (low > 0 or high < 0)


@pytest.mark.parametrize(("n", "label"), [(1, "not tested (1 run)"), (2, "not tested (2 runs)")])
@pytest.mark.parametrize("method", ["paper", "recommended"])
def test_fewer_runs_than_the_plan_asks_for_are_not_tested_by_either_method(n, label, method):
    chosen = plan(f'[floor]\nmethod = "{method}"\n[gaps]\nmethod = "{method}"')
    results = analyse(table(game_rows(n_runs=n)), chosen)
    assert held_out(results).decision.label == label
    assert results.gaps[0].call == "not tested"
    (count,) = [row for row in results.call_counts if row.level_set == "test"]
    assert (count.games, count.not_tested, count.not_distinguishable) == (1, 1, 0)


def test_the_least_number_of_runs_is_the_plans():
    episodes = table(game_rows(n_runs=4))
    assert held_out(analyse(episodes, plan("[floor]\nleast_runs = 4"))).call == "above"
    assert (
        held_out(analyse(episodes, plan("[floor]\nleast_runs = 5"))).decision.label == "not tested (4 runs)"
    )


def test_copies_of_a_run_do_not_make_a_call():
    two = repeated(repeated(game_rows(n_runs=1), seed=0, under=7), seed=0, under=8)
    row = held_out(analyse(table(two)))
    assert (row.n, row.n_copies) == (1, 2)
    assert row.decision.label == "not tested (1 run, 2 copies left out)"


def test_a_copy_among_enough_runs_is_left_out_of_the_recommended_call():
    row = held_out(analyse(table(repeated(game_rows(n_runs=4), seed=0, under=9))))
    assert (row.n, row.n_copies) == (4, 1)


def test_a_gap_without_level_seeds_is_not_tested_and_says_why():
    found = analyse(table(game_rows(train=8.0, has_levels=False)))
    assert found.gaps[0].decision.label == "not tested (no level seeds)"
    assert found.other_method.gaps[0].call == "train higher"


def test_a_gap_with_level_seeds_has_excess_interval_and_levels():
    found = analyse(table(game_rows(train=8.0))).gaps[0]
    assert found.call == "train higher"
    assert found.n_levels == (60, 60)
    assert found.estimate.low > 0


def test_the_json_has_the_calls_of_the_other_method_in_one_place():
    document = analyse(table(game_rows(n_runs=3))).to_dict()
    other = document["other_method"]
    assert other["method"] == "paper"
    assert document["floor_comparisons"][0]["delta"]["method"] == "recommended"
    assert other["floor_comparisons"][0]["decision"]["call"] == "above"
    assert other["gaps"][0]["decision"]["call"] in ("train higher", "test higher", "not distinguishable")
    assert document["gaps"][0]["n_levels"] == [60, 60]
