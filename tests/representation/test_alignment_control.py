"""The 2x2 control on features whose make-up is known."""

import numpy as np
import pytest
from scipy.stats import ortho_group

from gapfloor.errors import UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.representation import Geometry, Recording, align_controls
from gapfloor.representation.similarity import align_rows

pytestmark = pytest.mark.fast

GEOMETRY = Geometry(32, 8)
CODE = np.random.default_rng(99).normal(size=(8, 12))


def make(rng, levels, *, timestep=0.0, only_train=0.0, turn=False, geometry=GEOMETRY, ages=None, d=12):
    """Features of which a part tells the timestep: everywhere, on training levels only, or elsewhere turned."""
    if ages is None:
        ages = np.repeat(np.arange(geometry.steps), geometry.slots)
    is_test = levels.start > 0
    values = rng.normal(size=(geometry.rows, d)) + timestep * CODE[ages % 8]
    if only_train and not is_test:
        values += only_train * CODE[ages % 8]
    if turn and is_test:
        values = values @ ortho_group.rvs(d, random_state=1)
    recording = Recording(np.zeros((geometry.rows, 1)), ages, np.zeros(geometry.rows, dtype=int), geometry)
    return recording, values


def control(seed=0, permutations=200, **parts):
    rng = np.random.default_rng(seed)
    sides = [make(rng, levels, **parts) for levels in (LevelSet(0, 200), LevelSet(1000, 1100))]
    return align_controls(*sides, rng=rng, permutations=permutations)


def test_features_that_tell_the_timestep_show_the_paper_s_pattern():
    test, train = control(timestep=1.0)
    assert test.n == train.n == GEOMETRY.rows // 2
    assert max(test.p_value, train.p_value) <= 0.05
    assert train.observed == pytest.approx(test.observed, rel=0.2)
    assert min(null.observed / null.mean for null in (test, train)) > 3


def test_a_code_that_held_out_levels_lack_is_found():
    test, train = control(only_train=1.0)
    assert train.observed > 2 * test.observed


def test_a_code_that_is_merely_turned_on_held_out_levels_is_not_found():
    """CKA sees no rotation, so C = A does not say that the two level sets are represented alike."""
    (plain, _), (turned, _) = control(timestep=1.0), control(timestep=1.0, turn=True)
    assert turned.observed == pytest.approx(plain.observed, rel=1e-9)


def test_features_without_timesteps_are_not_taken_for_alignment():
    found = [control(seed=seed, permutations=39) for seed in range(40)]
    # Two tests at .05 must both reject: .0025 of 40 is 0.1.
    assert sum(max(test.p_value, train.p_value) <= 0.05 for test, train in found) <= 2
    assert np.mean([test.observed / test.mean for test, _ in found]) == pytest.approx(1, abs=0.1)


def test_rows_out_of_step_are_left_out():
    """A slot whose episode ended meets others again only at equal steps since the start."""
    rng = np.random.default_rng(0)
    ages = np.repeat(np.arange(8), 32).reshape(8, 32)
    ages[5:, 20] = np.arange(3)
    train = make(rng, LevelSet(0, 200), ages=ages.ravel(), timestep=1.0)
    test = make(rng, LevelSet(1000, 1100), timestep=1.0)
    assert align_controls(train, test, rng=rng)[0].n == 8 * 16 - 3


def test_a_second_block_of_slots_fills_up_what_is_lost():
    rng = np.random.default_rng(0)
    ages = np.repeat(np.arange(8), 64).reshape(8, 64)
    ages[5:, 20] = np.arange(3)
    both = Geometry(64, 8)
    train = make(rng, LevelSet(0, 200), geometry=both, ages=ages.ravel(), timestep=1.0)
    test = make(rng, LevelSet(1000, 1100), geometry=both, timestep=1.0)
    rows, partners = align_rows(train[0], test[0], block=32)
    slots = rows % 64
    assert len(rows) == 8 * 16
    assert np.array_equal(slots + 16, partners % 64)
    assert (slots < 16).sum() == 8 * 16 - 3  # slot 20 met slot 4; three rows of the second block stand in
    assert np.array_equal(np.unique(slots[slots >= 16]), [32, 33, 34])
    assert np.array_equal(train[0].since_start[rows], test[0].since_start[partners])
    assert align_controls(train, test, rng=rng, block=32)[0].n == 8 * 16


def test_too_few_aligned_rows_are_refused():
    rng = np.random.default_rng(0)
    train = make(rng, LevelSet(0, 200))
    test = make(rng, LevelSet(1000, 1100), ages=np.full(GEOMETRY.rows, 50))
    with pytest.raises(UsageError, match="Only 0 of 128 rows"):
        align_controls(train, test, rng=rng)


def test_two_geometries_are_refused():
    rng = np.random.default_rng(0)
    train, test = make(rng, LevelSet(0, 200)), make(rng, LevelSet(1000, 1100), geometry=Geometry(16, 16))
    with pytest.raises(UsageError, match="32x8 and 16x16"):
        align_controls(train, test, rng=rng)
