"""Which engine plays a game: ProcGen by the game's plain name, other engines by a prefix.

`starpilot` is ProcGen's; `gym:MiniGrid-FourRooms-v0` is a Gymnasium environment whose seed is a level, and so is
what the user's own `package.module:make` returns; `envpool:starpilot` is ProcGen as EnvPool compiles it. A cell
records the engine, so episodes of two engines are never taken for each other.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol, cast

from gapfloor.engines.protocol import Engine, EngineSpec, Option
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet

#: engine -> its module, which has the functions of `Family`.
ENGINES: Mapping[str, str] = {
    "procgen": "gapfloor.engines.procgen",
    "gymnasium": "gapfloor.engines.gymnasium.engine",
    "envpool": "gapfloor.engines.envpool",
}

#: Prefix of a game's name on the command line -> engine.
PREFIXES: Mapping[str, str] = {"procgen": "procgen", "gym": "gymnasium", "envpool": "envpool"}

#: Engines that cannot save states, as they are called in sentences.
NO_CLONING: Mapping[str, str] = {"envpool": "EnvPool"}


class Family(Protocol):
    """What an engine's module offers."""

    def make_spec(self, game: str, *, mode: str | None, options: Mapping[str, Option] | None) -> EngineSpec:
        """The checked recipe of a game."""
        ...

    def check_levels(self, spec: EngineSpec, levels: LevelSet) -> None:
        """Refuse level sets that the game does not have."""
        ...

    def engine_from_spec(self, spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int) -> Engine:
        """A running engine; refuses a recipe made with another version."""
        ...


def split_game(name: str) -> tuple[str, str]:
    """The engine and the engine's own name of a game.

    >>> split_game("starpilot"), split_game("gym:MiniGrid-Empty-5x5-v0"), split_game("mine.envs:make")
    (('procgen', 'starpilot'), ('gymnasium', 'MiniGrid-Empty-5x5-v0'), ('gymnasium', 'mine.envs:make'))
    """
    prefix, separator, rest = name.partition(":")
    if not separator:
        return "procgen", name
    if prefix in PREFIXES:
        if not rest:
            raise UsageError(f"'{name}' names an engine and no game: write {prefix}:GAME.")
        return PREFIXES[prefix], rest
    return "gymnasium", name


def written_game(spec: EngineSpec) -> str:
    """The opposite of `split_game`: how a specification's game is named on the command line."""
    if split_game(spec.game)[0] == spec.engine:
        return spec.game
    prefix = {engine: prefix for prefix, engine in PREFIXES.items()}[spec.engine]
    return f"{prefix}:{spec.game}"


def make_spec(
    game: str, *, mode: str | None = None, options: Mapping[str, Option] | None = None
) -> EngineSpec:
    """The checked recipe of the engine that plays `game`."""
    engine, name = split_game(game)
    return _family(engine).make_spec(name, mode=mode, options=options)


def check_levels(spec: EngineSpec, levels: LevelSet) -> None:
    """Refuse level sets that the game does not have."""
    _family(spec.engine).check_levels(spec, levels)


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> Engine:
    """A running engine of `spec`."""
    return _family(spec.engine).engine_from_spec(spec, slots=slots, levels=levels, draw=draw)


def check_cloning(spec: EngineSpec, *, what: str) -> None:
    """Refuse, before any work, what clones states where the engine never can."""
    if spec.engine in NO_CLONING:
        raise UsageError(
            f"{what} clones states, which {NO_CLONING[spec.engine]} cannot do: use ProcGen's own engine for it, as "
            f"{spec.game}."
        )


def _family(engine: str) -> Family:
    if engine not in ENGINES:
        raise UsageError(f"There is no engine '{engine}' here: it has {', '.join(ENGINES)}.")
    return cast(Family, importlib.import_module(ENGINES[engine]))
