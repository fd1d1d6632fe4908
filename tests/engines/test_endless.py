"""An environment that never ends is refused before play; one with a step limit does not pay for the check."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import run
from gapfloor.engines.gymnasium import engine
from gapfloor.engines.registry import check_ends, make_spec

#: Gymnasium's pendulum without the time limit of its registration: it never ends.
ENDLESS = "gymnasium.envs.classic_control.pendulum:PendulumEnv"
FEW = ("--draws", "0", "--episodes", "2", "--slots", "1", "--workers", "1")


def test_an_endless_environment_is_refused_with_the_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "floor", ENDLESS, *FEW)
    assert done.code == 2
    assert "did not end within 50,000 steps of random play" in done.err
    assert "--option max_episode_steps=N" in done.err


def test_the_remedy_works(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    done = run(capsys, "floor", ENDLESS, "--option", "max_episode_steps=20", *FEW, "--store", str(tmp_path))
    assert done.code == 0, done.err


@pytest.mark.parametrize(("game", "is_played"), [("gym:CartPole-v1", False), ("gym:Blackjack-v1", True)])
def test_only_environments_without_a_limit_are_tried_and_once(
    game: str, is_played: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    played, make = [], engine.engine_from_spec
    monkeypatch.setattr(
        engine, "engine_from_spec", lambda spec, **how: played.append(spec) or make(spec, **how)
    )
    engine.check_ends.cache_clear()
    for _ in range(2):
        check_ends(make_spec(game))
    assert len(played) == is_played
