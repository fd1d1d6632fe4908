"""The engine's promises as checks that run on the user's machine (`gapfloor doctor`)."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gapfloor.engines import envpool
from gapfloor.engines.installed import installed_engines
from gapfloor.engines.procgen import GAMES, ProcgenEngine, check_game
from gapfloor.errors import MissingExtraError
from gapfloor.levels import LevelSet, draw_levels
from gapfloor.machine import available_cores

LEVELS = LevelSet(0, 200)

#: Where a game breaks a promise that the others keep, in words.
KNOWN_EXCEPTIONS = {
    "dodgeball": "played on without loading, frames depend on what the slot played before; the harness loads "
    "every episode's initial state, from which it is exact",
}

#: Optional parts: package, extra, what it is for.
EXTRAS = (
    ("procgen-mirror", "procgen", "the ProcGen engine"),
    ("torch", "train", "training and checkpoints"),
    ("safetensors", "train", "checkpoints"),
    ("tensorboard", "train", "TensorBoard logs"),
    ("ray", "ray", "studies on a cluster"),
)


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's report."""

    mark: Literal["ok", "note", "missing", "FAILED"]
    subject: str
    words: str

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON values."""
        return asdict(self)


def examine(games: Sequence[str]) -> list[Finding]:
    """Everything that the doctor has to say."""
    named = list(GAMES) if list(games) == ["all"] else list(games)
    for game in named:
        check_game(game)
    findings = [_platform(), *_extras(), *_engines()]
    try:
        for game in named:
            findings += check_engine(game)
    except MissingExtraError as error:
        findings.append(Finding("missing", "engine", str(error)))
    return findings + examine_envpool(named)


def examine_envpool(games: Sequence[str]) -> list[Finding]:
    """Whether the second engine is here, and whether it keeps its promises."""
    try:
        version = envpool.engine_version()
    except MissingExtraError as error:
        words = (
            f"{error} It plays ProcGen's games, as envpool:GAME, where ProcGen's own wheel does not install."
        )
        return [Finding("missing", "envpool", words)]
    findings = [
        Finding("ok", "envpool", f"{version} (ProcGen's games as envpool:GAME)"),
        Finding("note", "envpool", f"{envpool.NO_CLONING}; its cells are never compared with ProcGen's"),
    ]
    words = "an episode is a function of its level and actions"
    for game in games:
        holds = envpool_episodes_are_functions(game)
        said = words if holds else f"does not hold: {words}"
        findings.append(Finding("ok" if holds else "FAILED", f"envpool:{game}", said))
    return findings


def _platform() -> Finding:
    words = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {available_cores()} cores"
    return Finding("ok", "platform", words)


def _extras() -> list[Finding]:
    findings = []
    for package, extra, purpose in EXTRAS:
        try:
            findings.append(Finding("ok", package, f"{importlib.metadata.version(package)} ({purpose})"))
        except importlib.metadata.PackageNotFoundError:
            words = f'not installed; {purpose} need it: pip install "gapfloor[{extra}]"'
            findings.append(Finding("missing", package, words))
    return findings


def _engines() -> list[Finding]:
    """Every engine, whether it is installed, and how its games are named."""
    return [
        Finding(
            "missing" if engine.version is None else "ok",
            f"engine {engine.name}",
            f"{engine.words}; its games are named as {engine.games}",
        )
        for engine in installed_engines()
    ]


def check_engine(game: str) -> list[Finding]:
    """The four promises on which the harness stands, for one game."""
    checks: list[tuple[str, Callable[[str], bool]]] = [
        ("a draw's levels are known before play", levels_follow_the_draw),
        ("an episode is a function of its level and actions", episodes_are_functions),
        ("a loaded state continues as the saved one", states_continue),
        ("played on without loading, an episode is the same", episodes_survive_history),
    ]
    findings = []
    for words, check in checks:
        holds = check(game)
        known = check is episodes_survive_history and game in KNOWN_EXCEPTIONS
        if holds:
            findings.append(Finding("ok", game, words))
        elif known:
            findings.append(Finding("note", game, KNOWN_EXCEPTIONS[game]))
        else:
            findings.append(Finding("FAILED", game, f"does not hold: {words}"))
    return findings


def levels_follow_the_draw(game: str) -> bool:
    """Whether the engine draws the levels that `draw_levels` says."""
    engine = ProcgenEngine(game, slots=8, levels=LEVELS, draw=5)
    return bool((engine.level_seeds == draw_levels(LEVELS, draw=5, slots=8, episodes=1)[:, 0]).all())


def episodes_are_functions(game: str) -> bool:
    """Whether two engines with other pasts play the same episode from the same initial state."""
    fresh = ProcgenEngine(game, slots=1, levels=LEVELS, draw=0)
    used = ProcgenEngine(game, slots=2, levels=LevelSet(500, 700), draw=3)
    for row in _actions(40, 2):
        used.step(row)
    for level in (3, 150):
        fresh.load(0, fresh.initial_state(level))
        used.load(1, used.initial_state(level))
        if not _same_play(fresh, 0, used, 1):
            return False
    return True


def envpool_episodes_are_functions(game: str) -> bool:
    """Whether two slots of EnvPool with other pasts play the same episode of a level."""
    engine = envpool.engine_from_spec(envpool.make_spec(game), slots=2, levels=LEVELS, draw=4)
    for row in _actions(25, 2):
        engine.step(row)
    for level in (3, 150):
        for slot in range(2):
            engine.begin(slot, level)
        for row in _actions(60, 1):
            observations, rewards, firsts = engine.step(np.repeat(row, 2))
            if (
                (observations[0] != observations[1]).any()
                or rewards[0] != rewards[1]
                or firsts[0] != firsts[1]
            ):
                return False
    return True


def states_continue(game: str) -> bool:
    """Whether a state saved in one slot goes on the same in another."""
    engine = ProcgenEngine(game, slots=2, levels=LEVELS, draw=1)
    for row in _actions(25, 2):
        engine.step(row)
    engine.load(1, engine.save(0))
    return _same_play(engine, 0, engine, 1)


def episodes_survive_history(game: str, episodes: int = 12) -> bool:
    """Whether episodes played one after the other equal those from the levels' initial states."""
    played_on = ProcgenEngine(game, slots=4, levels=LEVELS, draw=2)
    loaded = ProcgenEngine(game, slots=4, levels=LEVELS, draw=0)
    for slot, level in enumerate(played_on.level_seeds.tolist()):
        loaded.load(slot, loaded.initial_state(level))
    ended = 0
    for row in _actions(3000, 4):
        frames, rewards, firsts = (array.copy() for array in played_on.step(row))
        _, other_rewards, other_firsts = loaded.step(row)
        if (rewards != other_rewards).any() or (firsts != other_firsts).any():
            return False
        for slot in np.flatnonzero(firsts):
            loaded.load(int(slot), loaded.initial_state(int(played_on.level_seeds[slot])))
        if (frames != loaded.observe()[0]).any():
            return False
        ended += int(firsts.sum())
        if ended >= episodes:
            break
    return True


def _same_play(one: ProcgenEngine, slot: int, other: ProcgenEngine, other_slot: int, steps: int = 80) -> bool:
    for action in _actions(steps, 1)[:, 0]:
        for engine in {id(one): one, id(other): other}.values():
            engine.step(np.full(engine.n_slots, action))
        first, second = one.observe(), other.observe()
        if any((a[slot] != b[other_slot]).any() for a, b in zip(first, second, strict=True)):
            return False
        if first[2][slot]:
            return True
    return True


def _actions(steps: int, slots: int) -> npt.NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, ProcgenEngine.n_actions, (steps, slots))
