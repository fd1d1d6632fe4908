"""The claim that floor and runs share their levels: made only where every draw was compared."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest

import small_stores
from gapfloor.analysis.episodes import tidy
from gapfloor.analysis.inputs import Inputs
from gapfloor.report.provenance import floor_on_same_draws

pytestmark = pytest.mark.fast


@pytest.fixture
def inputs() -> Inputs:
    table = pa.Table.from_pylist(small_stores.small_rows())
    return tidy(table, cells=None, source="rows", unit="row", first=1)


def test_the_same_levels_in_every_draw_are_the_same_draws(inputs: Inputs) -> None:
    assert floor_on_same_draws(inputs) is True


def test_one_level_that_differs_is_noticed(inputs: Inputs) -> None:
    codes, references = inputs.labels["reference"]
    seeds = inputs.level_seed.copy()
    seeds[(codes == references.index("")).nonzero()[0][0]] += 10_000
    assert floor_on_same_draws(dataclasses.replace(inputs, level_seed=seeds)) is False


def test_without_level_seeds_nothing_is_claimed(inputs: Inputs) -> None:
    seeds = inputs.level_seed.copy()
    seeds[:] = -1
    assert floor_on_same_draws(dataclasses.replace(inputs, level_seed=seeds)) is None
