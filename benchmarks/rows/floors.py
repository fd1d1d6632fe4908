"""Floors against EnvPool, and against the bare engine after start-up."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence

import numpy as np

from contest import LEVELS, Contest, Timed, gapfloor, peers, timed
from gapfloor.engines.procgen import PAPER_GAMES, ProcgenEngine, make_spec
from gapfloor.engines.registry import unseen_engine
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.actor import ReferenceActor
from gapfloor.play.cell import CellSpec, Run
from gapfloor.play.group import REFERENCE_SLOTS
from gapfloor.play.player import CellPlay, Player
from gapfloor.policies.references import Uniform

TRAIN = LevelSet(0, 200)


def rows(options: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    few = ["--episodes", "16", "--draws", "0"] if options.quick else []
    return {
        "floor-starpilot": lambda: _floor("starpilot", ["starpilot"], few),
        "floor-paper": lambda: _floor("paper", PAPER_GAMES, few),
        "floor-starpilot-after-start": lambda: _after_start("starpilot"),
        "floor-heist-after-start": lambda: _after_start("heist"),
    }


def _floor(games: str, named: Sequence[str], few: list[str]) -> Contest:
    """`gapfloor floor` against EnvPool on as many steps, shared out evenly over games and level sets."""

    def theirs(mine: Timed) -> Timed:
        share = json.dumps({game: int(mine.steps / len(named) / len(LEVELS)) for game in named})
        return timed(lambda: peers("procgen_envpool.py", *([share, "--levels", levels] for levels in LEVELS)))

    return Contest(
        "EnvPool, 2 processes", lambda: timed(lambda: gapfloor("floor", games, *few, references=True)), theirs
    )


def _after_start(game: str) -> Contest:
    """The player in one process, against the bare engine loop with 32 slots on as many steps."""
    draws = iter(range(0, 3000, 3))
    _bare(game, 3200)  # reads the engine's assets

    def ours() -> Timed:
        first = next(draws)
        return timed(lambda: _played(game, range(first, first + 3)))

    return Contest("the bare engine loop", ours, lambda mine: timed(lambda: _bare(game, int(mine.steps))))


def _played(game: str, draws: range) -> float:
    spec = make_spec(game)
    player = Player(
        make_engine=lambda n: unseen_engine(spec, slots=n, levels=TRAIN),
        actor=ReferenceActor(Uniform(), space=ProcgenEngine.action_space),
        n_slots=REFERENCE_SLOTS,
    )
    cells = [
        CellSpec(spec, Run(reference="uniform"), "uniform", "uniform", "train", TRAIN, draw) for draw in draws
    ]
    plays = player.play(CellPlay(cell) for cell in cells)
    return float(sum(outcome.length for play in plays for outcome in play.finished()))


def _bare(game: str, steps: int, slots: int = 32) -> float:
    engine = ProcgenEngine(game, slots=slots, levels=TRAIN)
    actions = np.random.default_rng(0).integers(0, engine.n_actions, (steps // slots, slots))
    for each in actions:
        engine.step(each)
    return float(actions.size)
