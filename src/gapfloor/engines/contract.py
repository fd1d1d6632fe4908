"""The engine contract as checks on anyone's environment (`gapfloor engines check`).

A floor, a rule and a call rest on a few promises: a seed is a level, an episode is a function of its level and
its actions, whatever was played before and in whichever process, and episodes end. Each promise is tried here by
play, on a handful of levels, and reported in words. A promise that held on these levels is not proven; one that broke
is broken.
"""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import queue
import random
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from gapfloor.engines.gymnasium.spaces import row_bytes
from gapfloor.engines.protocol import Engine, EngineSpec, Option
from gapfloor.engines.registry import engine_from_spec, make_spec
from gapfloor.errors import GapfloorError, MissingExtraError, UnknownEnvironmentError
from gapfloor.levels import LevelSet

#: Seeds of both of the usual level sets, and the last one there is; the first ones are always tried.
LEVELS = (0, 2**31 - 2, 1000, 199, 1, 2, 3, 5, 8, 13, 150, 1001, 1050, 1099)

#: How many of them are tried where making a level takes long, and what counts as long (seconds of CPU a level).
FEW, LONG = 4, 0.2

#: Steps after which a check has seen enough of an episode.
STEPS = 60

#: Steps within which some episode of random play should have ended.
MOST_STEPS = 20_000

_ANY = LevelSet(0, 200)

#: Level -> hashes of its first observation and of its first steps.
Plays = dict[int, tuple[str, str]]


@dataclass(frozen=True)
class Clause:
    """One part of the contract and whether it holds."""

    name: str
    mark: Literal["holds", "note", "BROKEN"]
    words: str
    is_needed: bool = True

    @property
    def is_failure(self) -> bool:
        """Whether the environment cannot be measured because of it."""
        return self.is_needed and self.mark == "BROKEN"

    def to_dict(self) -> dict[str, Any]:
        """The clause as JSON values."""
        return {**asdict(self), "is_failure": self.is_failure}


@dataclass(frozen=True)
class Contract:
    """What was found about one environment."""

    game: str
    version: str
    """The engine and its version; empty where the environment could not be made."""
    clauses: tuple[Clause, ...]

    @property
    def failures(self) -> tuple[Clause, ...]:
        """Needed parts that do not hold."""
        return tuple(clause for clause in self.clauses if clause.is_failure)

    def to_dict(self) -> dict[str, Any]:
        """The findings as JSON values."""
        clauses = [clause.to_dict() for clause in self.clauses]
        return {"game": self.game, "version": self.version, "holds": not self.failures, "clauses": clauses}


def check_contract(game: str, *, options: Mapping[str, Option] | None = None) -> Contract:
    """Try every part of the contract on one environment; an environment that cannot be made fails the first."""
    try:
        spec = make_spec(game, options=options)
        engine = engine_from_spec(spec, slots=1, levels=_ANY)
    except (MissingExtraError, UnknownEnvironmentError):
        raise
    except GapfloorError as error:
        return Contract(game, "", (Clause("discrete actions, fixed observations", "BROKEN", str(error)),))
    clauses = [_made(engine), _noop(engine), *_autoreset(engine), _frames(engine)]
    if engine.can_begin:
        try:
            clauses += _promises(spec, engine)
        except GapfloorError as error:
            clauses.append(Clause("the checks run to their end", "BROKEN", str(error)))
    else:
        words = "levels come as the engine draws them: an episode cannot be begun on a level of one's choice"
        clauses.append(Clause("a level can be begun", "note", words, is_needed=False))
    engine.close()
    return Contract(game, f"{spec.engine} {spec.version}", tuple(clauses))


def _promises(spec: EngineSpec, fresh: Engine) -> list[Clause]:
    """The parts that are tried by play; what a fresh engine plays is what all the others are held to."""
    started = time.process_time()
    first_observation(fresh, LEVELS[0])
    levels = LEVELS[:FEW] if time.process_time() - started > LONG else LEVELS
    known = plays_of(fresh, levels)
    used = engine_from_spec(spec, slots=3, levels=LevelSet(500, 700), draw=3)
    rng = np.random.default_rng(1)
    for _ in range(STEPS):
        used.step(rng.integers(0, used.n_actions, 3))
    again = plays_of(used, levels, slot=1)
    used.close()
    return [
        _same_level(known, again),
        _other_levels(known),
        _survives_history(known, again),
        _fresh_process(spec, known),
        _global_state(fresh, levels[:FEW]),
        _episodes_end(spec),
        _cloning(spec, levels[:FEW]),
    ]


