"""A Gymnasium environment by name: `gym:ID`, or the user's own `package.module:make`, with options and wrappers.

Naming a factory or a wrapper runs the user's code; nothing else does. What an environment is (its actions, its
no-op, its observations, the versions of every package in it) is determined once per process.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import importlib
import importlib.metadata
import inspect
import io
import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.actions.spaces import Discrete
from gapfloor.engines.catalogue import GYMNASIUM
from gapfloor.engines.engine import Option
from gapfloor.engines.gymnasium.actions import ActionForm, action_form, mask_source
from gapfloor.engines.gymnasium.score import wants_success
from gapfloor.engines.gymnasium.spaces import Layout, layout_of
from gapfloor.errors import (
    GapfloorError,
    MissingExtraError,
    UnknownEnvironmentError,
    UsageError,
    unknown_name,
)
from gapfloor.users_code import named_callable

#: Options that gapfloor reads itself; every other one goes to `gymnasium.make` or to the factory.
OWN_OPTIONS = ("noop", "wrapper", "text", "max_episode_steps", "masks", "action_low", "action_high", "score")

#: Start of an environment's name -> the package whose import registers it.
REGISTERED_BY: Mapping[str, str] = {
    "MiniGrid-": "minigrid",
    "BabyAI-": "minigrid",
    "ALE/": "ale_py",
    "highway-": "highway_env",
    "NetHack": "nle",
    "MiniHack": "minihack",
}

#: Those of these packages that an extra of gapfloor installs.
EXTRAS: Mapping[str, str] = {"minigrid": "gymnasium", "ale_py": "atari"}

#: Names under which environments call an action that does nothing.
NOOP_NAMES = ("no-op", "noop", "no_op", "nop", "idle", "nothing", "do_nothing", "do nothing", "wait", "stay")

# pygame prints a greeting to standard output, where a JSON document may be expected.
os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
# Pictures are drawn into arrays, so no window system is needed.
os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


@dataclass(frozen=True)
class Recipe:
    """An environment's name and options, in the order in which a specification keeps them."""

    game: str
    options: tuple[tuple[str, Option], ...] = ()

    @property
    def is_factory(self) -> bool:
        """Whether the name is `package.module:function`, not an ID of Gymnasium's registry."""
        _, separator, function = self.game.partition(":")
        return bool(separator) and function.isidentifier()

    @property
    def arguments(self) -> dict[str, Option]:
        """What the environment's own maker is given."""
        return {name: value for name, value in self.options if name not in OWN_OPTIONS}

    def own(self, name: str) -> Option | None:
        """An option that gapfloor reads itself."""
        return dict(self.options).get(name)


@dataclass(frozen=True)
class Description:
    """What was learnt about an environment by making it once."""

    version: str
    form: ActionForm
    """Its action space, and how it writes an action."""
    noop: Any
    noop_words: str
    action_names: tuple[str, ...]
    """Names of numbered actions; empty for the others."""
    layout: Layout
    masks: str = ""
    """Where it says which actions are legal (`method` or `info`), if the user asked for masks."""
    offers_masks: bool = False
    """Whether it says so, asked for or not."""
    is_vector: bool = False
    n_envs: int = 1
    """Environments of one vector environment."""
    resets_one: bool = False
    """Whether a vector environment can put one of its environments at a level."""
    autoreset: str = ""
    render_mode: str | None = None


def gymnasium_version() -> str:
    """The installed version of Gymnasium."""
    return GYMNASIUM.installed_version()


