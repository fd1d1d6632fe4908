"""Which held-out levels of a game are training levels under another number.

Levels are compared

1. by their first screen and by their first picture of the whole level;
2. where two agree, along fixed action sequences (what is seen, rewards and ends), because a first frame shows neither
   which way things move nor what a level's random stream will bring;
3. and pairs that still agree by longer random play, which can only refute.

What is looked at depends on the engine: ProcGen's levels are compared by their layout, without their looks
(`gapfloor.engines.layouts`); in other engines everything that is seen counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.level_play import hash_play
from gapfloor.engines.registry import check_ends, engine_from_spec, written_game
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

#: Steps of the sequences that are played where levels start alike, and of the longer play.
STEPS, LONG_STEPS = 64, 256

#: A hash of what was seen, by level.
Fingerprints = dict[int, str]


def compare_levels(
    spec: EngineSpec, *, train: LevelSet, test: LevelSet, tell: Callable[[str], None] = lambda words: None
) -> LevelOverlap:
    """The held-out levels of a game that equal a training level."""
    check_ends(spec)
    check_comparable(train, test)
    from gapfloor.engines.layouts import Layouts

    view = Layouts(spec) if spec.engine == PROCGEN.name else SeenLevels(spec, train)
    game = f"{spec.game} {spec.mode}" if spec.engine == PROCGEN.name else written_game(spec)
    both = [*range(train.start, train.stop), *range(test.start, test.stop)]

    def twins_of(marks: Fingerprints) -> list[tuple[int, int]]:
        return equal_pairs(marks, train=train, test=test)

    tell(f"{game}: first observations of {len(both)} levels")
    screens = view.first_screens(both)
    pictures = view.first_pictures(both)
    marks = {level: f"{screens[level]}{pictures[level]}" for level in both}
    first_frame = len(held_out(twins_of(marks)))
    alike = [level for group in equal_groups(marks) for level in group]
    if alike:
        tell(f"{game}: {len(alike)} levels that start alike, along {STEPS} steps")
        marks |= {level: f"{marks[level]}{mark}" for level, mark in view.played(alike).items()}
    pairs = twins_of(marks)
    tell(f"{game}: {len(pairs)} pairs")
    moves, actions = view.played_longer(sorted({level for pair in pairs for level in pair}))
    return LevelOverlap(
        game=spec.game,
        mode=spec.mode,
        engine=spec.engine,
        version=spec.version,
        train=train,
        test=test,
        pairs=tuple(
            LevelPair(held, known, moves[held] == moves[known], actions[held] == actions[known])
            for held, known in pairs
        ),
        first_screen=len(held_out(twins_of(screens))),
        first_frame=first_frame,
        distinct_train=count_distinct(marks, train),
        distinct_test=count_distinct(marks, test),
        compared=view.words(len(alike)),
        later=view.shown_later(first_frame, len(held_out(pairs))),
    )


class SeenLevels:
    """Levels by what they show: first observation, first picture, and what random actions bring.

    The picture can tell levels apart whose first observations agree: in MiniGrid it is the whole grid, of which the
    observation shows a part.
    """

    def __init__(self, spec: EngineSpec, levels: LevelSet) -> None:
        self._engine = engine_from_spec(spec, slots=1, levels=levels)
        self._has_pictures = False

    def first_screens(self, levels: Sequence[int]) -> Fingerprints:
        return {level: hash_play(self._engine, level, steps=0)[0] for level in levels}

    def first_pictures(self, levels: Sequence[int]) -> Fingerprints:
        """The first picture of the whole level; empty texts where there is none."""
        marks = {}
        for level in levels:
            self._engine.begin(0, level)
            frame = self._engine.frame(0)
            marks[level] = "" if frame is None else hashlib.sha256(frame.tobytes()).hexdigest()
            self._has_pictures |= frame is not None
        return marks

    def played(self, levels: Sequence[int]) -> Fingerprints:
        """What `STEPS` random actions bring."""
        return {level: hash_play(self._engine, level, steps=STEPS)[1] for level in levels}

    def played_longer(self, levels: Sequence[int]) -> tuple[Fingerprints, Fingerprints]:
        """What `LONG_STEPS` random moves bring, and the same with every action: here every action is a move."""
        longer = {level: hash_play(self._engine, level, steps=LONG_STEPS, seed=1)[1] for level in levels}
        return longer, longer

    def words(self, n_alike: int) -> str:
        """What was compared, where this many levels started alike."""
        looks = "first observation and picture" if self._has_pictures else "first observation"
        return (
            f"{looks}; of the {n_alike} alike, {STEPS} random actions"
            if n_alike
            else f"{looks}: no two alike"
        )

    def shown_later(self, first_frame: int, leaked: int) -> str:
        """What a first frame leaves open; the numbers are those of held-out levels with such a twin and a real one."""
        return "what chance brings later" if first_frame > leaked else ""
