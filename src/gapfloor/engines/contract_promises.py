"""The parts of the engine contract that are tried by play; `gapfloor.engines.contract` puts them together.

Each function returns one clause. A part that held on the levels tried here is not proven; one that broke is broken.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gapfloor.engines.engine import Engine, EngineSpec
from gapfloor.engines.global_random_state import read_random_states, restore_random_states, seed_everything
from gapfloor.engines.level_play import hash_play, level_of_unlike_clones, random_actions
from gapfloor.engines.registry import engine_from_spec
from gapfloor.engines.worker_pool import private_pool
from gapfloor.levels import LevelSet, draw_levels
from gapfloor.machine import may_start_processes

#: Steps after which a check has seen enough of an episode.
STEPS = 60

#: Steps within which some episode of random play should have ended.
MOST_STEPS = 20_000

#: Level sets for engines whose levels do not matter or are drawn.
ANY_LEVELS = LevelSet(0, 200)
OTHER_LEVELS = LevelSet(500, 700)


@dataclass(frozen=True)
class Clause:
    """One part of the contract and whether it holds."""

    name: str
    """Its name."""
    mark: Literal["holds", "note", "BROKEN"]
    """holds, note (worth knowing, but no problem) or BROKEN."""
    words: str
    """What was tried and seen."""
    is_needed: bool = True
    """Whether measuring is impossible without it."""

    @property
    def is_failure(self) -> bool:
        """Whether the environment cannot be measured because of it."""
        return self.is_needed and self.mark == "BROKEN"


#: Level -> hashes of its first observation and of its first steps.
Plays = dict[int, tuple[str, str]]


def plays_after_others(spec: EngineSpec, levels: tuple[int, ...]) -> Plays:
    """The plays of levels in a slot that has already played others, next to slots that play too."""
    used = engine_from_spec(spec, slots=3, levels=OTHER_LEVELS, draw=3)
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        used.step(random_actions(used, rng))
    plays = plays_of(used, levels, slot=1)
    used.close()
    return plays


def follows_draw(spec: EngineSpec) -> Clause:
    """Whether the engine plays the levels that `draw_levels` names."""
    name = "a draw's levels are known before play"
    engine = engine_from_spec(spec, slots=4, levels=ANY_LEVELS, draw=5)
    expected = draw_levels(ANY_LEVELS, draw=5, slots=4, episodes=1)[:, 0]
    engine.observe()
    found = engine.level_seeds.tolist()
    engine.close()
    if found != expected.tolist():
        words = f"draw 5 should start on the levels {expected.tolist()} and started on {found}"
        return Clause(name, "BROKEN", words)
    return Clause(name, "holds", "the first level of each slot is the one computed beforehand")


def same_level(known: Plays, again: Plays) -> Clause:
    """Whether two engines show the same first observation for the same seed."""
    name = "the same seed is the same level"
    for level, play in known.items():
        if play[0] != again[level][0]:
            return Clause(name, "BROKEN", f"two resets with seed {level} showed two first observations")
    return Clause(name, "holds", f"first observations of {len(known)} seeds agree in two environments")


def other_levels(known: Plays) -> Clause:
    """Whether different seeds give different levels, at the start or in what follows."""
    starts, episodes = (len({play[part] for play in known.values()}) for part in (0, 1))
    name, n = "another seed is another level", len(known)
    if episodes == 1:
        words = f"{n} seeds gave the same episode: there are no other levels to generalize to"
        return Clause(name, "BROKEN", words)
    if starts == 1:
        words = (
            f"{n} seeds have one start and {episodes} different episodes: a seed decides what happens next"
        )
        return Clause(name, "note", words)
    words = f"{n} seeds gave {starts} different starts and {episodes} different episodes"
    return Clause(name, "holds" if starts == n else "note", words)


def survives_history(known: Plays, again: Plays) -> Clause:
    """Whether an episode is a function of seed and actions, whatever its slot and the other slots played before."""
    name = "an episode is a function of its level and actions"
    for level, play in known.items():
        if play != again[level]:
            words = f"level {level} with the same actions was another episode after the slot had played other levels"
            return Clause(name, "BROKEN", words)
    return Clause(name, "holds", f"{len(known)} levels, also after the slot had played other levels")


def fresh_process(spec: EngineSpec, known: Plays) -> Clause:
    """Whether a new process, with another order of sets and other global random states, plays the same episodes."""
    name = "the same episodes in a fresh process"
    if not may_start_processes():
        return Clause(name, "note", "not tried: this process may not start others", is_needed=False)
    with private_pool(1) as pool:
        try:
            there = pool.submit(_plays_here, spec, tuple(known)).result()
        except Exception as error:  # whatever happens there, the clause says it in words
            words = f"a new process cannot play it: {type(error).__name__}: {error}"
            return Clause(name, "BROKEN", words.strip().splitlines()[0])
    for level, play in known.items():
        if play != there[level]:
            return Clause(name, "BROKEN", f"level {level} with the same actions is another episode there")
    return Clause(name, "holds", f"{len(known)} levels")


def plays_of(engine: Engine, levels: tuple[int, ...], *, slot: int = 0) -> Plays:
    """Two hashes per level: of its first observation, and of its first steps under the same actions everywhere."""
    return {level: hash_play(engine, level, slot=slot, steps=STEPS) for level in levels}


def _plays_here(spec: EngineSpec, levels: tuple[int, ...]) -> Plays:
    return plays_of(engine_from_spec(spec, slots=1, levels=ANY_LEVELS), levels)


def global_state(engine: Engine, levels: tuple[int, ...]) -> Clause:
    """Whether randomness comes from outside the environment: the global state of Python, numpy or torch."""
    name = "no global random state"
    kept = read_random_states()
    try:
        found = []
        for seed in (1, 2):
            seed_everything(seed)
            before = read_random_states()
            found.append(plays_of(engine, levels))
            touched = [key for key, value in read_random_states().items() if value != before[key]]
    finally:
        restore_random_states(kept)
    if found[0] != found[1] and not touched:
        words = (
            "unknown: episodes do not repeat, although no global state of Python, numpy or torch is touched"
        )
        return Clause(name, "note", words, is_needed=False)
    if found[0] != found[1]:
        return Clause(name, "BROKEN", f"episodes follow the global random state of {', '.join(touched)}")
    if touched:
        words = f"draws from the global state of {', '.join(touched)}, without effect on what was seen"
        return Clause(name, "note", words, is_needed=False)
    return Clause(name, "holds", "neither Python's, numpy's nor torch's is touched or matters")


def episodes_end(spec: EngineSpec) -> Clause:
    """Whether random play ends; otherwise a cell would never be complete."""
    name = "episodes end"
    engine = engine_from_spec(spec, slots=4, levels=ANY_LEVELS)
    rng = np.random.default_rng(0)
    engine.observe()
    lengths = np.zeros(4, dtype=np.int64)
    ended: list[int] = []
    while len(ended) < 8 and lengths.sum() + sum(ended) < MOST_STEPS:
        _, _, firsts = engine.step(random_actions(engine, rng))
        lengths += 1
        ended += lengths[firsts].tolist()
        lengths[firsts] = 0
    engine.close()
    if not ended:
        words = f"none ended within {MOST_STEPS:,} steps of random play: give --option max_episode_steps=N"
        return Clause(name, "BROKEN", words)
    span = f"{min(ended)} to {max(ended)}" if min(ended) < max(ended) else f"{max(ended)}"
    return Clause(name, "holds", f"{len(ended)} of random play, {span} steps")


def cloning(spec: EngineSpec, levels: tuple[int, ...]) -> Clause:
    """Whether a saved state continues as the original does, in other slots and more than once."""
    name = "states can be cloned"
    engine = engine_from_spec(spec, slots=3, levels=ANY_LEVELS)
    if not engine.can_clone:
        words = "the same actions do not give the same state again: no calibration, no merged rule, no merged entropy"
        return Clause(name, "note", words, is_needed=False)
    unlike = level_of_unlike_clones(engine, levels)
    engine.close()
    if unlike is not None:
        words = f"a clone on level {unlike} did not continue as the original did"
        return Clause(name, "BROKEN", words, is_needed=False)
    return Clause(name, "holds", f"{len(levels)} levels", is_needed=False)
