"""Layouts of ProcGen levels, seen through the engine.

A layout is what a level is made of, not how it is painted: the engine draws every level without its background, in one
theme and in one colour per kind of object. In the engine's own drawings two piles of crates that were built in another
order differ by a pixel, and a 64-cell level in 64 pixels loses objects between samples; plain colours have neither
fault. Every level is seen from its own initial state, on the screen and as a picture of the whole level (`center_agent`
off).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.level_comparison import LONG_STEPS, STEPS, Fingerprints
from gapfloor.engines.procgen import ACTION_NAMES, NOOP, ProcgenEngine
from gapfloor.levels import LevelSet

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
    """The layouts of one game; the methods are those of `gapfloor.engines.level_comparison.SeenLevels`."""

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
