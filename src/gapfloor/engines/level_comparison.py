"""Which held-out levels of a game are training levels under another number.

Levels are compared

1. by their first screen and by their first picture of the whole level;
2. where two agree, along fixed action sequences (what is seen, rewards and ends), because a first frame shows neither
   which way things move nor what a level's random stream will bring;
3. and pairs that still agree by longer random play, which can only refute.

What is looked at depends on the engine: ProcGen's levels are compared by their layout, without their looks (`Layouts`);
in other engines everything that is seen counts (`SeenLevels`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from gapfloor.engines.engine import PROCGEN, EngineSpec
from gapfloor.engines.level_play import hash_play
from gapfloor.engines.procgen import ACTION_NAMES, NOOP, ProcgenEngine
from gapfloor.engines.registry import check_ends, engine_from_spec, written_game
from gapfloor.errors import UsageError
from gapfloor.levels.overlap import LevelOverlap, LevelPair, equal_groups, equal_pairs
from gapfloor.levels.schedule import LevelSet, check_disjoint
from gapfloor.settings import shipped

#: Steps of the sequences that are played where levels start alike, and of the longer play.
STEPS, LONG_STEPS = 64, 256
#: More levels than this are not two sets that someone compares, but the generator.
MOST_LEVELS = 20_000

#: A hash of what was seen, by level.
Fingerprints = dict[int, str]
#: Sequences of actions, each played from the level's initial state.
Sequences = tuple[tuple[int, ...], ...]


def compare_levels(
    spec: EngineSpec, *, train: LevelSet, test: LevelSet, tell: Callable[[str], None] = lambda words: None
) -> LevelOverlap:
    """The held-out levels of a game that equal a training level."""
    check_ends(spec)
    for levels in (train, test):
        if levels.n > MOST_LEVELS:
            raise UsageError(
                f"The level set {levels} has more than {MOST_LEVELS} levels: give a range, e.g. 0:200."
            )
    check_disjoint(train, test)
    is_procgen = spec.engine == PROCGEN.name
    view: Layouts | SeenLevels = Layouts(spec) if is_procgen else SeenLevels(spec, train)
    game = f"{spec.game} {spec.mode}" if is_procgen else written_game(spec)
    both = [*range(train.start, train.stop), *range(test.start, test.stop)]

    def count_twins(marks: Fingerprints) -> int:
        return len({held for held, _ in equal_pairs(marks, train=train, test=test)})

    tell(f"{game}: first observations of {len(both)} levels")
    screens, pictures = view.look("screen", both), view.look("picture", both)
    marks = {level: f"{screens[level]}{pictures[level]}" for level in both}
    first_frame = count_twins(marks)
    alike = [level for group in equal_groups(marks) for level in group]
    if alike:
        tell(f"{game}: {len(alike)} levels that start alike, along {STEPS} steps")
        marks |= {level: f"{marks[level]}{mark}" for level, mark in view.look("play", alike).items()}
    pairs = equal_pairs(marks, train=train, test=test)
    tell(f"{game}: {len(pairs)} pairs")
    paired = sorted({level for pair in pairs for level in pair})
    moves, *others = (view.look(name, paired) for name in view.longer)
    actions = others[0] if others else moves
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
        first_screen=count_twins(screens),
        first_frame=first_frame,
        distinct_train=len({marks[level] for level in both[: train.n]}),
        distinct_test=len({marks[level] for level in both[train.n :]}),
        compared=f"{view.start}; of the {len(alike)} alike, {view.play}"
        if alike
        else f"{view.start}: no two alike",
        later=view.later(is_open=first_frame > count_twins(marks)),
    )


class SeenLevels:
    """Levels by what they show: first observation, first picture, and what random actions bring.

    The picture can tell levels apart whose first observations agree: in MiniGrid it is the whole grid, of which the
    observation shows a part.
    """

    longer = ("longer",)
    """The looks that confirm pairs. Here every action is a move."""
    start, play = "first observation", f"{STEPS} random actions"
    """What is compared at the start of every level, and later, in words."""
    _steps: Mapping[str, tuple[int, int]] = {"screen": (0, 0), "play": (STEPS, 0), "longer": (LONG_STEPS, 1)}
    """Steps of random play and their seed, by the name of a look."""

    def __init__(self, spec: EngineSpec, levels: LevelSet) -> None:
        self._engine = engine_from_spec(spec, slots=1, levels=levels)

    def look(self, name: str, levels: Sequence[int]) -> Fingerprints:
        """Hashes of the first picture of the whole level (empty where there is none), or of what is played."""
        if name != "picture":
            steps, seed = self._steps[name]
            return {level: hash_play(self._engine, level, steps=steps, seed=seed)[1] for level in levels}
        marks = {}
        for level in levels:
            self._engine.begin(0, level)
            frame = self._engine.frame(0)
            marks[level] = "" if frame is None else hashlib.sha256(frame.tobytes()).hexdigest()
            if frame is not None:
                self.start = "first observation and picture"
        return marks

    def later(self, *, is_open: bool) -> str:
        """What a first frame leaves open, where some levels start alike and are different."""
        return "what chance brings later" if is_open else ""


SCREEN: Mapping[str, bool] = {
    "use_backgrounds": False, "restrict_themes": True, "use_monochrome_assets": True,
}  # fmt: skip
WHOLE: Mapping[str, bool] = {**SCREEN, "center_agent": False}

#: What the first frame of a game leaves open.
LATER: Mapping[str, str] = {
    game: facts["later"] for game, facts in shipped("data/procgen.toml")["games"].items() if "later" in facts
}

#: Steps of the sequence in the picture of the whole level.
WHOLE_STEPS = 16
#: Moves come before the other actions; how many sequences of longer play there are, of each kind.
N_MOVES, LONG_SEQUENCES = 9, 4
#: Levels side by side in one engine.
_SLOTS = 32


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


class Layouts:
    """The layouts of one game of ProcGen; the methods are those of `SeenLevels`.

    A layout is what a level is made of, not how it is painted: the engine draws every level without its background, in
    one theme and in one colour per kind of object. In the engine's own drawings two piles of crates that were built in
    another order differ by a pixel, and a 64-cell level in 64 pixels loses objects between samples; plain colours have
    neither fault. Every level is seen from its own initial state, on the screen and as a picture of the whole level
    (`center_agent` off).
    """

    longer = ("moves", "all actions")
    start = "whole level in the first frame"
    play = f"{STEPS} steps of {len(fixed_sequences())} fixed sequences"
    _looks: Mapping[str, tuple[tuple[Mapping[str, bool], Sequences], ...]] = {
        "screen": ((SCREEN, ((),)),),
        "picture": ((WHOLE, ((),)),),
        "play": ((SCREEN, fixed_sequences()), (WHOLE, ((NOOP,) * WHOLE_STEPS,))),
        "moves": ((SCREEN, random_sequences(N_MOVES, seed=0)),),
        "all actions": ((SCREEN, random_sequences(len(ACTION_NAMES), seed=0)),),
    }
    """How levels are drawn and what is played, by the name of a look."""

    def __init__(self, spec: EngineSpec) -> None:
        self._spec = spec

    def look(self, name: str, levels: Sequence[int]) -> Fingerprints:
        parts = [self.fingerprints(levels, *each) for each in self._looks[name]]
        return {level: "".join(part[level] for part in parts) for level in levels}

    def later(self, *, is_open: bool) -> str:
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
