"""Layouts of ProcGen levels, seen through the engine: which held-out levels are training levels under another number.

A layout is what a level is made of, not how it is painted: the engine draws every level without its background, in one
theme and in one colour per kind of object. In the engine's own drawings two piles of crates that were built in another
order differ by a pixel, and a 64-cell level in 64 pixels loses objects between samples; plain colours have neither
fault. Levels are compared

1. by their first screen and by their first picture of the whole level (`center_agent` off), each from the level's own
   initial state;
2. where two agree, along fixed action sequences (frames, rewards and ends), because a first frame shows neither which
   way things move nor what a level's random stream will bring;
3. and pairs that still agree by longer random play, with moves alone and with every action, which can only refute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gapfloor.engines.procgen import ACTION_NAMES, NOOP, ProcgenEngine, check_levels, make_spec
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

#: Steps of the fixed sequences, of the sequence in the picture of the whole level, and of the longer play.
STEPS, WHOLE_STEPS, LONG_STEPS = 64, 16, 256
#: How many sequences of longer play, of each kind.
LONG_SEQUENCES = 4
#: Levels side by side in one engine.
_SLOTS = 32

Fingerprints = dict[int, str]


@dataclass(frozen=True)
class LayoutDefinition:
    """One meaning of "the same layout", and how many held-out levels have a twin by it."""

    words: str
    leaked: int


def check_layouts(
    game: str,
    *,
    train: LevelSet,
    test: LevelSet,
    mode: str = "easy",
    tell: Callable[[str], None] | None = None,
) -> LevelOverlap:
    """The held-out levels of a game whose layout equals a training level's."""
    spec = make_spec(game, mode=mode)
    _check_sets(game, mode, train, test)
    say = tell or (lambda words: None)
    look = _Fingerprinter(game, mode)
    levels = [*range(train.start, train.stop), *range(test.start, test.stop)]
    say(f"{game} {mode}: first frames of {len(levels)} levels")
    screens = look.fingerprints(levels, SCREEN, ((),))
    wholes = look.fingerprints(levels, WHOLE, ((),))
    marks = _joined(screens, wholes)
    first_frame = len(held_out(equal_pairs(marks, train=train, test=test)))
    twins = [level for group in equal_groups(marks) for level in group]
    if twins:
        say(f"{game} {mode}: {len(twins)} levels that share a first frame, along fixed sequences")
        played = _joined(
            look.fingerprints(twins, SCREEN, fixed_sequences()),
            look.fingerprints(twins, WHOLE, ((NOOP,) * WHOLE_STEPS,)),
        )
        marks |= {level: f"{marks[level]}{played[level]}" for level in twins}
    pairs = equal_pairs(marks, train=train, test=test)
    say(f"{game} {mode}: {len(pairs)} pairs")
    return LevelOverlap(
        game=game,
        mode=mode,
        engine=spec.engine,
        version=spec.version,
        train=train,
        test=test,
        pairs=_confirmed(look, pairs),
        first_screen=len(held_out(equal_pairs(screens, train=train, test=test))),
        first_frame=first_frame,
        distinct_train=count_distinct(marks, train),
        distinct_test=count_distinct(marks, test),
        compared=_words(len(twins)),
        later=LATER.get(game, ""),
    )


def count_by_definition(
    game: str, *, train: LevelSet, test: LevelSet, mode: str = "easy"
) -> tuple[LayoutDefinition, ...]:
    """How many held-out levels have a twin by looser and stricter meanings of "the same layout"."""
    _check_sets(game, mode, train, test)
    look = _Fingerprinter(game, mode)
    levels = [*range(train.start, train.stop), *range(test.start, test.stop)]
    drawn = {"use_backgrounds": False, "restrict_themes": True}
    wholes = look.fingerprints(levels, WHOLE, ((),))
    twins = [level for group in equal_groups(wholes) for level in group]
    alone = {level: str(level) for level in levels}
    plain = {**alone, **look.fingerprints(twins, SCREEN, fixed_sequences())}
    as_drawn = {**alone, **look.fingerprints(twins, drawn, fixed_sequences())}
    views = {
        "first screen as the agent sees it": look.fingerprints(levels, {}, ((),)),
        "first screen, no background, one theme": look.fingerprints(levels, drawn, ((),)),
        "whole level in the first frame, as drawn": look.fingerprints(
            levels, {**drawn, "center_agent": False}, ((),)
        ),
        "whole level in the first frame, plain colours": wholes,
        "the same and fixed sequences, plain colours": _joined(wholes, plain),
        "the same and fixed sequences, as drawn": _joined(wholes, as_drawn),
    }
    return tuple(
        LayoutDefinition(words, len(held_out(equal_pairs(marks, train=train, test=test))))
        for words, marks in views.items()
    )


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


class _Fingerprinter:
    """Takes fingerprints of a game's levels."""

    def __init__(self, game: str, mode: str) -> None:
        self._game, self._mode = game, mode

    def fingerprints(
        self, levels: Sequence[int], options: Mapping[str, bool], sequences: Sequences
    ) -> Fingerprints:
        """A hash of everything seen on each level: first frame, then frames, rewards and ends of the sequences."""
        if not levels:
            return {}
        slots = min(_SLOTS, len(levels))
        # The level set of the engine is never played: every slot is put on its level.
        engine = ProcgenEngine(
            self._game,
            slots=slots,
            levels=LevelSet(levels[0], levels[0] + 1),
            mode=self._mode,
            options=options,
        )
        marks: Fingerprints = {}
        for start in range(0, len(levels), slots):
            part = levels[start : start + slots]
            marks |= dict(zip(part, _play(engine, part, sequences), strict=True))
        engine.close()
        return marks


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


def _confirmed(look: _Fingerprinter, pairs: Sequence[tuple[int, int]]) -> tuple[LevelPair, ...]:
    levels = sorted({level for pair in pairs for level in pair})
    moves = look.fingerprints(levels, SCREEN, random_sequences(9, seed=0))
    actions = look.fingerprints(levels, SCREEN, random_sequences(len(ACTION_NAMES), seed=0))
    return tuple(
        LevelPair(held, known, moves[held] == moves[known], actions[held] == actions[known])
        for held, known in pairs
    )


def _check_sets(game: str, mode: str, train: LevelSet, test: LevelSet) -> None:
    spec = make_spec(game, mode=mode)
    for levels in (train, test):
        check_levels(spec, levels)
    check_comparable(train, test)


def _joined(*marks: Fingerprints) -> Fingerprints:
    return {level: "".join(one[level] for one in marks) for level in marks[0]}


def _words(n_twins: int) -> str:
    if not n_twins:
        return "whole level in the first frame: no two alike"
    n = len(fixed_sequences())
    return f"whole level in the first frame; of the {n_twins} alike, {STEPS} steps of {n} fixed sequences"
