"""The engine contract as checks on anyone's environment (`gapfloor doctor`).

A floor, a rule and a call depend on a few promises: a seed is a level, an episode is a function of its level and
its actions, whatever was played before and in whichever process, and episodes end. Each promise is tried by
play on a handful of levels, and the result is reported in words. A part that held on the levels tried here is not
proven; one that broke is broken.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from gapfloor.engines.engine import Engine, EngineSpec, Option
from gapfloor.engines.global_random_state import kept_random_states, read_random_states, seed_everything
from gapfloor.engines.level_play import first_observation, hash_play, level_of_unlike_clones, random_actions
from gapfloor.engines.registry import engine_from_spec, make_spec
from gapfloor.engines.worker_pool import private_pool
from gapfloor.errors import GapfloorError, MissingExtraError, UnknownEnvironmentError
from gapfloor.levels.schedule import LevelSet, draw_levels
from gapfloor.machine import may_start_processes
from gapfloor.settings import shipped
from gapfloor.tables.readable import ReportResult

#: Seeds of both of the usual level sets, and the last one there is; the first ones are always tried.
LEVELS = (0, 2**31 - 2, 1000, 199, 1, 2, 3, 5, 8, 13, 150, 1001, 1050, 1099)

#: How many of them are tried where making a level is slow, and what counts as slow (seconds of CPU per level).
FEW_LEVELS, SLOW_SECONDS = 4, 0.2

#: Steps after which a check has seen enough of an episode, and steps within which one of random play should have ended.
STEPS, MOST_STEPS = 60, 20_000

#: Level sets for engines whose levels do not matter or are drawn.
ANY_LEVELS, OTHER_LEVELS = LevelSet(0, 200), LevelSet(500, 700)

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
        return Contract(game, "", (_clause("spaces", "broken", error=error),))
    clauses = list(_described(engine))
    try:
        clauses += _try_promises(spec, engine)
    except GapfloorError as error:
        clauses.append(_clause("checks", "broken", error=error))
    engine.close()
    return Contract(game, f"{spec.engine} {spec.version}", tuple(clauses))


def _clause(part: str, outcome: str, **values: Any) -> Clause:
    """A part of the contract and what was seen of it, in the words of `data/contract.toml`."""
    about = shipped("data/contract.toml")[part]
    mark, _, words = about[outcome].partition(": ")
    return Clause(about["name"], mark, words.format(**values), outcome not in about.get("optional", ()))


def _described(engine: Engine) -> Iterator[Clause]:
    """What the environment says about itself: spaces, seed, masks, no-op and frames."""
    found = getattr(engine, "description", None)
    seen = found.layout.describe() if found else f"uint8 {engine.observation_shape}"
    actions = str(engine.action_space)
    if engine.n_actions:
        names = ", ".join(engine.action_names[:8]) + (", ..." if engine.n_actions > 8 else "")
        actions = f"{engine.n_actions} actions ({names})"
    yield _clause("spaces", "kept", actions=actions, observations=seen)
    if found is not None and found.offers_masks:
        yield _clause("masks", "played" if found.masks else "offered")
    words = found.noop_words if found else f"action {engine.noop}"
    yield _clause("noop", "unnamed" if "not named" in words else "named", words=words)
    engine.observe()
    frame = engine.frame(0)
    height, width = (0, 0) if frame is None else frame.shape[:2]
    yield _clause("frames", "none" if frame is None else "drawn", height=height, width=width)


def _try_promises(spec: EngineSpec, fresh: Engine) -> list[Clause]:
    """The parts that are tried by play; what a fresh engine plays is the standard for all the others."""
    started = time.process_time()
    first_observation(fresh, LEVELS[0])
    levels = LEVELS[:FEW_LEVELS] if time.process_time() - started > SLOW_SECONDS else LEVELS
    known = plays_of(fresh, levels)
    # A slot that has already played other levels, next to slots that play too.
    rng = np.random.default_rng(1)
    with contextlib.closing(engine_from_spec(spec, slots=3, levels=OTHER_LEVELS, draw=3)) as used:
        for _ in range(STEPS):
            used.step(random_actions(used, rng))
        again = plays_of(used, levels, slot=1)
    starts, starts_again = ({level: play[0] for level, play in plays.items()} for plays in (known, again))
    return [
        _follows_draw(spec),
        _same("same", starts, starts_again),
        _other_levels(known),
        _same("function", known, again),
        _fresh_process(spec, known),
        _global_state(fresh, levels[:FEW_LEVELS]),
        _episodes_end(spec),
        _cloning(spec, levels[:FEW_LEVELS]),
    ]


def plays_of(engine: Engine, levels: tuple[int, ...], *, slot: int = 0) -> Plays:
    """Two hashes per level: of its first observation, and of its first steps under the same actions everywhere."""
    return {level: hash_play(engine, level, slot=slot, steps=STEPS) for level in levels}


def _same(part: str, known: Mapping[int, Any], there: Mapping[int, Any]) -> Clause:
    """Whether every level was the same elsewhere."""
    unlike = next((level for level, play in known.items() if play != there[level]), None)
    return _clause(part, "kept" if unlike is None else "broken", n=len(known), level=unlike)


def _follows_draw(spec: EngineSpec) -> Clause:
    """Whether the engine plays the levels that `draw_levels` names."""
    expected = draw_levels(ANY_LEVELS, draw=5, slots=4, episodes=1)[:, 0].tolist()
    with contextlib.closing(engine_from_spec(spec, slots=4, levels=ANY_LEVELS, draw=5)) as engine:
        engine.observe()
        found = engine.level_seeds.tolist()
    return _clause("draw", "kept" if found == expected else "broken", expected=expected, found=found)


def _other_levels(known: Plays) -> Clause:
    """Whether different seeds give different levels, at the start or in what follows."""
    starts, episodes = (len({play[part] for play in known.values()}) for part in (0, 1))
    if episodes == 1:
        outcome = "broken"
    elif starts == 1:
        outcome = "later"
    else:
        outcome = "kept" if starts == len(known) else "some"
    return _clause("other", outcome, n=len(known), starts=starts, episodes=episodes)


def _fresh_process(spec: EngineSpec, known: Plays) -> Clause:
    """Whether a new process, with another order of sets and other global random states, plays the same episodes."""
    if not may_start_processes():
        return _clause("process", "untried")
    with private_pool(1) as pool:
        try:
            there = pool.submit(_plays_here, spec, tuple(known)).result()
        except Exception as error:  # whatever happens there, the clause says it in words
            words = f"a new process cannot play it: {type(error).__name__}: {error}"
            return _clause("process", "failed", error=words.strip().splitlines()[0])
    return _same("process", known, there)


def _plays_here(spec: EngineSpec, levels: tuple[int, ...]) -> Plays:
    return plays_of(engine_from_spec(spec, slots=1, levels=ANY_LEVELS), levels)


def _global_state(engine: Engine, levels: tuple[int, ...]) -> Clause:
    """Whether randomness comes from outside the environment: the global state of Python, numpy or torch."""
    found = []
    with kept_random_states():
        for seed in (1, 2):
            seed_everything(seed)
            before = read_random_states()
            found.append(plays_of(engine, levels))
            touched = [key for key, value in read_random_states().items() if value != before[key]]
    if found[0] == found[1]:
        return _clause("random", "touched" if touched else "kept", names=", ".join(touched))
    return _clause("random", "broken" if touched else "unknown", names=", ".join(touched))


def _episodes_end(spec: EngineSpec) -> Clause:
    """Whether random play ends; otherwise a cell would never be complete."""
    rng = np.random.default_rng(0)
    lengths = np.zeros(4, dtype=np.int64)
    ended: list[int] = []
    with contextlib.closing(engine_from_spec(spec, slots=4, levels=ANY_LEVELS)) as engine:
        engine.observe()
        while len(ended) < 8 and lengths.sum() + sum(ended) < MOST_STEPS:
            _, _, firsts = engine.step(random_actions(engine, rng))
            lengths += 1
            ended += lengths[firsts].tolist()
            lengths[firsts] = 0
    if not ended:
        return _clause("ends", "broken", most=MOST_STEPS)
    span = f"{min(ended)} to {max(ended)}" if min(ended) < max(ended) else f"{max(ended)}"
    return _clause("ends", "kept", n=len(ended), span=span)


def _cloning(spec: EngineSpec, levels: tuple[int, ...]) -> Clause:
    """Whether a saved state continues as the original does, in other slots and more than once."""
    with contextlib.closing(engine_from_spec(spec, slots=3, levels=ANY_LEVELS)) as engine:
        if not engine.can_clone:
            return _clause("clones", "none")
        unlike = level_of_unlike_clones(engine, levels)
    return _clause("clones", "kept" if unlike is None else "broken", n=len(levels), level=unlike)
