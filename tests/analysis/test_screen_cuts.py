"""The screen's cuts in games with another number of actions."""

import math

import pytest

from gapfloor.analysis.screen_rows import sized_for_cuts
from gapfloor.plan.model import Screen
from gapfloor.statistics.screen import tier

pytestmark = pytest.mark.fast


def test_cuts_are_fractions_of_the_logarithm_of_the_number_of_actions() -> None:
    screen, n = Screen(), 4
    for fraction, expected in [(0.73, "low"), (0.80, "intermediate"), (0.86, "high")]:
        entropy = fraction * math.log(n)
        assert entropy < screen.cuts[0]  # in nats every entropy over four actions would be called low
        sized = sized_for_cuts(entropy, maximum=math.log(n), screen=screen)
        assert tier(sized, cuts=screen.cuts) == expected


def test_the_papers_number_of_actions_meets_the_cuts_unchanged() -> None:
    screen = Screen()
    for entropy in (1.999999999999, 2.0, 2.3, 2.300000000001):
        assert sized_for_cuts(entropy, maximum=math.log(screen.actions), screen=screen) == entropy


def test_one_action_has_no_tier() -> None:
    assert math.isnan(sized_for_cuts(0.0, maximum=0.0, screen=Screen()))
