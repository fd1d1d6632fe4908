"""A plan is fixed once; whatever changes afterwards is refused and shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.plan.lock import (
    add_addendum,
    counted_by_time,
    load_plan,
    lock_path,
    lock_plan,
    read_lock,
)
from gapfloor.plan.model import Plan, builtin_text, content_hash, parse_addendum, parse_plan

pytestmark = pytest.mark.fast

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(builtin_text("paper"))
    return path


@pytest.fixture
def addendum_file(tmp_path):
    path = tmp_path / "merged.toml"
    path.write_text(builtin_text("merged"))
    return path


def lock(path, cells=0):
    return lock_plan(path, cells_seen=cells, seen_in="declared", now=NOON)


def test_the_built_in_plan_says_every_default_out_loud():
    """The file spells every setting, so that reading it shows the whole plan."""
    assert Plan.paper() == parse_plan('name = "paper"', source="x")
    assert Plan.paper() == parse_plan(builtin_text("paper"), source="x")


def test_no_cell_seen_is_pre_registered_and_one_is_pre_specified(plan_file, tmp_path):
    assert lock(plan_file).plan.status == "pre-registered"
    other = tmp_path / "other.toml"
    other.write_text(builtin_text("paper"))
    assert lock(other, cells=1).plan.status == "pre-specified"


def test_a_lock_keeps_hash_time_and_cells_seen(plan_file):
    lock(plan_file, cells=336)
    plan = load_plan(plan_file)
    assert plan.hash == content_hash(Plan.paper())
    assert plan.lock is not None
    assert (plan.lock.plan.locked_at, plan.lock.plan.cells_seen) == ("2026-01-02T12:00:00Z", 336)


def test_comments_and_order_are_not_changes(plan_file):
    lock(plan_file)
    plan_file.write_text("# a remark\n" + plan_file.read_text().replace("alpha = 0.05", "alpha = 5e-2"))
    assert load_plan(plan_file).lock is not None


def test_a_changed_plan_is_refused_with_the_difference(plan_file):
    lock(plan_file)
    plan_file.write_text(plan_file.read_text().replace("alpha = 0.05", "alpha = 0.10"))
    with pytest.raises(CheckFailedError) as refusal:
        load_plan(plan_file)
    assert "-alpha = 0.05" in str(refusal.value)
    assert "+alpha = 0.10" in str(refusal.value)
    with pytest.raises(CheckFailedError):
        lock(plan_file)


def test_a_locked_plan_is_not_locked_again(plan_file):
    lock(plan_file)
    before = lock_path(plan_file).read_bytes()
    with pytest.raises(UsageError, match="locked already, since 2026-01-02T12:00:00Z with 0 cells seen"):
        lock(plan_file, cells=5)
    assert lock_path(plan_file).read_bytes() == before


@pytest.mark.parametrize("key", ["cells_seen", "locked_at", "hash"])
def test_a_lock_edited_by_hand_is_refused(plan_file, key):
    lock(plan_file, cells=3)
    document = json.loads(lock_path(plan_file).read_text())
    document["plan"][key] = 0 if key == "cells_seen" else "x"
    lock_path(plan_file).write_text(json.dumps(document))
    with pytest.raises(CheckFailedError, match="edited after locking"):
        load_plan(plan_file)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seal": 1}', '{"seal": 1, "format": 1, "plan": 3}'])
def test_a_damaged_lock_is_refused(plan_file, text):
    lock_path(plan_file).write_text(text)
    with pytest.raises(CheckFailedError, match="damaged"):
        read_lock(plan_file)


def test_an_addendum_is_locked_with_the_plan_with_its_own_count(plan_file, addendum_file):
    lock(plan_file, cells=1008)
    add_addendum(plan_file, addendum_file, cells_seen=0, seen_in="declared", now=NOON)
    plan = load_plan(plan_file)
    ((addendum, locked),) = plan.addenda
    assert addendum == parse_addendum(builtin_text("merged"), source="x")
    assert locked.status == "pre-registered"
    assert plan.lock is not None
    assert plan.lock.plan.status == "pre-specified"


def test_an_addendum_needs_a_locked_plan_a_new_name_and_a_new_rule(plan_file, addendum_file):
    def add():
        add_addendum(plan_file, addendum_file, cells_seen=0, seen_in="declared", now=NOON)

    with pytest.raises(UsageError, match="not locked"):
        add()
    lock(plan_file)
    add()
    with pytest.raises(UsageError, match="addendum 'merged argmax' already"):
        add()
    addendum_file.write_text('name = "again"\nrules = ["greedy"]')
    with pytest.raises(UsageError, match="cannot test again what is fixed"):
        add()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[floor]\nalpha = 2.0", "floor.alpha must lie between 0 and 1"),
        ("[screen]\ncuts = [2.3, 2.0]", "screen.cuts must rise"),
        ('[floor]\ntest = "mann-whitney"', "floor.test is 'mann-whitney'"),
        ('[pairs]\ndifferences = ["sampled"]', "is not a difference of rules"),
        ('[scope]\nrules = ["greedy"]', "primary_rule must be one of scope.rules"),
        ("[intervals]\nresamples = 10", "at least 100"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_refused_when_read(line, message):
    with pytest.raises(UsageError, match=message):
        parse_plan(f'name = "x"\n{line}', source="plan.toml")


def test_settings_added_later_leave_the_hash_of_an_existing_plan_alone():
    """The hash that version 0.1 gave to the plan it shipped."""
    assert content_hash(Plan.paper()).startswith("0b8fbf67a233")


@pytest.mark.parametrize(
    "line",
    [
        '[floor]\nmethod = "paper"',
        '[floor]\nmethod = "recommended"',
        "[floor]\nleast_runs = 4",
        '[gaps]\nmethod = "recommended"',
        "[scope]\nruns = 3",
        '[scope]\nagents = ["a"]',
        '[scope]\nseeds = ["0"]',
    ],
)
def test_a_setting_added_later_is_part_of_the_hash_where_a_plan_has_it(line):
    assert content_hash(parse_plan(f'name = "paper"\n{line}', source="x")) != content_hash(Plan.paper())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[floor]\nleast_runs = 1", "floor.least_runs must be at least 2"),
        ("[scope]\nruns = 0", "scope.runs must be at least 1"),
        ("[scope]\nagents = []", "scope.agents must name an agent"),
        ("[scope]\nseeds = []", "scope.seeds must name a seed"),
        ("[floor]\nlooks = [3, 6]", "has no setting 'looks'"),
        ('[gaps]\nmethod = "best"', "gaps.method is 'best'"),
    ],
)
def test_a_setting_added_later_is_checked_when_read(line, message):
    with pytest.raises(UsageError, match=message):
        parse_plan(f'name = "x"\n{line}', source="plan.toml")


def test_plan_and_statistics_have_the_same_least_number_of_runs():
    from gapfloor.statistics.reference_calls import LEAST_RUNS

    assert Plan.paper().least_runs == LEAST_RUNS


def test_a_lock_that_was_removed_and_made_again_says_so(plan_file):
    lock(plan_file, cells=0)
    lock_path(plan_file).unlink()
    again = lock_plan(plan_file, cells_seen=0, seen_in="declared", now=NOON + timedelta(days=1))
    (before,) = again.plan.earlier
    assert before.startswith("2026-01-02T12:00:00Z ")
    assert "0 cells seen (declared)" in before
    assert read_lock(plan_file) == again
    lock_path(plan_file).unlink()
    assert len(lock(plan_file).plan.earlier) == 2


def test_a_first_lock_has_no_history_in_its_file(plan_file):
    lock(plan_file)
    assert "earlier" not in json.loads(lock_path(plan_file).read_text())["plan"]


@pytest.mark.parametrize(
    ("times", "seen", "status"),
    [
        ((), 0, "pre-registered"),
        (("2026-01-02T12:00:01Z",), 0, "pre-registered"),
        (("2026-01-02T11:59:59Z", "2026-01-03T00:00:00Z"), 1, "pre-specified"),
    ],
)
def test_cells_that_are_older_than_the_lock_count_as_seen(plan_file, times, seen, status):
    lock(plan_file)
    found = counted_by_time(load_plan(plan_file), times)
    assert (found.lock.plan.cells_seen, found.lock.plan.status) == (seen, status)
