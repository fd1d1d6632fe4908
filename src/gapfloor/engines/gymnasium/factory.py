"""A Gymnasium environment by name: `gym:ID`, or the user's own `package.module:make`, with options and wrappers.

Naming a factory or a wrapper runs the user's code; nothing else does. What an environment is (its actions, its
no-op, its observations) is found out in `gapfloor.engines.gymnasium.description`.
"""

from __future__ import annotations

import importlib
import os
import traceback
import warnings
from dataclasses import dataclass
from typing import Any

from gapfloor.engines.engine import ENVPOOL, GYMNASIUM, Option
from gapfloor.errors import (
    GapfloorError,
    MissingExtraError,
    UnknownEnvironmentError,
    UsageError,
    unknown_name,
)
from gapfloor.quiet import without_chatter
from gapfloor.shipped import shipped
from gapfloor.users_code import named_callable, parameters_of

_KNOWN = shipped("data/engines.toml")["gymnasium"]

# pygame prints a greeting to standard output, where a JSON document may be expected.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
# Pictures are drawn into arrays, so no window system is needed.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


@dataclass(frozen=True)
class Recipe:
    """An environment's name and options, in the order in which a specification keeps them."""

    game: str
    options: tuple[tuple[str, Option], ...] = ()
    engine: str = GYMNASIUM.name
    """Who makes it: Gymnasium or EnvPool."""

    @property
    def is_factory(self) -> bool:
        """Whether the name is `package.module:function`, not an ID of Gymnasium's registry."""
        _, separator, function = self.game.partition(":")
        return bool(separator) and function.isidentifier()

    @property
    def arguments(self) -> dict[str, Option]:
        """What the environment's own maker is given."""
        return {name: value for name, value in self.options if name not in _KNOWN["own_options"]}

    def own(self, name: str) -> Option | None:
        """An option that gapfloor reads itself."""
        return dict(self.options).get(name)

    @property
    def level_place(self) -> tuple[str, str]:
        """Where the environment takes its level: (`seed`, ""), (`options`, NAME) or (`argument`, NAME).

        >>> Recipe("mine:make", (("level_in", "options:level"),)).level_place
        ('options', 'level')
        """
        text = str(self.own("level_in") or "seed")
        place, _, name = text.partition(":")
        if place in ("options", "argument") and name:
            return place, name
        if text != "seed":
            raise UsageError(
                f"The level cannot be passed in '{text}': write options:NAME for reset(options={{NAME: level}}), or "
                "argument:NAME for an argument of the environment's maker."
            )
        return "seed", ""


def make_env(recipe: Recipe, *, level: int = 0, render_mode: str | None = None) -> Any:
    """A new environment of a recipe; `level` matters where it is an argument of the maker."""
    GYMNASIUM.installed_version()
    arguments: dict[str, Any] = recipe.arguments
    place, name = recipe.level_place
    if place == "argument":
        arguments[name] = level
    if recipe.engine == ENVPOOL.name:
        from gapfloor.engines.envpool import PoolEnvironment

        return PoolEnvironment(recipe)
    make = _call_factory if recipe.is_factory else _make_id
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # about old versions of environments: the name was the user's choice
            env = make(recipe, arguments, render_mode)
            for wrapper in filter(None, str(recipe.own("wrapper") or "").split(",")):
                env = named_object(wrapper, what="wrapper")(env)
            return env
    except GapfloorError:
        raise
    except Exception as error:
        said = str(error) or f"in `{traceback.extract_tb(error.__traceback__)[-1].line}`"
        raise UsageError(f"{recipe.game} cannot be made: {type(error).__name__}: {said}") from error


def begin_level(recipe: Recipe, env: Any, level: int, *, render_mode: str | None) -> tuple[Any, Any, Any]:
    """An environment at the start of a level, its first observation and info; `env` is used again where possible."""
    place, name = recipe.level_place
    if env is None or place == "argument":
        env = make_env(recipe, level=level, render_mode=render_mode)
    options = {name: level} if place == "options" else None
    try:
        with without_chatter():
            # Without options the argument is left out: not every environment's reset knows it.
            answer = env.reset(seed=level, **({"options": options} if options else {}))
    except GapfloorError:
        raise
    except Exception as error:
        words = f"{recipe.game} failed in reset(seed={level}): {type(error).__name__}: {error}"
        if isinstance(error, TypeError):
            words += ". gapfloor needs an environment whose seed is a level."
        raise UsageError(words) from error
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise UsageError(
            f"reset of {recipe.game} returned a {type(answer).__name__}, not (observation, info): it has the interface "
            "of the old gym and needs an adapter (see docs/my-environment.md)."
        )
    return env, *answer


def _make_id(recipe: Recipe, arguments: dict[str, Any], render_mode: str | None) -> Any:
    import gymnasium

    if recipe.own("max_episode_steps") is not None:
        arguments["max_episode_steps"] = recipe.own("max_episode_steps")
    if render_mode is not None:
        arguments.setdefault("render_mode", render_mode)
    _register(recipe.game)
    try:
        return gymnasium.make(recipe.game, disable_env_checker=True, **arguments)
    except gymnasium.error.DependencyNotInstalled as error:
        extra = next((each for each in ("mujoco", "box2d") if f"[{each}]" in str(error)), None)
        if extra is None:
            raise
        raise MissingExtraError(
            f'{recipe.game} needs more packages: pip install "gapfloor[{extra}]".'
        ) from None


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


def _call_factory(recipe: Recipe, arguments: dict[str, Any], render_mode: str | None) -> Any:
    import gymnasium

    factory = named_object(recipe.game, what="environment")
    takes, limit = parameters_of(factory), recipe.own("max_episode_steps")
    if render_mode is not None and "render_mode" in takes:
        arguments.setdefault("render_mode", render_mode)
    if limit is not None and "max_episode_steps" in takes:
        arguments["max_episode_steps"] = limit
    env = factory(**arguments)
    if limit is not None and "max_episode_steps" not in takes:
        env = gymnasium.wrappers.TimeLimit(env, int(limit))
    return env


def named_object(name: str, *, what: str) -> Any:
    """What `package.module:name` means; the user's own code, named by the user."""
    if not name.partition(":")[2]:
        raise UnknownEnvironmentError(f"'{name}' does not name a {what}: write package.module:name.")
    return named_callable(name, what=what, error=UnknownEnvironmentError)
