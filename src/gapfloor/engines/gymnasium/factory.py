"""A Gymnasium environment by name: `gym:ID`, or the user's own `package.module:make`, with options and wrappers.

Naming a factory or a wrapper runs the user's code; nothing else does. What an environment is (its actions, its
no-op, its observations) is found out in `gapfloor.engines.gymnasium.description`.
"""

from __future__ import annotations

import functools
import importlib
import os
import traceback
import warnings
from typing import Any

from gapfloor.engines.engine import ENVPOOL, GYMNASIUM, EngineSpec
from gapfloor.errors import (
    GapfloorError,
    MissingExtraError,
    UnknownEnvironmentError,
    UsageError,
    unknown_name,
)
from gapfloor.machine import without_chatter
from gapfloor.settings import shipped
from gapfloor.users_code import named_callable, parameters_of

_KNOWN = shipped("data/engines.toml")["gymnasium"]

# pygame prints a greeting to standard output, where a JSON document may be expected.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
# Pictures are drawn into arrays, so no window system is needed.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def is_factory(spec: EngineSpec) -> bool:
    """Whether the name is `package.module:function`, not an ID of Gymnasium's registry."""
    return spec.game.partition(":")[2].isidentifier()


def arguments_of(spec: EngineSpec) -> dict[str, Any]:
    """What the environment's own maker is given."""
    return {name: value for name, value in spec.options if name not in _KNOWN["own_options"]}


def level_place(spec: EngineSpec) -> tuple[str, str]:
    """Where the environment takes its level: (`seed`, ""), (`options`, NAME) or (`argument`, NAME).

    >>> level_place(EngineSpec("gymnasium", "", "mine:make", "default", (("level_in", "options:level"),)))
    ('options', 'level')
    """
    text = str(spec.option("level_in") or "seed")
    place, _, name = text.partition(":")
    if place in ("options", "argument") and name:
        return place, name
    if text != "seed":
        raise UsageError(
            f"The level cannot be passed in '{text}': write options:NAME for reset(options={{NAME: level}}), or "
            "argument:NAME for an argument of the environment's maker."
        )
    return "seed", ""


def make_env(spec: EngineSpec, *, level: int = 0, render_mode: str | None = None) -> Any:
    """A new environment of a specification; `level` matters where it is an argument of the maker."""
    GYMNASIUM.installed_version()
    if spec.engine == ENVPOOL.name:
        from gapfloor.engines.envpool import PoolEnvironment

        return PoolEnvironment(spec)
    arguments = arguments_of(spec)
    place, name = level_place(spec)
    if place == "argument":
        arguments[name] = level
    try:
        with warnings.catch_warnings():
            # About old versions of environments: the name was the user's choice.
            warnings.simplefilter("ignore")
            env = _made(spec, arguments, render_mode)
            for wrapper in filter(None, str(spec.option("wrapper") or "").split(",")):
                env = named_object(wrapper, what="wrapper")(env)
            return env
    except GapfloorError:
        raise
    except Exception as error:
        said = str(error) or f"in `{traceback.extract_tb(error.__traceback__)[-1].line}`"
        raise UsageError(f"{spec.game} cannot be made: {type(error).__name__}: {said}") from error


def _made(spec: EngineSpec, arguments: dict[str, Any], render_mode: str | None) -> Any:
    """What Gymnasium or the user's factory makes of these arguments, with the step limit that the user asked for."""
    import gymnasium

    limit = spec.option("max_episode_steps")
    if is_factory(spec):
        make = named_object(spec.game, what="environment")
        takes = set(parameters_of(make))
    else:
        _register(spec.game)
        make = functools.partial(gymnasium.make, spec.game, disable_env_checker=True)
        takes = {"render_mode", "max_episode_steps"}
    if render_mode is not None and "render_mode" in takes:
        arguments.setdefault("render_mode", render_mode)
    if limit is not None and "max_episode_steps" in takes:
        arguments["max_episode_steps"] = limit
    try:
        env = make(**arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        extra = next((each for each in ("mujoco", "box2d") if f"[{each}]" in str(error)), None)
        if extra is None:
            raise
        raise MissingExtraError(
            f'{spec.game} needs more packages: pip install "gapfloor[{extra}]".'
        ) from None
    if limit is not None and "max_episode_steps" not in takes:
        env = gymnasium.wrappers.TimeLimit(env, int(limit))
    return env


def begin_level(spec: EngineSpec, env: Any, level: int, *, render_mode: str | None) -> tuple[Any, Any, Any]:
    """An environment at the start of a level, its first observation and info; `env` is used again where possible."""
    place, name = level_place(spec)
    if env is None or place == "argument":
        env = make_env(spec, level=level, render_mode=render_mode)
    options = {name: level} if place == "options" else None
    try:
        with without_chatter():
            # Without options the argument is left out: not every environment's reset knows it.
            answer = env.reset(seed=level, **({"options": options} if options else {}))
    except GapfloorError:
        raise
    except Exception as error:
        words = f"{spec.game} failed in reset(seed={level}): {type(error).__name__}: {error}"
        if isinstance(error, TypeError):
            words += ". gapfloor needs an environment whose seed is a level."
        raise UsageError(words) from error
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise UsageError(
            f"reset of {spec.game} returned a {type(answer).__name__}, not (observation, info): it has the interface "
            "of the old gym and needs an adapter (see docs/my-environment.md)."
        )
    return env, *answer


def _register(name: str) -> None:
    """Import the package that registers an environment, or name the nearest environments."""
    import gymnasium

    if ":" in name or name in gymnasium.registry:
        return  # Gymnasium itself imports what is before the colon
    for start, package in _KNOWN["registered_by"].items():
        if name.startswith(start):
            try:
                registering = importlib.import_module(package)
            except ImportError:
                extra = _KNOWN["extras"].get(package)
                source = f'"gapfloor[{extra}]"' if extra else package
                raise MissingExtraError(f"{name} is part of {package}: pip install {source}") from None
            if package == "ale_py":
                gymnasium.register_envs(registering)
    try:
        gymnasium.spec(name)
    except gymnasium.error.NameNotFound:
        error = unknown_name("environment", name, gymnasium.registry)
        raise UnknownEnvironmentError(
            f"{error} An environment of another package is written gym:package:ID, so that it is imported first."
        ) from None


def named_object(name: str, *, what: str) -> Any:
    """What `package.module:name` means; the user's own code, named by the user."""
    if not name.partition(":")[2]:
        raise UnknownEnvironmentError(f"'{name}' does not name a {what}: write package.module:name.")
    return named_callable(name, what=what, error=UnknownEnvironmentError)
