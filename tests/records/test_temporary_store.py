"""A store that is named stays; one that is not is deleted after use."""

import numpy as np
import pytest

import small_stores
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.store import open_store

pytestmark = pytest.mark.fast


def test_without_a_path_the_cells_are_forgotten():
    with open_store(None) as store:
        store.prepare()
        small_stores.write_cell(store)
        assert len(store.cells()) == 1
    assert not store.root.exists()


def test_with_a_path_the_cells_stay(tmp_path):
    with open_store(tmp_path / "store") as store:
        store.prepare()
        small_stores.write_cell(store)
    assert len(store.cells()) == 1


def test_a_sample_says_whether_one_action_was_nearly_always_taken():
    nothing = np.zeros(1)
    shares = [EpisodeSample(nothing, nothing, 0.0, 0.0, share).is_one_action for share in (0.98, 0.99)]
    assert shares == [False, True]
