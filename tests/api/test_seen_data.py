"""What `plan lock` says has been seen, where data lie next to the plan."""

from __future__ import annotations

import json
import os
import time

import pyarrow.csv
import pytest

from command_line import run
from gapfloor.analysis.apply import analyse
from gapfloor.api.plan_files import data_next_to
from gapfloor.plan.lock import lock_path, lock_plan, read_lock
from gapfloor.plan.model import parse_plan
from known_truth import game_rows, table

pytestmark = pytest.mark.fast


@pytest.fixture
def plan_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text('name = "x"\n')
    return tmp_path / "plan.toml"


def test_an_episode_file_next_to_the_plan_has_been_seen(capsys, plan_file, tmp_path):
    pyarrow.csv.write_csv(table(game_rows(n_runs=2)), tmp_path / "episodes.csv")
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    assert data_next_to(plan_file) == {"episodes.csv": 6}
    locked = json.loads(run(capsys, "plan", "lock", plan_file, "--json").out)["plan"]
    assert (locked["cells_seen"], locked["status"]) == (6, "pre-specified")
    assert locked["seen_in"] == "counted in episodes.csv"


def test_a_declared_number_does_not_hide_the_data_that_lie_there(capsys, plan_file, tmp_path):
    pyarrow.csv.write_csv(table(game_rows(n_runs=2)), tmp_path / "episodes.csv")
    run(capsys, "plan", "lock", plan_file, "--cells-seen", 0)
    locked = read_lock(plan_file).plan
    assert locked.seen_in == "declared 0; next to the plan: episodes.csv (6 cells)"
    assert (locked.cells_seen, locked.status) == (6, "pre-specified")


@pytest.mark.parametrize("option", ["--store", "--episodes"])
def test_counting_elsewhere_does_not_hide_the_data_that_lie_there(capsys, plan_file, tmp_path, option):
    pyarrow.csv.write_csv(table(game_rows(n_runs=2)), tmp_path / "episodes.csv")
    elsewhere = tmp_path.parent / f"{tmp_path.name}-other"
    elsewhere.mkdir()
    if option == "--episodes":
        elsewhere /= "one.csv"
        pyarrow.csv.write_csv(table(game_rows(n_runs=1)), elsewhere)
    run(capsys, "plan", "lock", plan_file, option, elsewhere)
    locked = read_lock(plan_file).plan
    assert locked.seen_in.endswith("; next to the plan: episodes.csv (6 cells)")
    assert (locked.cells_seen, locked.status) == (6, "pre-specified")


def test_data_in_a_folder_below_the_plan_have_been_seen(capsys, plan_file, tmp_path):
    (tmp_path / "runs" / "old").mkdir(parents=True)
    pyarrow.csv.write_csv(table(game_rows(n_runs=2)), tmp_path / "runs" / "old" / "episodes.csv")
    run(capsys, "plan", "lock", plan_file)
    assert read_lock(plan_file).plan.seen_in == "counted in runs/old/episodes.csv"
    assert read_lock(plan_file).plan.status == "pre-specified"


def test_a_file_that_is_older_than_the_lock_had_been_seen(plan_file, tmp_path):
    elsewhere = tmp_path.parent / f"{tmp_path.name}-data"
    elsewhere.mkdir()
    path = elsewhere / "episodes.csv"
    pyarrow.csv.write_csv(table(game_rows(n_runs=3)), path)
    plan_file.write_text('name = "x"\n[scope]\nrules = ["sampled"]\n')
    lock_plan(plan_file, cells_seen=0, seen_in="declared 0")
    later, earlier = time.time() + 60, time.time() - 60
    os.utime(path, (later, later))
    assert analyse(path, plan_file).plan.status == "pre-registered"
    os.utime(path, (earlier, earlier))
    found = analyse(path, plan_file)
    assert found.plan.status == "pre-specified"
    assert "by the times of the data" in found.plan.seen_in


def test_the_label_says_what_the_lock_shows_and_what_the_plan_leaves_open(plan_file):
    plan_file.write_text('name = "x"\n[scope]\nrules = ["sampled"]\ndraws = 1\n')
    lock_plan(plan_file, cells_seen=0, seen_in="no cells")
    used = analyse(table(game_rows(n_runs=3)), plan_file).plan
    assert used.label == (
        "pre-registered (no cell had been seen by its lock; when these data were made is not recorded; it leaves open: "
        "games, agents, runs, seeds, episodes)"
    )


def test_a_plan_that_fixes_everything_leaves_nothing_open():
    scope = 'agents = ["a"]\nseeds = ["0", "1"]\ndraws = 1\nepisodes = 120\n[scope.games]\n8M = ["coinrun"]\n'
    text = f'name = "x"\n[scope]\n{scope}'
    assert parse_plan(text, source="x").leaves_open == ()


def test_without_data_nothing_has_been_seen(capsys, plan_file):
    locked = json.loads(run(capsys, "plan", "lock", plan_file, "--json").out)["plan"]
    assert (locked["cells_seen"], locked["status"]) == (0, "pre-registered")
    assert read_lock(plan_file).plan.status == "pre-registered"


def test_locking_again_after_the_lock_was_removed_is_told(capsys, plan_file):
    run(capsys, "plan", "lock", plan_file)
    lock_path(plan_file).unlink()
    assert "Locked before: " in run(capsys, "plan", "lock", plan_file).out
    assert "Locked before: " in run(capsys, "plan", "check", plan_file).out