def _made(engine: Engine) -> Clause:
    description = getattr(engine, "description", None)
    seen = description.layout.describe() if description else f"uint8 {engine.observation_shape}"
    names = ", ".join(engine.action_names[:8]) + (", ..." if engine.n_actions > 8 else "")
    words = f"{engine.n_actions} actions ({names}); observation {seen}"
    return Clause("discrete actions, fixed observations", "holds", words)


def _noop(engine: Engine) -> Clause:
    description = getattr(engine, "description", None)
    words = description.noop_words if description else f"action {engine.noop}"
    is_known = "not named" not in words
    return Clause("an action that does nothing", "holds" if is_known else "note", words, is_needed=False)


def _autoreset(engine: Engine) -> list[Clause]:
    description = getattr(engine, "description", None)
    if description is None:
        return []
    if not description.is_vector:
        words = "single environments, which gapfloor resets itself"
    else:
        mode = description.autoreset or "no declared mode"
        words = f"a vector environment with {mode}; gapfloor puts each environment at its next level itself"
    return [Clause("autoreset", "holds", words, is_needed=False)]


def _frames(engine: Engine) -> Clause:
    engine.observe()
    frame = engine.frame(0)
    name = "frames for replay"
    if frame is None:
        words = "nothing to draw: neither render_mode rgb_array nor an image as observation"
        return Clause(name, "note", words, is_needed=False)
    return Clause(name, "holds", f"{frame.shape[0]}x{frame.shape[1]} pixels", is_needed=False)


def _same_level(known: Plays, again: Plays) -> Clause:
    """Same seed, same level: two engines show the same first observation."""
    name = "the same seed is the same level"
    for level, play in known.items():
        if play[0] != again[level][0]:
            return Clause(name, "BROKEN", f"two resets with seed {level} showed two first observations")
    return Clause(name, "holds", f"first observations of {len(known)} seeds agree in two environments")


def _other_levels(known: Plays) -> Clause:
    """Other seeds, other levels, at the start or in what follows."""
    starts, episodes = (len({play[part] for play in known.values()}) for part in (0, 1))
    name, n = "another seed is another level", len(known)
    if episodes == 1:
        words = f"{n} seeds gave one and the same episode: there are no other levels to generalize to"
        return Clause(name, "BROKEN", words)
    if starts == 1:
        words = f"{n} seeds start alike and give {episodes} different episodes: a seed decides what happens, not where"
        return Clause(name, "note", words)
    words = f"{n} seeds gave {starts} different starts and {episodes} different episodes"
    return Clause(name, "holds" if starts == n else "note", words)


def _survives_history(known: Plays, again: Plays) -> Clause:
    """An episode is a function of seed and actions, whatever its slot and the slots beside it played before."""
    name = "an episode is a function of its level and actions"
    for level, play in known.items():
        if play != again[level]:
            words = f"level {level} with the same actions went another way after the slot had played others"
            return Clause(name, "BROKEN", words)
    return Clause(name, "holds", f"{len(known)} levels, also after the slot had played others")


def _fresh_process(spec: EngineSpec, known: Plays) -> Clause:
    """The same episodes in a new process, which has another order of sets and other global random states."""
    name = "the same episodes in a fresh process"
    context = multiprocessing.get_context("spawn")
    inbox = context.Queue()
    process = context.Process(target=_tell_plays, args=(spec, tuple(known), inbox), daemon=True)
    process.start()
    there: Any = None
    while there is None and (process.is_alive() or not inbox.empty()):
        with contextlib.suppress(queue.Empty):
            there = inbox.get(timeout=0.5)
    process.join()
    if there is None:
        return Clause(name, "BROKEN", f"the process ended with exit code {process.exitcode}")
    if isinstance(there, str):
        return Clause(name, "BROKEN", f"a new process cannot play it: {there}")
    for level, play in known.items():
        if play != there[level]:
            return Clause(name, "BROKEN", f"level {level} with the same actions is another episode there")
    return Clause(name, "holds", f"{len(known)} levels")


def _tell_plays(spec: EngineSpec, levels: tuple[int, ...], inbox: Any) -> None:
    try:
        inbox.put(plays_of(engine_from_spec(spec, slots=1, levels=_ANY), levels))
    except Exception as error:  # the parent says it in words
        inbox.put(f"{type(error).__name__}: {error}")


