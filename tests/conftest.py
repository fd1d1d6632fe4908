"""Fixtures for every test. The helpers behind them are plain modules next to this file.

`command_line` runs gapfloor, `folders` hashes files, `small_stores` invents episodes and cells, `small_policies`
plays on the real engine, `gymnasium_envs` has environments, and `paper_shaped` has the paper's numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import small_stores
from gapfloor.records.store import Store


@pytest.fixture
def empty_store(tmp_path: Path) -> Store:
    """A store with its folders and no cells."""
    made = Store(tmp_path / "store")
    made.prepare()
    return made


@pytest.fixture
def episode_rows() -> list[dict[str, Any]]:
    """Two agents, two seeds, two games, shared levels; agent `a` is better than agent `b`."""
    return small_stores.small_rows(small_stores.by_agent)


@pytest.fixture
def rows() -> list[dict[str, Any]]:
    """The same study with equal agents; greedy is better than sampled."""
    return small_stores.small_rows()


@pytest.fixture
def as_table() -> Any:
    return pa.Table.from_pylist
