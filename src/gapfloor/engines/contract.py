"""The engine contract as checks on anyone's environment (`gapfloor doctor`).

A floor, a rule and a call depend on a few promises: a seed is a level, an episode is a function of its level and
its actions, whatever was played before and in whichever process, and episodes end. Each promise is tried by
play on a handful of levels, and the result is reported in words. A part that held on the levels tried here is not
proven; one that broke is broken.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from gapfloor.engines.engine import Engine, EngineSpec, Option
from gapfloor.engines.global_random_state import read_random_states, restore_random_states, seed_everything
from gapfloor.engines.level_play import first_observation, hash_play, level_of_unlike_clones, random_actions
from gapfloor.engines.registry import engine_from_spec, make_spec
from gapfloor.engines.worker_pool import private_pool
from gapfloor.errors import GapfloorError, MissingExtraError, UnknownEnvironmentError
from gapfloor.levels import LevelSet, draw_levels
from gapfloor.machine import may_start_processes
from gapfloor.tables.readable import ReportResult

#: Seeds of both of the usual level sets, and the last one there is; the first ones are always tried.
LEVELS = (0, 2**31 - 2, 1000, 199, 1, 2, 3, 5, 8, 13, 150, 1001, 1050, 1099)

#: How many of them are tried where making a level is slow, and what counts as slow (seconds of CPU per level).
FEW_LEVELS, SLOW_SECONDS = 4, 0.2

#: Steps after which a check has seen enough of an episode, and steps within which one of random play should have ended.
STEPS, MOST_STEPS = 60, 20_000

#: Level sets for engines whose levels do not matter or are drawn.
ANY_LEVELS, OTHER_LEVELS = LevelSet(0, 200), LevelSet(500, 700)

SPACES = "actions and observations of a fixed form"

#: Level -> hashes of its first observation and of its first steps.
Plays = dict[int, tuple[str, str]]


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


@dataclass(frozen=True, repr=False)
class Contract(ReportResult):
    """What was found about one environment."""

    row_names = ("clauses",)

    game: str
    """The game, or the environment's name."""
    version: str
    """The engine and its version; empty where the environment could not be made."""
    clauses: tuple[Clause, ...]
    """One entry per part of the contract."""

    @property
    def failures(self) -> tuple[Clause, ...]:
        """Needed parts that do not hold."""
        return tuple(clause for clause in self.clauses if clause.is_failure)

    @property
    def failure(self) -> str:  # type: ignore[override]
        """Which needed parts do not hold; empty where all do."""
        if not self.failures:
            return ""
        names = "; ".join(clause.name for clause in self.failures)
        return (
            f"{self.game} does not keep the engine contract ({names}), so its gaps would not be measurements."
        )

    def to_dict(self) -> dict[str, Any]:
        """The findings as JSON values."""
        clauses = [{**asdict(clause), "is_failure": clause.is_failure} for clause in self.clauses]
        return {"game": self.game, "version": self.version, "holds": not self.failures, "clauses": clauses}

    def __repr__(self) -> str:
        lines = [f"{self.game}" + (f" ({self.version})" if self.version else "")]
        lines += [f"{clause.mark:7} {clause.name}: {clause.words}" for clause in self.clauses]
        return "\n".join(
            lines if self.failures else [*lines, f"The contract holds: gapfloor floor {self.game}"]
        )


def check_contract(game: str, *, options: Mapping[str, Option] | None = None) -> Contract:
    """Try every part of the contract on one environment; an environment that cannot be made fails the first."""
    try:
        spec = make_spec(game, options=options)
        engine = engine_from_spec(spec, slots=1, levels=ANY_LEVELS)
    except (MissingExtraError, UnknownEnvironmentError):
        raise
    except GapfloorError as error:
        return Contract(game, "", (Clause(SPACES, "BROKEN", str(error)),))
    clauses = _described(engine)
    try:
        clauses += _try_promises(spec, engine)
    except GapfloorError as error:
        clauses.append(Clause("the checks run to their end", "BROKEN", str(error)))
    engine.close()
    return Contract(game, f"{spec.engine} {spec.version}", tuple(clauses))


