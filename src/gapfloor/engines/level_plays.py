"""Levels of any engine compared by what they show: which held-out seeds give a level that a training seed gives too.

ProcGen's levels are compared without their looks (`gapfloor.engines.layouts`); here everything that is seen counts. Two
seeds are the same level where the first observation, the first picture (in MiniGrid the whole grid, of which the
observation shows a part) and a fixed sequence of random actions agree in observations, rewards and ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from gapfloor.engines.gymnasium.spaces import row_bytes
from gapfloor.engines.layouts import LONG_STEPS, STEPS
from gapfloor.engines.protocol import Engine, EngineSpec
from gapfloor.engines.registry import check_levels, engine_from_spec, written_game
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.levels.overlap import (
    LevelOverlap,
    LevelPair,
    check_comparable,
    count_distinct,
    equal_groups,
    equal_pairs,
    held_out,
)


def check_plays(
    spec: EngineSpec, *, train: LevelSet, test: LevelSet, tell: Callable[[str], None]
) -> LevelOverlap:
    """The held-out levels of an environment that cannot be told from a training level."""
    for levels in (train, test):
        check_levels(spec, levels)
    check_comparable(train, test)
    game = written_game(spec)
    engine = engine_from_spec(spec, slots=1, levels=train)
    if not engine.can_begin:
        raise UsageError(f"{game} cannot be put on a level of choice, so its levels cannot be compared.")
    both = [*range(train.start, train.stop), *range(test.start, test.stop)]
    tell(f"{game}: first observations of {len(both)} levels")
    screens, pictures = _first_looks(engine, both)
    marks = {level: f"{screens[level]}{pictures[level]}" for level in both}
    first_frame = len(held_out(equal_pairs(marks, train=train, test=test)))
    twins = [level for group in equal_groups(marks) for level in group]
    if twins:
        tell(f"{game}: {len(twins)} levels that start alike, along {STEPS} random actions")
        marks |= {level: marks[level] + _played(engine, level, seed=0, steps=STEPS) for level in twins}
    pairs = equal_pairs(marks, train=train, test=test)
    tell(f"{game}: {len(pairs)} pairs")
    confirmed = _confirmed(engine, pairs)
    engine.close()
    alike = f"; of the {len(twins)} alike, {STEPS} random actions" if twins else ": no two alike"
    looks = "first observation and picture" if any(pictures.values()) else "first observation"
    return LevelOverlap(
        game=spec.game,
        mode=spec.mode,
        engine=spec.engine,
        version=spec.version,
        train=train,
        test=test,
        pairs=confirmed,
        first_screen=len(held_out(equal_pairs(screens, train=train, test=test))),
        first_frame=first_frame,
        distinct_train=count_distinct(marks, train),
        distinct_test=count_distinct(marks, test),
        compared=f"{looks}{alike}",
        later="what chance brings later" if first_frame > len({held for held, _ in pairs}) else "",
    )


def _first_looks(engine: Engine, levels: Sequence[int]) -> tuple[dict[int, str], dict[int, str]]:
    """Hashes of the first observation and of the first picture; the latter is empty where there is none."""
    screens, pictures = {}, {}
    for level in levels:
        engine.begin(0, level)
        screens[level] = hashlib.sha256(row_bytes(engine.observe()[0], 0)).hexdigest()
        frame = engine.frame(0)
        pictures[level] = hashlib.sha256(frame.tobytes()).hexdigest() if frame is not None else ""
    return screens, pictures


def _played(engine: Engine, level: int, *, seed: int, steps: int) -> str:
    """A hash of what the same random actions bring: observations, rewards and ends."""
    engine.begin(0, level)
    rng, space = np.random.default_rng(seed), engine.action_space
    digest = hashlib.sha256()
    for _ in range(steps):
        numbers = rng.random((1, space.width) if space.width else 1)
        rows, rewards, firsts = engine.step(space.uniform(numbers, engine.masks))
        digest.update(row_bytes(rows, 0) + np.float64(rewards[0]).tobytes() + bytes([bool(firsts[0])]))
        if firsts[0]:
            break
    return digest.hexdigest()


def _confirmed(engine: Engine, pairs: Sequence[tuple[int, int]]) -> tuple[LevelPair, ...]:
    """Pairs with whether longer random play could tell them apart; all actions count as moves here."""
    levels = {level for pair in pairs for level in pair}
    longer = {level: _played(engine, level, seed=1, steps=LONG_STEPS) for level in levels}
    agree = [longer[held] == longer[known] for held, known in pairs]
    return tuple(LevelPair(*pair, same, same) for pair, same in zip(pairs, agree, strict=True))
