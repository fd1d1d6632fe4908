"""Which engine plays a game: ProcGen by the game's plain name, other engines by a prefix.

`starpilot` is a game of ProcGen; `gym:MiniGrid-FourRooms-v0` is a Gymnasium environment whose seed is a level, and so
is what the user's own `package.module:make` returns; `envpool:starpilot` is ProcGen as EnvPool compiles it, and
`envpool:Pong-v5` is another environment of EnvPool. A cell records the engine, so episodes of two engines are never
mixed.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from gapfloor.engines.engine import ENGINES, GYMNASIUM, PROCGEN, Engine, EngineSpec, Option
from gapfloor.engines.procgen import GAMES as PROCGEN_GAMES
from gapfloor.engines.procgen import UnseenProcgen, wheel_version
from gapfloor.errors import LevelWarning, UsageError
from gapfloor.levels.schedule import LevelSet

#: Prefix of a game's name on the command line -> engine.
PREFIXES: Mapping[str, str] = {facts.prefix: facts.name for facts in ENGINES.values()}


def split_game(name: str) -> tuple[str, str]:
    """The engine and the engine's own name of a game.

    >>> split_game("starpilot"), split_game("gym:MiniGrid-Empty-5x5-v0"), split_game("mine.envs:make")
    (('procgen', 'starpilot'), ('gymnasium', 'MiniGrid-Empty-5x5-v0'), ('gymnasium', 'mine.envs:make'))
    """
    prefix, separator, rest = name.partition(":")
    if not separator:
        return PROCGEN.name, name
    if prefix in PREFIXES:
        if not rest:
            raise UsageError(f"'{name}' names an engine but no game: write {prefix}:GAME.")
        return PREFIXES[prefix], rest
    return GYMNASIUM.name, name


def game_of_file(game: str, *, file: object) -> str:
    """The game that a file names; refused where playing it would import code that only the file names."""
    engine, name = split_game(game)
    if engine == GYMNASIUM.name and ":" in name:
        raise UsageError(
            f"{file} says that it was trained on {game}, and playing that would import and run the code of this name: "
            "if you trust it, use gapfloor evaluate and name the game yourself."
        )
    return game


def written_game(spec: EngineSpec) -> str:
    """The opposite of `split_game`: how a specification's game is named on the command line."""
    if split_game(spec.game)[0] == spec.engine:
        return spec.game
    return f"{ENGINES[spec.engine].prefix}:{spec.game}"


def make_spec(
    game: str, *, mode: str | None = None, options: Mapping[str, Option] | None = None
) -> EngineSpec:
    """The checked recipe of the engine that plays `game`."""
    engine, name = split_game(game)
    spec: EngineSpec = _engine_module(engine).make_spec(name, mode=mode, options=options)
    return spec


def check_ends(spec: EngineSpec) -> None:
    """Refuse, before any work, an environment whose episodes do not end."""
    if spec.engine == GYMNASIUM.name:
        from gapfloor.engines.gymnasium import engine

        engine.check_ends(spec)


def engine_from_spec(spec: EngineSpec, *, slots: int, levels: LevelSet, draw: int = 0) -> Engine:
    """A running engine of `spec`."""
    engine: Engine = _engine_module(spec.engine).engine_from_spec(spec, slots=slots, levels=levels, draw=draw)
    return engine


def unseen_engine(spec: EngineSpec, *, slots: int, levels: LevelSet) -> Engine:
    """An engine for play without an observer; that of the recipe itself where no faster one is known."""
    if spec.engine != PROCGEN.name or spec.options:
        return engine_from_spec(spec, slots=slots, levels=levels)
    PROCGEN.check_version(spec.version, wheel_version())
    return UnseenProcgen(spec, slots=slots, levels=levels)


def check_cloning(spec: EngineSpec, *, what: str) -> None:
    """Refuse, before any work, something that clones states where the engine can save none."""
    facts = ENGINES.get(spec.engine)
    if facts is not None and facts.never_clones:
        instead = (
            f"use ProcGen's own engine, named {spec.game}" if spec.game in PROCGEN_GAMES else "leave it out"
        )
        raise UsageError(f"{what} clones states, which {facts.title} cannot do: {instead}.")
    if spec.engine != GYMNASIUM.name:
        return
    with closing(engine_from_spec(spec, slots=1, levels=LevelSet(0, 1))) as engine:
        if not engine.n_actions:
            raise UsageError(
                f"{what} compares numbered actions, but those of {spec.game} are {engine.action_space}: leave it out."
            )
        if engine.masks is not None:
            raise UsageError(
                f"{what} takes every action in every state, but masks=true is given for {spec.game}: leave out one of "
                "the two."
            )


#: Seeds of both of the usual level sets, by which the check at the start tells levels apart, and its random steps.
_TRIED_SEEDS, _TRIED_STEPS = (0, 1, 2, 1000), 60


def check_seed(spec: EngineSpec) -> None:
    """Refuse, before any work, an environment whose seed is ignored; warn where every seed is the same level."""
    if spec.engine != GYMNASIUM.name:
        return
    from gapfloor.engines.level_play import first_observation, hash_play

    game = written_game(spec)
    one, other = (engine_from_spec(spec, slots=1, levels=LevelSet(0, 1)) for _ in range(2))
    with closing(one), closing(other):
        first = first_observation(one, 0)
        if first != first_observation(other, 0):
            raise UsageError(
                f"{game} ignores its seed: two resets with seed 0 showed two first observations, so no level can be "
                f"played twice. gapfloor doctor {game} shows the details."
            )
        # The environment is played only where the first observations leave it open.
        if any(first_observation(one, seed) != first for seed in _TRIED_SEEDS[1:]):
            return
        if len({hash_play(one, seed, steps=_TRIED_STEPS)[1] for seed in _TRIED_SEEDS}) == 1:
            warnings.warn(
                f"{game} is the same level for every seed ({len(_TRIED_SEEDS)} seeds, {_TRIED_STEPS} random steps "
                "each): training and held-out levels are one level, and a gap between them measures nothing. If it "
                "takes its level elsewhere, say where with --level-in options:NAME or --level-in argument:NAME.",
                LevelWarning,
                stacklevel=2,
            )


def _engine_module(engine: str) -> Any:
    """The module of an engine, which has `make_spec` and `engine_from_spec`."""
    if engine not in ENGINES:
        raise UsageError(f"There is no engine '{engine}': gapfloor has {', '.join(ENGINES)}.")
    return importlib.import_module(ENGINES[engine].module)