def _try_promises(spec: EngineSpec, fresh: Engine) -> list[Clause]:
    """The parts that are tried by play; what a fresh engine plays is the standard for all the others."""
    started = time.process_time()
    first_observation(fresh, LEVELS[0])
    levels = LEVELS[:FEW_LEVELS] if time.process_time() - started > SLOW_SECONDS else LEVELS
    known, again = plays_of(fresh, levels), _plays_after_others(spec, levels)
    starts, starts_again = ({level: play[0] for level, play in plays.items()} for plays in (known, again))
    return [
        _follows_draw(spec),
        _same(
            "the same seed is the same level", starts, starts_again,
            f"first observations of {len(levels)} seeds agree in two environments",
            "two resets with seed {} showed two first observations",
        ),
        _other_levels(known),
        _same(
            "an episode is a function of its level and actions", known, again,
            f"{len(levels)} levels, also after the slot had played other levels",
            "level {} with the same actions was another episode after the slot had played other levels",
        ),
        _fresh_process(spec, known),
        _global_state(fresh, levels[:FEW_LEVELS]),
        _episodes_end(spec),
        _cloning(spec, levels[:FEW_LEVELS]),
    ]  # fmt: skip


def plays_of(engine: Engine, levels: tuple[int, ...], *, slot: int = 0) -> Plays:
    """Two hashes per level: of its first observation, and of its first steps under the same actions everywhere."""
    return {level: hash_play(engine, level, slot=slot, steps=STEPS) for level in levels}


def _plays_after_others(spec: EngineSpec, levels: tuple[int, ...]) -> Plays:
    """The plays of levels in a slot that has already played others, next to slots that play too."""
    rng = np.random.default_rng(1)
    with contextlib.closing(engine_from_spec(spec, slots=3, levels=OTHER_LEVELS, draw=3)) as used:
        for _ in range(STEPS):
            used.step(random_actions(used, rng))
        return plays_of(used, levels, slot=1)


def _same(name: str, known: Mapping[int, Any], there: Mapping[int, Any], same: str, other: str) -> Clause:
    """Whether every level was the same elsewhere: the words for all, or those for the first that was not."""
    unlike = next((level for level, play in known.items() if play != there[level]), None)
    return Clause(name, "holds", same) if unlike is None else Clause(name, "BROKEN", other.format(unlike))


def _follows_draw(spec: EngineSpec) -> Clause:
    """Whether the engine plays the levels that `draw_levels` names."""
    name = "a draw's levels are known before play"
    expected = draw_levels(ANY_LEVELS, draw=5, slots=4, episodes=1)[:, 0].tolist()
    with contextlib.closing(engine_from_spec(spec, slots=4, levels=ANY_LEVELS, draw=5)) as engine:
        engine.observe()
        found = engine.level_seeds.tolist()
    if found != expected:
        return Clause(name, "BROKEN", f"draw 5 should start on the levels {expected} and started on {found}")
    return Clause(name, "holds", "the first level of each slot is the one computed beforehand")


def _other_levels(known: Plays) -> Clause:
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


def _fresh_process(spec: EngineSpec, known: Plays) -> Clause:
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
    return _same(
        name, known, there, f"{len(known)} levels", "level {} with the same actions is another episode there"
    )


def _plays_here(spec: EngineSpec, levels: tuple[int, ...]) -> Plays:
    return plays_of(engine_from_spec(spec, slots=1, levels=ANY_LEVELS), levels)


def _global_state(engine: Engine, levels: tuple[int, ...]) -> Clause:
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


def _episodes_end(spec: EngineSpec) -> Clause:
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


def _cloning(spec: EngineSpec, levels: tuple[int, ...]) -> Clause:
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


def _described(engine: Engine) -> list[Clause]:
    """What the environment says about itself: spaces, seed, masks, no-op and frames."""
    found = getattr(engine, "description", None)
    seen = found.layout.describe() if found else f"uint8 {engine.observation_shape}"
    actions = str(engine.action_space)
    if engine.n_actions:
        names = ", ".join(engine.action_names[:8]) + (", ..." if engine.n_actions > 8 else "")
        actions = f"{engine.n_actions} actions ({names})"
    clauses = [Clause(SPACES, "holds", f"{actions}; observation {seen}")]

    def add(name: str, is_good: bool, words: str) -> None:
        mark: Literal["holds", "note"] = "holds" if is_good else "note"
        clauses.append(Clause(name, mark, words, is_needed=False))

    if found is not None and found.offers_masks:
        rest = "and only those are played" if found.masks else "play only those with --option masks=true"
        add("legal actions", bool(found.masks), f"the environment says which actions are legal: {rest}")
    noop = found.noop_words if found else f"action {engine.noop}"
    add("an action that does nothing", "not named" not in noop, noop)
    engine.observe()
    frame = engine.frame(0)
    nothing = "nothing to draw: neither render_mode rgb_array nor an image as observation"
    words = nothing if frame is None else f"{frame.shape[0]}x{frame.shape[1]} pixels"
    add("frames for replay", frame is not None, words)
    return clauses
