"""Distinct whole numbers found by counting are those found by sorting."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapfloor.statistics.distinct import distinct, places

pytestmark = pytest.mark.fast

near = st.integers(-50, 5000)
far = st.integers(-(2**62), 2**62)


@given(st.one_of(st.lists(near, max_size=200), st.lists(far, max_size=20)))
def test_distinct_values_and_places_are_those_of_sorting(values: list[int]) -> None:
    sample = np.array(values, dtype=np.int64)
    found, place = np.unique(sample, return_inverse=True)
    assert np.array_equal(distinct(sample), found)
    assert all(
        np.array_equal(ours, theirs) for ours, theirs in zip(places(sample), (found, place), strict=True)
    )


@pytest.mark.parametrize("lowest", [0, 1000, -7, 2**62])
def test_levels_of_a_draw_are_counted_wherever_they_begin(lowest: int) -> None:
    sample = np.random.default_rng(0).integers(0, 200, 5000) + lowest
    found, place = places(sample)
    assert np.array_equal(found, np.arange(200) + lowest)
    assert np.array_equal(found[place], sample)
