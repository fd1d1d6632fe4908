"""What `plan lock` says has been seen, where data lie next to the plan."""

from __future__ import annotations

import pyarrow.csv
import pytest

from command_line import run
from gapfloor.analysis.seen_data import data_next_to
from gapfloor.plan.lock import lock_path, read_lock
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
    done = run(capsys, "plan", "lock", plan_file)
    assert "6 cells seen (counted in episodes.csv): results will be called pre-specified" in done.out


def test_a_declared_number_is_recorded_with_the_data_that_lie_there(capsys, plan_file, tmp_path):
    pyarrow.csv.write_csv(table(game_rows(n_runs=2)), tmp_path / "episodes.csv")
    run(capsys, "plan", "lock", plan_file, "--cells-seen", 0)
    assert read_lock(plan_file).plan.seen_in == "declared; next to the plan: episodes.csv (6 cells)"


def test_without_data_nothing_has_been_seen(capsys, plan_file):
    assert "0 cells seen" in run(capsys, "plan", "lock", plan_file).out
    assert read_lock(plan_file).plan.status == "pre-registered"


def test_locking_again_after_the_lock_was_removed_is_told(capsys, plan_file):
    run(capsys, "plan", "lock", plan_file)
    lock_path(plan_file).unlink()
    assert "Locked before: " in run(capsys, "plan", "lock", plan_file).out
    assert "Locked before: " in run(capsys, "plan", "check", plan_file).out