def _global_state(engine: Engine, levels: tuple[int, ...]) -> Clause:
    """Whether randomness comes from outside the environment: Python's, numpy's or torch's global state."""
    name = "no global random state"
    kept = _global_states()
    try:
        found = []
        for seed in (1, 2):
            _seed_globals(seed)
            before = _global_states()
            found.append(plays_of(engine, levels))
            touched = [key for key, value in _global_states().items() if value != before[key]]
    finally:
        _restore(kept)
    if found[0] != found[1] and not touched:
        words = "cannot be told: episodes do not repeat, and yet no global state of Python, numpy or torch is touched"
        return Clause(name, "note", words, is_needed=False)
    if found[0] != found[1]:
        return Clause(name, "BROKEN", f"episodes follow the global random state of {', '.join(touched)}")
    if touched:
        words = f"draws from the global state of {', '.join(touched)}, without effect on what was seen"
        return Clause(name, "note", words, is_needed=False)
    return Clause(name, "holds", "neither Python's, numpy's nor torch's is touched or matters")


def _global_states() -> dict[str, Any]:
    states: dict[str, Any] = {"random": random.getstate()}
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    states["numpy.random"] = (name, np.asarray(keys).tobytes(), *rest)
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def _seed_globals(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (it is the global state that is tried here)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _restore(kept: Mapping[str, Any]) -> None:
    random.setstate(kept["random"])
    name, keys, *rest = kept["numpy.random"]
    np.random.set_state((name, np.frombuffer(keys, dtype=np.uint32), *rest))  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in kept:
        torch.set_rng_state(torch.frombuffer(bytearray(kept["torch"]), dtype=torch.uint8))


def _episodes_end(spec: EngineSpec) -> Clause:
    """Random play ends; else a cell would never be whole."""
    name = "episodes end"
    engine = engine_from_spec(spec, slots=4, levels=_ANY)
    rng = np.random.default_rng(0)
    engine.observe()
    lengths = np.zeros(4, dtype=np.int64)
    ended: list[int] = []
    while len(ended) < 8 and lengths.sum() + sum(ended) < MOST_STEPS:
        _, _, firsts = engine.step(rng.integers(0, engine.n_actions, 4))
        lengths += 1
        ended += lengths[firsts].tolist()
        lengths[firsts] = 0
    engine.close()
    if not ended:
        words = f"none ended within {MOST_STEPS:,} steps of random play: give --option max_episode_steps=N"
        return Clause(name, "BROKEN", words)
    return Clause(name, "holds", f"{len(ended)} of random play, {min(ended)} to {max(ended)} steps")


def _cloning(spec: EngineSpec, levels: tuple[int, ...]) -> Clause:
    """A state that was kept continues as the original, in another slot and more than once."""
    name = "states can be cloned"
    engine = engine_from_spec(spec, slots=3, levels=_ANY)
    way = getattr(getattr(engine, "way", None), "name", "the engine itself")
    if not engine.can_clone:
        words = "neither by copying nor by replay from the seed: no calibration, no merged rule, no merged entropy"
        return Clause(name, "note", words, is_needed=False)
    rng = np.random.default_rng(2)
    for level in levels:
        engine.begin(0, level)
        for _ in range(int(rng.integers(1, 12))):
            if engine.step(rng.integers(0, engine.n_actions, 3))[2][0]:
                engine.begin(0, level)
        state = engine.save(0)
        for slot in (1, 2):
            engine.load(slot, state)
        for _ in range(STEPS):
            action = int(rng.integers(0, engine.n_actions))
            rows, rewards, firsts = engine.step(np.full(3, action))
            if (
                len({(row_bytes(rows, slot), float(rewards[slot]), bool(firsts[slot])) for slot in range(3)})
                > 1
            ):
                return Clause(
                    name, "BROKEN", f"by {way}, a clone on level {level} went another way", is_needed=False
                )
            if firsts[0]:
                break
    return Clause(name, "holds", f"by {way}", is_needed=False)


def first_observation(engine: Engine, level: int, *, slot: int = 0) -> bytes:
    """What a level shows first."""
    engine.begin(slot, level)
    return row_bytes(engine.observe()[0], slot)


def plays_of(engine: Engine, levels: tuple[int, ...], *, slot: int = 0) -> Plays:
    """Two hashes a level: of its first observation, and of its first steps under actions the same for every level."""
    plays = {}
    for level in levels:
        start = first_observation(engine, level, slot=slot)
        digest = hashlib.sha256(start)
        for action in np.random.default_rng(0).integers(0, engine.n_actions, STEPS).tolist():
            rows, rewards, firsts = engine.step(np.full(engine.n_slots, action))
            digest.update(
                row_bytes(rows, slot) + np.float64(rewards[slot]).tobytes() + bytes([bool(firsts[slot])])
            )
            if firsts[slot]:
                break
        plays[level] = (hashlib.sha256(start).hexdigest(), digest.hexdigest())
    return plays
