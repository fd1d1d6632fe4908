"""Calibration with default settings against a plain loop over the same states."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from contest import Contest, timed
from gapfloor.actions import Partition
from gapfloor.calibration.class_measurement import visited_states
from gapfloor.calibration.classes import CalibrationSettings
from gapfloor.calibration.cloning import state_partitions
from gapfloor.engines.procgen import make_spec
from gapfloor.machine import available_cores


def rows(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    n_states = 40 if options.quick else 400
    return {
        f"calibrate-{game}": functools.partial(_calibration, game, n_states)
        for game in ("starpilot", "coinrun")
    }


def _calibration(game: str, n_states: int) -> Contest:
    spec = make_spec(game)
    settings = CalibrationSettings(states=n_states)
    states = visited_states(spec, settings)

    def ours() -> float:
        state_partitions(spec, states, horizon=settings.horizon, workers=available_cores())
        return float(n_states)

    def plain() -> float:
        _plain(game, states)
        return float(n_states)

    return Contest("a plain loop", lambda: timed(ours), lambda _: timed(plain), "states/s")


def _plain(game: str, states: list[bytes]) -> list[Partition]:
    """What one would write first, against the wheel's own interface; it replays nothing."""
    from procgen import ProcgenGym3Env

    env = ProcgenGym3Env(
        num=15, env_name=game, num_levels=200, start_level=0, distribution_mode="easy", num_threads=0
    )
    found = []
    for state in states:
        env.callmethod("set_state", [state] * 15)
        outcomes: list[list[Any]] = [[] for _ in range(15)]
        for step in range(CalibrationSettings.horizon):
            env.act(np.arange(15) if step == 0 else np.full(15, 4))
            rewards, observations, firsts = env.observe()
            for action in range(15):
                frame = hash(observations["rgb"][action].tobytes())
                outcomes[action].append((frame, float(rewards[action]), bool(firsts[action])))
        numbers: dict[Any, int] = {}
        found.append(Partition.from_labels([numbers.setdefault(tuple(o), len(numbers)) for o in outcomes]))
    env.close()
    return found
