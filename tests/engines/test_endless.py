"""An environment that never ends is refused before play; one with a step limit does not pay for the check."""

from __future__ import annotations

import pytest

from command_line import run
from gapfloor.engines.gymnasium import engine
from gapfloor.engines.registry import check_levels, make_spec
from gapfloor.levels import LevelSet

#: Gymnasium's pendulum without the time limit of its registration: it never ends.
ENDLESS = "gymnasium.envs.classic_control.pendulum:PendulumEnv"
FEW = ("--draws", "0", "--episodes", "2", "--slots", "1", "--workers", "1")


def test_an_endless_environment_is_refused_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "floor", ENDLESS, *FEW)
    assert done.code == 2
    assert "did not end within 50,000 steps of random play" in done.err
    assert "--option max_episode_steps=N" in done.err


def test_the_remedy_works(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "floor", ENDLESS, "--option", "max_episode_steps=20", *FEW)
    assert done.code == 0, done.err


@pytest.mark.parametrize(("game", "is_played"), [("gym:CartPole-v1", False), ("gym:Blackjack-v1", True)])
def test_only_environments_without_a_limit_are_tried(game: str, is_played: bool) -> None:
    engine._refuse_endless.cache_clear()
    for levels in (LevelSet(0, 5), LevelSet(100, 105)):
        check_levels(make_spec(game), levels)
    assert engine._refuse_endless.cache_info().misses == is_played
