"""Checkpoints of a real little run: labels, the in-loop window, and what is refused."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapfloor.api.checkpoints import training_curve
from gapfloor.api.plot import with_files
from gapfloor.errors import UsageError
from gapfloor.records.store import Store
from gapfloor.training.log import read_history, read_in_loop

sys.path.insert(0, str(Path(__file__).parents[1] / "training"))

SMALL = {"draws": [0], "episodes": 8, "slots": 4}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    from small_run import small_spec, train_small

    store = tmp_path_factory.mktemp("run")
    # fruitbot's episodes end within a hundred steps, so that the log has a running mean.
    spec = small_spec(game="fruitbot", updates=3, rollout_length=64)
    result = train_small(store, spec=spec, checkpoint_every=2)
    return result.checkpoint.parent


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("cells")


@pytest.fixture(scope="module")
def result(run, store):
    return training_curve(run, store=store, batch=4, workers=1, **SMALL)


def test_kept_checkpoints_and_the_last_are_measured_under_labels_of_their_own(run, store, result):
    (course,) = result.curves
    steps = [row.at for row in course.gaps if row.rule == "sampled"]
    assert steps == [512, 768]
    budgets = {cell.manifest.labels["budget"] for cell in Store(store).cells() if not cell.is_reference}
    own = read_history(run).header["budget"]
    assert budgets == {own, f"{own}@512"}
    policies = {c.manifest.content["policy"] for c in Store(store).cells() if not c.is_reference}
    assert len(policies) == 2


def test_gap_and_delta_follow_from_the_cells(store, result):
    (course,) = result.curves
    gap = next(row for row in course.gaps if (row.at, row.rule) == (768, "greedy"))
    against_floor = next(
        row.delta
        for row in course.floor_comparisons
        if (row.at, row.rule, row.level_set) == (768, "greedy", "test")
    )
    episodes = Store(store).episodes().to_pylist()
    means = {
        (rule, level_set): np.mean(
            [
                row["episode_return"]
                for row in episodes
                if (row["rule"], row["level_set"]) == (rule, level_set) and "@" not in row["budget"]
            ]
        )
        for rule in ("uniform", "greedy")
        for level_set in ("train", "test")
    }
    assert gap.gap == pytest.approx(means["greedy", "train"] - means["greedy", "test"])
    assert against_floor.value == pytest.approx(means["greedy", "test"] - means["uniform", "test"])


def test_the_in_loop_mean_is_shown_with_the_sampled_checkpoint_on_training_levels(run, result):
    (course,) = result.curves
    log = pq.read_table(run / "log.parquet").to_pylist()
    ended = {row["steps"]: row for row in log if row["in_loop_return"] == row["in_loop_return"]}
    assert [row.steps for row in course.in_loop] == [steps for steps in (512, 768) if steps in ended]
    for row in course.in_loop:
        sampled = next(gap for gap in course.gaps if (gap.at, gap.rule) == (row.steps, "sampled"))
        assert row.in_loop == ended[row.steps]["in_loop_return"]
        assert row.fixed == pytest.approx(sampled.train)
        assert row.difference == pytest.approx(row.in_loop - row.fixed)
        assert not row.se < row.fixed_sem


def test_the_same_call_again_plays_nothing(run, store, result):
    before = {path: path.stat().st_mtime_ns for path in Store(store).cells_folder.iterdir()}
    again = training_curve([run], store=store, batch=4, workers=1, **SMALL)
    assert {path: path.stat().st_mtime_ns for path in Store(store).cells_folder.iterdir()} == before
    assert again.to_dict() == result.to_dict()


def test_the_figure_and_the_table_hold_every_checkpoint(result, tmp_path):
    assert {path.suffix for path in with_files(result, tmp_path).written} == {
        ".pdf",
        ".svg",
        ".png",
        ".txt",
        ".json",
    }
    assert len(result.table().body) == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"mode": "hard"}, "in the mode easy, not hard"),
        ({"train": "0:100"}, "use 0:200 as train"),
        ({"test": "none"}, "need both level sets"),
    ],
)
def test_another_game_mode_or_level_set_than_the_logs_is_refused(run, tmp_path, changes, words):
    with pytest.raises(UsageError, match=words):
        training_curve(run, store=tmp_path / "s", **{**SMALL, **changes})
    assert not (tmp_path / "s").exists()


def test_a_run_without_history_is_told_how_to_keep_one(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "history")
    with pytest.raises(UsageError, match="--checkpoint-every"):
        training_curve(tmp_path / "run", **SMALL)
    with pytest.raises(UsageError, match="not a run's folder"):
        training_curve(tmp_path / "nothing", **SMALL)


def test_a_run_named_twice_is_refused(run):
    with pytest.raises(UsageError, match="named twice"):
        training_curve([run, run], **SMALL)


@pytest.mark.fast
def test_the_window_reaches_back_over_as_many_updates_as_its_episodes_need(tmp_path):
    ended = [0, 60, 60, 150, 10]
    columns = {
        "steps": [10, 20, 30, 40, 50],
        "in_loop_return": [np.nan, 1.0, 2.0, 3.0, 4.0],
        "n_episodes": ended,
    }
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    rows = read_in_loop(tmp_path / "log.parquet")
    assert [row.n_episodes for row in rows] == [0, 60, 100, 100, 100]
    # 60 of this update; 60 and 40 of the one before; the newest 100 of 150; 10 and 90 of the one before.
    assert [row.n_updates for row in rows] == [0, 1, 2, 1, 2]
    assert read_in_loop(tmp_path / "none.parquet") == ()
