"""Action spaces: uniform actions, masks, constants and what is recorded of the actions taken."""

from __future__ import annotations

import numpy as np
import pytest

from gapfloor.actions.spaces import Box, Discrete, joint_masks, several
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast

N = 60_000
RNG = np.random.default_rng(0)
BOX = Box((-2.0, 0.0), (2.0, 1.0))


def test_few_combinations_are_numbered_and_many_are_refused() -> None:
    assert several([3, 2, 4]) == Discrete(24, factors=(3, 2, 4))
    assert several([2] * 10) == Discrete(1024, factors=(2,) * 10)
    with pytest.raises(UsageError, match=r"MultiDiscrete\(40, 50\) has 2,000 actions"):
        several([40, 50])


def test_uniform_actions_of_a_box_fill_it_as_gymnasium_does() -> None:
    drawn = BOX.uniform(RNG.random((N, 2)))
    assert drawn.min(axis=0) == pytest.approx([-2, 0], abs=0.01)
    assert drawn.max(axis=0) == pytest.approx([2, 1], abs=0.01)
    assert drawn.mean(axis=0) == pytest.approx([0, 0.5], abs=0.02)
    assert drawn.std(axis=0) == pytest.approx([4 / 12**0.5, 1 / 12**0.5], abs=0.02)


def test_uniform_actions_under_a_mask_are_uniform_over_the_legal_ones() -> None:
    legal = np.tile([True, False, True, False, True], (N, 1))
    shares = np.bincount(Discrete(5).uniform(RNG.random(N), legal), minlength=5) / N
    assert shares == pytest.approx([1 / 3, 0, 1 / 3, 0, 1 / 3], abs=0.01)


def test_joint_logits_are_those_of_independent_dimensions() -> None:
    space = Discrete(6, factors=(3, 2))
    parts = [RNG.normal(size=(4, 3)), RNG.normal(size=(4, 2))]
    joint = np.exp(space.joint(parts))
    first, second = np.exp(parts[0]), np.exp(parts[1])
    for action in range(6):
        at, other = np.unravel_index(action, (3, 2))
        assert joint[:, action] == pytest.approx(first[:, at] * second[:, other])


def test_a_joint_action_is_legal_where_both_of_its_parts_are() -> None:
    legal = joint_masks(np.array([[True, False, True, False, True]]), Discrete(6, factors=(3, 2)))
    assert legal.tolist() == [[False, True, False, False, False, True]]


def test_the_best_constant_is_looked_for_on_a_grid_or_along_each_dimension() -> None:
    assert Discrete(3).constants() == ["0", "1", "2"]
    assert BOX.constants()[:3] == ["-2.0/0.0", "-2.0/0.5", "-2.0/1.0"]
    assert len(BOX.constants()) == 9
    wide = Box((-1.0,) * 8, (1.0,) * 8)
    assert len(wide.constants()) == 1 + 2 * 8  # 3^8 actions would be too many to play
    for space in (BOX, wide):
        for text in space.constants():
            space.read(text)


@pytest.mark.parametrize(
    ("space", "text", "words"),
    [
        (BOX, "3", "within the bounds, e.g. constant:0.0/0.0"),
        (BOX, "0/0/0", "2 numbers with slashes"),
        (Discrete(4), "4", "actions go from 0 to 3"),
    ],
)
def test_a_constant_that_does_not_exist_is_refused(space, text, words) -> None:
    with pytest.raises(UsageError, match=words):
        space.read(text)


def test_what_is_recorded_of_actions_is_counts_or_a_summary() -> None:
    actions = BOX.uniform(RNG.random((500, 2)))
    actions[:50, 0] = -2.0
    record = BOX.summary(BOX.tallies(actions).sum(axis=0), 500)
    assert record["action_mean"] == pytest.approx(actions.mean(axis=0))
    assert record["action_deviation"] == pytest.approx(actions.std(axis=0))
    assert record["action_at_low"] == [0.1, 0.0]
    assert record["action_counts"] is None


def test_the_zero_action_is_the_nearest_one_within_the_bounds() -> None:
    assert Box((1.0, -1.0), (2.0, 1.0)).zero().tolist() == [1.0, 0.0]
