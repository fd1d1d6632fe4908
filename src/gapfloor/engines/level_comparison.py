"""Which held-out levels of a game are training levels under another number.

Levels are compared

1. by their first screen and by their first picture of the whole level;
2. where two agree, along fixed action sequences (what is seen, rewards and ends), because a first frame shows neither
   which way things move nor what a level's random stream will bring;
3. and pairs that still agree by longer random play, which can only refute.

What is looked at depends on the engine: ProcGen's levels are compared by their layout, without their looks (`Layouts`);
in other engines everything that is seen counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.level_play import hash_play
from gapfloor.engines.procgen import ACTION_NAMES, NOOP, ProcgenEngine
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


#: Sequences of actions, each played from the level's initial state.
Sequences = tuple[tuple[int, ...], ...]

SCREEN: Mapping[str, bool] = {
    "use_backgrounds": False, "restrict_themes": True, "use_monochrome_assets": True,
}  # fmt: skip
WHOLE: Mapping[str, bool] = {**SCREEN, "center_agent": False}

#: What the first frame of a game leaves open, from the engine's source. The level's own random stream decides it.
LATER: Mapping[str, str] = {
    "bigfish": "which fish come, when and where",
    "bossfight": "the boss's way and its fire",
    "chaser": "the enemies' turns and where eggs hatch",
    "dodgeball": "the enemies' ways",
    "leaper": "which cars and logs come",
    "miner": "the enemies' turns",
    "ninja": "how a star thrown diagonally slides along a wall",
    "plunder": "which ships come",
    "starpilot": "which ships come",
}

#: Steps of the sequence in the picture of the whole level.
WHOLE_STEPS = 16
#: Moves come before the other actions; how many sequences of longer play there are, of each kind.
N_MOVES, LONG_SEQUENCES = 9, 4
#: Levels side by side in one engine.
_SLOTS = 32


class Layouts:
    """The layouts of one game of ProcGen; the methods are those of `SeenLevels`.

    A layout is what a level is made of, not how it is painted: the engine draws every level without its background, in
    one theme and in one colour per kind of object. In the engine's own drawings two piles of crates that were built in
    another order differ by a pixel, and a 64-cell level in 64 pixels loses objects between samples; plain colours have
    neither fault. Every level is seen from its own initial state, on the screen and as a picture of the whole level
    (`center_agent` off).
    """

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec

    def first_screens(self, levels: Sequence[int]) -> Fingerprints:
        return self.fingerprints(levels, SCREEN, ((),))

    def first_pictures(self, levels: Sequence[int]) -> Fingerprints:
        return self.fingerprints(levels, WHOLE, ((),))

    def played(self, levels: Sequence[int]) -> Fingerprints:
        seen = self.fingerprints(levels, SCREEN, fixed_sequences())
        whole = self.fingerprints(levels, WHOLE, ((NOOP,) * WHOLE_STEPS,))
        return {level: f"{seen[level]}{whole[level]}" for level in levels}

    def played_longer(self, levels: Sequence[int]) -> tuple[Fingerprints, Fingerprints]:
        moves = self.fingerprints(levels, SCREEN, random_sequences(N_MOVES, seed=0))
        return moves, self.fingerprints(levels, SCREEN, random_sequences(len(ACTION_NAMES), seed=0))

    def words(self, n_alike: int) -> str:
        if not n_alike:
            return "whole level in the first frame: no two alike"
        sequences = f"{STEPS} steps of {len(fixed_sequences())} fixed sequences"
        return f"whole level in the first frame; of the {n_alike} alike, {sequences}"

    def shown_later(self, first_frame: int, leaked: int) -> str:
        return LATER.get(self._spec.game, "")

    def fingerprints(
        self, levels: Sequence[int], options: Mapping[str, bool], sequences: Sequences
    ) -> Fingerprints:
        """A hash of everything seen on each level: first frame, then frames, rewards and ends of the sequences."""
        if not levels:
            return {}
        slots = min(_SLOTS, len(levels))
        # The level set of the engine is never played: every slot is put on its level.
        engine = ProcgenEngine(
            self._spec.game,
            slots=slots,
            levels=LevelSet(levels[0], levels[0] + 1),
            mode=self._spec.mode,
            options=options,
        )
        marks: Fingerprints = {}
        for start in range(0, len(levels), slots):
            part = levels[start : start + slots]
            marks |= dict(zip(part, _play(engine, part, sequences), strict=True))
        engine.close()
        return marks


def fixed_sequences(steps: int = STEPS) -> Sequences:
    """Standing still, running to the right with jumps, and straight moves that change every other step."""
    right, jump = ACTION_NAMES.index("RIGHT"), ACTION_NAMES.index("RIGHT+UP")
    straight = [ACTION_NAMES.index(name) for name in ("LEFT", "RIGHT", "UP", "DOWN")]
    run = (*(right,) * 4, *(jump,) * 8, *(right,) * 8)
    turns = np.repeat(np.random.default_rng(0).choice(straight, steps), 2)
    return (NOOP,) * steps, (run * steps)[:steps], tuple(turns[:steps].tolist())


def random_sequences(
    n_actions: int, *, seed: int, count: int = LONG_SEQUENCES, steps: int = LONG_STEPS
) -> Sequences:
    """Random play in which an action is held for one to eight steps, so that it gets somewhere."""
    rng = np.random.default_rng([n_actions, seed])
    sequences = []
    for _ in range(count):
        actions = np.repeat(rng.integers(0, n_actions, steps), rng.integers(1, 9, steps))
        sequences.append(tuple(actions[:steps].tolist()))
    return tuple(sequences)


def _play(engine: ProcgenEngine, levels: Sequence[int], sequences: Sequences) -> list[str]:
    hashes = [hashlib.sha256() for _ in levels]
    for sequence in sequences:
        for slot, level in enumerate(levels):
            engine.load(slot, engine.initial_state(level))
            hashes[slot].update(engine.observe()[0][slot].tobytes())
        playing = list(range(len(levels)))
        for action in sequence:
            frames, rewards, ends = engine.step(np.full(engine.n_slots, action))
            for slot in playing:
                hashes[slot].update(rewards[slot].tobytes() + ends[slot].tobytes())
                # After its end a slot shows another level, which says nothing about this one.
                if not ends[slot]:
                    hashes[slot].update(frames[slot].tobytes())
            playing = [slot for slot in playing if not ends[slot]]
            if not playing:
                break
    return [one.hexdigest() for one in hashes]