def make_env(recipe: Recipe, *, n_envs: int | None = None, render_mode: str | None = None) -> Any:
    """A new environment, or vector environment, of a recipe."""
    gymnasium_version()
    with _as_users_error(recipe.game, "cannot be made"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about old versions of environments: the name was the user's choice
        env = (
            _call_factory(recipe, n_envs, render_mode) if recipe.is_factory else _make_id(recipe, render_mode)
        )
        return _wrap(env, recipe)


def _make_id(recipe: Recipe, render_mode: str | None) -> Any:
    import gymnasium

    arguments: dict[str, Any] = recipe.arguments
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

    if ":" in name:
        return  # Gymnasium itself imports what is before the colon
    for start, package in REGISTERED_BY.items():
        if name.startswith(start) and name not in gymnasium.registry:
            try:
                registering = importlib.import_module(package)
            except ImportError:
                source = f'"gapfloor[{EXTRAS[package]}]"' if package in EXTRAS else package
                raise MissingExtraError(f"{name} is part of {package}: pip install {source}") from None
            if package == "ale_py":
                gymnasium.register_envs(registering)
    if name in gymnasium.registry:
        return
    try:
        gymnasium.spec(name)
    except gymnasium.error.NameNotFound:
        error = unknown_name("environment", name, gymnasium.registry)
        raise UnknownEnvironmentError(
            f"{error} An environment of another package is written gym:package:ID, so that it is imported first."
        ) from None


def _call_factory(recipe: Recipe, n_envs: int | None, render_mode: str | None) -> Any:
    factory = named_object(recipe.game, what="environment")
    arguments: dict[str, Any] = recipe.arguments
    takes = _parameters(factory)
    if n_envs is not None and "num_envs" in takes:
        arguments["num_envs"] = n_envs
    if render_mode is not None and "render_mode" in takes:
        arguments.setdefault("render_mode", render_mode)
    if "max_episode_steps" in takes and recipe.own("max_episode_steps") is not None:
        arguments["max_episode_steps"] = recipe.own("max_episode_steps")
    return factory(**arguments)


def _wrap(env: Any, recipe: Recipe) -> Any:
    import gymnasium

    if recipe.own("max_episode_steps") is not None and recipe.is_factory:
        factory = named_object(recipe.game, what="environment")
        if "max_episode_steps" not in _parameters(factory):
            env = gymnasium.wrappers.TimeLimit(env, int(recipe.own("max_episode_steps") or 0))
    for name in str(recipe.own("wrapper") or "").split(","):
        if name:
            env = named_object(name, what="wrapper")(env)
    return env


def _parameters(factory: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return {}


def takes_num_envs(recipe: Recipe) -> bool:
    """Whether a factory says how many environments it makes."""
    return recipe.is_factory and "num_envs" in _parameters(named_object(recipe.game, what="environment"))


def named_object(name: str, *, what: str) -> Any:
    """What `package.module:name` means; the user's own code, named by the user."""
    if not name.partition(":")[2]:
        raise UnknownEnvironmentError(f"'{name}' does not name a {what}: write package.module:name.")
    return named_callable(name, what=what, error=UnknownEnvironmentError)


def without_chatter() -> contextlib.AbstractContextManager[Any]:
    """Keep what an environment (e.g. BabyAI) prints while it makes a level out of standard output."""
    return contextlib.redirect_stdout(io.StringIO())


@contextlib.contextmanager
def _as_users_error(game: str, what: str) -> Iterator[None]:
    """An exception of the environment's own code, as a sentence that says whose it is."""
    try:
        yield
    except GapfloorError:
        raise
    except Exception as error:
        raise UsageError(f"{game} {what}: {type(error).__name__}: {error}") from error


@functools.lru_cache(maxsize=64)
def describe(recipe: Recipe) -> Description:
    """Make an environment once and find out what it is; refuses what cannot be measured."""
    env = make_env(recipe, n_envs=2)
    from gymnasium.vector import VectorEnv

    is_vector = isinstance(env, VectorEnv)
    if not is_vector and not all(
        hasattr(env, name) for name in ("reset", "step", "action_space", "observation_space")
    ):
        raise UsageError(
            f"{recipe.game} returned a {type(env).__name__}, which is not a Gymnasium environment: return one."
        )
    if wants_success(recipe) and is_vector:
        raise UsageError(
            f"{recipe.game} is a vector environment: score=success needs a factory of single environments."
        )
    actions = env.single_action_space if is_vector else env.action_space
    form = action_form(actions, game=recipe.game, options=dict(recipe.options))
    text = recipe.own("text")
    layout = layout_of(
        env.single_observation_space if is_vector else env.observation_space, with_text=text is not False
    )
    names, noop, words = _actions(env, recipe, form)
    info = _try_reset(env, recipe, is_vector)
    facts: dict[str, Any] = _masks(env, info, recipe, is_vector)
    metadata = getattr(env, "metadata", None) or {}
    if is_vector:
        mode = metadata.get("autoreset_mode")
        facts |= {
            "is_vector": True,
            "n_envs": int(env.num_envs),
            "autoreset": getattr(mode, "value", str(mode or "")),
            "resets_one": _resets_one(env, form),
        }
    modes = metadata.get("render_modes") or ()
    if (
        getattr(env, "render_mode", None) is None
        and "rgb_array" in modes
        and "render_mode" not in recipe.arguments
    ):
        facts["render_mode"] = "rgb_array"
    version = _version(env, recipe)
    with contextlib.suppress(Exception):
        env.close()
    return Description(version, form, noop, words, names, layout, **facts)


def _try_reset(env: Any, recipe: Recipe, is_vector: bool) -> Any:
    """The info of a first reset; refuses what cannot be reset to a level."""
    try:
        with without_chatter():
            answer = env.reset(seed=[0] * env.num_envs if is_vector else 0)
    except TypeError as error:
        raise UsageError(
            f"reset(seed=0) of {recipe.game} fails ({error}): gapfloor needs an environment whose seed is a level."
        ) from error
    except Exception as error:
        raise UsageError(f"{recipe.game} cannot be reset: {type(error).__name__}: {error}") from error
    if not (isinstance(answer, tuple) and len(answer) == 2):
        raise UsageError(
            f"reset of {recipe.game} returned a {type(answer).__name__}, not (observation, info): it has the interface "
            "of the old gym and needs an adapter (see docs/engines.md)."
        )
    return answer[1]


def _masks(env: Any, info: Any, recipe: Recipe, is_vector: bool) -> dict[str, Any]:
    """Where legal actions are stated; masks are read only if the user asks, because most agents never saw them."""
    wanted = recipe.own("masks")
    if wanted not in (None, True, False):
        raise UsageError(f"The option masks is {wanted!r}: write masks=true or masks=false.")
    if is_vector:
        if wanted:
            raise UsageError(
                f"{recipe.game} is a vector environment, whose masks cannot be read: give a factory of single "
                "environments."
            )
        return {}
    try:
        source = mask_source(env, info, game=recipe.game)
    except UsageError:
        if wanted:
            raise
        return {}
    return {"masks": source if wanted else "", "offers_masks": True}


def _resets_one(env: Any, form: ActionForm) -> bool:
    """Whether a reset of one environment leaves the others of a vector environment alone."""
    import numpy as np
    from gymnasium.vector.utils import iterate

    if env.num_envs == 1:
        return True
    try:
        env.reset(seed=list(range(env.num_envs)))
        before, *_ = env.step(form.batch(np.stack([form.space.zero()] * env.num_envs)))
        kept = [repr(row) for row in iterate(env.observation_space, before)]
        mask = np.zeros(env.num_envs, dtype=bool)
        mask[0] = True
        after, _ = env.reset(seed=[7] * env.num_envs, options={"reset_mask": mask})
        return [repr(row) for row in iterate(env.observation_space, after)][1:] == kept[1:]
    except Exception:
        return False  # whatever the reason, it is not reliable


def _actions(env: Any, recipe: Recipe, form: ActionForm) -> tuple[tuple[str, ...], Any, str]:
    """Names of the actions, which of them is the no-op, and how that is known."""
    space, chosen = form.space, recipe.own("noop")
    if not isinstance(space, Discrete):
        if chosen is not None:
            raise UsageError(
                f"The option noop needs numbered actions, but those of {recipe.game} are {space}."
            )
        return (), space.zero(), "the action of zeros (or the nearest one) is used"
    if space.factors:
        counted = itertools.product(*(range(size) for size in space.factors))
        names = tuple("/".join(map(str, action)) for action in counted)
        if chosen is None:
            return names, 0, f"not named by the environment: {names[0]} is used"
    n_actions = space.n
    inner = getattr(env, "envs", [env])[0] if hasattr(env, "single_action_space") else env
    inner = getattr(inner, "unwrapped", inner)
    if not space.factors:
        names = _names(inner, n_actions)
    chosen = chosen_noop(recipe, n_actions)
    if chosen is not None:
        noop, words = chosen, f"action {chosen} (--option noop={chosen})"
    else:
        known = [at for at, name in enumerate(names) if name.lower() in NOOP_NAMES]
        if not known and type(inner).__module__.startswith("minigrid"):
            known = [at for at, name in enumerate(names) if name == "done"]  # it does nothing there
        noop = known[0] if known else 0
        words = f"action {noop} ({names[noop]})" if known else (
            f"not named by the environment: action 0 ({names[0]}) is used instead; choose another with --option noop=K"
        )  # fmt: skip
        if not known:
            return names, noop, words
    plain = "no-op" if names[noop].lower() in NOOP_NAMES else f"{names[noop]} (no-op)"
    return (*names[:noop], plain, *names[noop + 1 :]), noop, words


def chosen_noop(recipe: Recipe, n_actions: int) -> int | None:
    """The numbered action that the user names as the no-op, if any."""
    chosen = recipe.own("noop")
    if chosen is None:
        return None
    if isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen < n_actions:
        raise UsageError(f"The option noop is {chosen!r}: name an action from 0 to {n_actions - 1}.")
    return chosen


def _names(inner: Any, n_actions: int) -> tuple[str, ...]:
    found: Any = getattr(inner, "action_names", None)
    meanings = getattr(inner, "get_action_meanings", None)
    enumeration = getattr(inner, "actions", None)
    by_number = getattr(getattr(inner, "action_type", None), "actions", None)
    if callable(meanings):
        with contextlib.suppress(Exception):
            found = meanings()
    elif isinstance(enumeration, enum.EnumMeta):
        found = list(enumeration.__members__)
    elif isinstance(by_number, Mapping):
        found = [by_number[number] for number in sorted(by_number)]
    if isinstance(found, (list, tuple)) and len(found) == n_actions:
        return tuple(str(name) for name in found)
    return tuple(str(action) for action in range(n_actions))


def _version(env: Any, recipe: Recipe) -> str:
    """Gymnasium's version and those of every package whose code is in the environment."""
    modules = {type(each).__module__ for each in _layers(env)}
    if recipe.is_factory:
        modules.add(recipe.game.partition(":")[0])
    parts: dict[str, str] = {}
    for module in sorted(modules):
        top = module.partition(".")[0]
        if top not in ("gymnasium", "builtins", "gapfloor"):
            parts.update([_module_version(module, top)])
    return " ".join([gymnasium_version(), *(f"{name}-{version}" for name, version in sorted(parts.items()))])


def _layers(env: Any) -> list[Any]:
    """The environment, what it wraps and what it holds, as far as these step and reset too."""
    found: dict[int, Any] = {}
    waiting = [env]
    while waiting:
        each = waiting.pop()
        if id(each) in found:
            continue
        found[id(each)] = each
        inner = list(getattr(each, "__dict__", {}).values())
        inner += [value[0] for value in inner if isinstance(value, list) and value]
        waiting += [
            value
            for value in inner
            if not isinstance(value, type)
            and callable(getattr(value, "step", None))
            and hasattr(value, "reset")
        ]
    return list(found.values())


def _module_version(module: str, top: str) -> tuple[str, str]:
    for name in (top, top.replace("_", "-")):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            return name, importlib.metadata.version(name)
    distributions = importlib.metadata.packages_distributions().get(top)
    if distributions:
        return distributions[0], importlib.metadata.version(distributions[0])
    # A file of the user's own has no version: a hash of its content is used instead.
    path = getattr(sys.modules.get(module), "__file__", None)
    content = Path(path).read_bytes() if path else b""
    return module, hashlib.sha256(content).hexdigest()[:12]
