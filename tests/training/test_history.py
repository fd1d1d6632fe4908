"""The in-loop mean of a training log at each update, and how far its window reaches back."""

from __future__ import annotations

import math
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapfloor.errors import UsageError
from gapfloor.training.log import read_history, read_in_loop

pytestmark = pytest.mark.fast


def write_log(path: Path, ended: list[int]) -> Path:
    steps = [64 * (at + 1) for at in range(len(ended))]
    columns = {"steps": steps, "in_loop_return": [1.5] * len(ended), "n_episodes": ended}
    pq.write_table(pa.table(columns), path)
    return path


def test_a_window_reaches_back_to_the_update_of_its_oldest_episode(tmp_path: Path) -> None:
    rows = read_in_loop(write_log(tmp_path / "log.parquet", [0, 40, 30, 50, 100]))
    assert [row.n_episodes for row in rows] == [0, 40, 70, 100, 100]
    # After the fourth update the last 100 of 120 episodes still contain 20 of the second update's 40.
    assert [row.n_updates for row in rows] == [0, 1, 2, 3, 1]
    assert [row.steps for row in rows] == [64, 128, 192, 256, 320]


def test_before_the_first_episode_there_is_no_mean(tmp_path: Path) -> None:
    first, second = read_in_loop(write_log(tmp_path / "log.parquet", [0, 3]))
    assert math.isnan(first.episode_return)
    assert second.episode_return == 1.5


def test_a_run_without_a_log_has_no_in_loop_mean(tmp_path: Path) -> None:
    assert read_in_loop(tmp_path / "log.parquet") == ()


def test_a_damaged_log_and_a_folder_without_a_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.parquet").write_bytes(b"no log")
    with pytest.raises(UsageError, match="cannot be read as a training log"):
        read_in_loop(tmp_path / "log.parquet")
    with pytest.raises(UsageError, match=r"checkpoint\.safetensors"):
        read_history(tmp_path)
