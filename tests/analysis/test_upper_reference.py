"""Normalised scores between the floor and a stated upper reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gapfloor
from gapfloor.analysis.grouping import Place
from gapfloor.analysis.known_floors import upper_reference
from gapfloor.analysis.planned_study import score_scale
from gapfloor.errors import UsageError
from gapfloor.plan.model import Normalisation
from gapfloor.statistics.normalised import between


def balance(observations: Any) -> Any:
    """Push towards the side to which the pole falls."""
    falls = observations[:, 2] + observations[:, 3] > 0
    return np.where(np.stack([~falls, falls], axis=1), 5.0, 0.0)


def test_an_evaluation_states_both_ends_of_its_scale() -> None:
    found = gapfloor.evaluate(
        balance,
        game="gym:CartPole-v1",
        rules="greedy",
        draws=0,
        episodes=16,
        upper=500,
        workers=1,
        progress=False,
    )
    row = next(row for row in found.normalised if row.level_set == "test")
    mean = next(each.mean for each in found.returns if (each.rule, each.level_set) == ("greedy", "test"))
    assert row.score == pytest.approx((mean - row.r_min) / (500 - row.r_min))
    assert 0.1 < row.score <= 1
    assert "500.00 (stated)" in repr(found)
    assert found.to_dict()["normalised"][0]["r_max"] == 500


@pytest.mark.fast
def test_published_references_are_named_with_their_source() -> None:
    assert upper_reference(None, game="coinrun", mode=None) is None
    assert upper_reference("published", game="coinrun", mode="hard") == (
        10.0,
        "R_max, Cobbe et al. (2020), Appendix C",
    )
    assert upper_reference("12.5", game="gym:CartPole-v1", mode=None) == (12.5, "stated")


@pytest.mark.fast
@pytest.mark.parametrize(
    ("upper", "words"), [("published", "No upper reference is published"), ("high", "give a number")]
)
def test_what_is_not_a_reference_is_refused(upper: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        upper_reference(upper, game="gym:CartPole-v1", mode=None)


@pytest.mark.fast
def test_a_plans_upper_reference_is_counted_from_the_floor_of_the_level_set() -> None:
    class Floor:
        mean = 20.0

    class Study:
        def floor(self, place: Place, level_set: str) -> Floor | None:
            return Floor() if level_set == "test" else None

    class Context:
        study = Study()

        class plan:
            normalised = Normalisation(upper={"CartPole-v1": 500.0})

    context: Any = Context()
    assert score_scale(context, Place("CartPole-v1", "default", ""), "test") == (20.0, 500.0)
    assert score_scale(context, Place("CartPole-v1", "default", ""), "train") is None
    assert score_scale(context, Place("Acrobot-v1", "default", ""), "test") is None
    assert score_scale(context, Place("starpilot", "easy", ""), "test") == (2.5, 64)
    assert np.isnan(between(1.0, 2.0, 2.0))
