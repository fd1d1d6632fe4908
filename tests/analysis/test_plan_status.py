"""What a result may be called depends on the lock, and the lock on what had been seen."""

from __future__ import annotations

import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.errors import CheckFailedError
from gapfloor.plan.lock import add_addendum, lock_plan
from gapfloor.plan.model import builtin_text

pytestmark = pytest.mark.fast


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(builtin_text("paper"))
    return path


def with_merged(rows):
    return rows + [{**row, "rule": "merged"} for row in rows if row["rule"] == "greedy"]


def statuses(rows):
    return {row.status for row in rows}


def test_without_a_plan_everything_is_exploratory(rows, as_table):
    results = analyse(as_table(rows))
    assert results.plan.status == "exploratory"
    assert statuses(results.floor_comparisons + results.gaps + results.pairs) == {"exploratory"}
    assert "no plan was given" in results.gaps[0].exploratory_reason


def test_a_plan_that_is_not_locked_makes_nothing_confirmatory(rows, as_table, plan_file):
    results = analyse(as_table(rows), plan_file)
    assert statuses(results.floor_comparisons) == {"exploratory"}
    assert results.gaps[0].exploratory_reason == "the plan is not locked"


@pytest.mark.parametrize(("cells", "status"), [(0, "pre-registered"), (7, "pre-specified")])
def test_a_locked_plan_names_its_results_by_what_had_been_seen(rows, as_table, plan_file, cells, status):
    lock = lock_plan(plan_file, cells_seen=cells, seen_in="declared")
    results = analyse(as_table(rows), plan_file)
    assert statuses(results.floor_comparisons + results.gaps + results.pairs + results.encoders) == {status}
    assert {row.plan_hash for row in results.floor_comparisons} == {lock.plan.hash}
    assert (results.plan.status, results.plan.cells_seen) == (status, cells)


def test_a_rule_that_the_plan_does_not_name_is_exploratory_in_its_own_family(rows, as_table, plan_file):
    lock_plan(plan_file, cells_seen=0, seen_in="declared")
    results = analyse(as_table(with_merged(rows)), plan_file)
    by_rule = {row.rule: row for row in results.floor_comparisons if row.level_set == "test"}
    assert by_rule["greedy"].status == "pre-registered"
    assert by_rule["merged"].status == "exploratory"
    assert by_rule["merged"].exploratory_reason == "the plan does not name the rule 'merged'"
    assert by_rule["merged"].decision.family == "exploratory, floor: merged, test, 8M"


def test_an_addendum_names_its_rule_with_its_own_family_and_hash(rows, as_table, plan_file, tmp_path):
    lock_plan(plan_file, cells_seen=36, seen_in="declared")
    before = analyse(as_table(rows), plan_file)
    extra = tmp_path / "merged.toml"
    extra.write_text(builtin_text("merged"))
    lock = add_addendum(plan_file, extra, cells_seen=0, seen_in="declared")
    results = analyse(as_table(with_merged(rows)), plan_file)
    rows_of = {(row.rule, row.level_set): row for row in results.floor_comparisons if row.game == "heist"}
    merged = rows_of["merged", "test"]
    assert (merged.status, merged.plan_hash) == ("pre-registered", lock.addenda[0].hash)
    assert merged.decision.family == "merged argmax, floor: merged, test, 8M"
    assert rows_of["merged", "train"].status == "exploratory"
    pair = next(r for r in results.pairs if (r.rule, r.quantity) == ("merged", "test"))
    assert pair.status == "pre-registered"
    unmoved = [row for row in results.floor_comparisons if row.rule != "merged"]
    assert tuple(unmoved) == before.floor_comparisons


def test_games_outside_the_scope_are_exploratory_and_games_it_lacks_stop_it(rows, as_table, plan_file):
    text = plan_file.read_text() + '\n[scope.games]\n8M = ["heist"]\n'
    plan_file.write_text(text)
    lock_plan(plan_file, cells_seen=0, seen_in="declared")
    results = analyse(as_table(rows), plan_file)
    assert {(row.game, row.status) for row in results.floor_comparisons} == {
        ("heist", "pre-registered"), ("coinrun", "exploratory"),
    }  # fmt: skip
    with pytest.raises(CheckFailedError, match="stops the analysis when a cell is missing"):
        analyse(as_table([row for row in rows if row["game"] == "coinrun"]), plan_file)


def test_a_missing_cell_stops_a_locked_plan_unless_it_says_otherwise(rows, as_table, plan_file, tmp_path):
    short = [row for row in rows if (row["agent"], row["seed"], row["level_set"]) != ("a", 1, "test")]
    lock_plan(plan_file, cells_seen=0, seen_in="declared")
    with pytest.raises(CheckFailedError, match="a seed 1, sampled, test: the run lacks this half"):
        analyse(as_table(short), plan_file)
    lenient = tmp_path / "lenient.toml"
    lenient.write_text(builtin_text("paper").replace("cell_missing = true", "cell_missing = false"))
    lock_plan(lenient, cells_seen=0, seen_in="declared")
    assert analyse(as_table(short), lenient).problems


def test_a_plan_changed_after_locking_is_refused(rows, as_table, plan_file):
    lock_plan(plan_file, cells_seen=0, seen_in="declared")
    plan_file.write_text(plan_file.read_text().replace("margin_minimum = 0.25", "margin_minimum = 0.5"))
    with pytest.raises(CheckFailedError, match=r"\+margin_minimum = 0.5"):
        analyse(as_table(rows), plan_file)


def test_the_plans_alpha_margin_and_resamples_are_used(rows, as_table, plan_file):
    text = (
        builtin_text("paper")
        .replace("alpha = 0.05", "alpha = 1e-12")
        .replace("minimum = 0.25", "minimum = 50.0")
    )
    plan_file.write_text(text)
    results = analyse(as_table(rows), plan_file)
    assert {row.equivalence.margin for row in results.floor_comparisons} == {50.0}
    assert "above" not in {row.decision.call for row in results.floor_comparisons}
