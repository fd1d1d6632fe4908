"""What a Gymnasium environment is: its actions, no-op, observations, masks and the versions of every package in it.

It is found out once per process by making the environment; what cannot be measured is refused here.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import importlib.metadata
import itertools
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gapfloor.actions.spaces import Discrete
from gapfloor.engines.engine import GYMNASIUM, EngineSpec
from gapfloor.engines.gymnasium.factory import arguments_of, begin_level, is_factory, make_env
from gapfloor.engines.gymnasium.spaces import ActionForm, Layout, action_form, layout_of, mask_source
from gapfloor.errors import UsageError
from gapfloor.settings import shipped

#: The score that is 1 at the first step that reports success.
SUCCESS = "success"
_KNOWN = shipped("data/engines.toml")["gymnasium"]


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
    render_mode: str | None = None
    has_limit: bool = True
    """Whether it declares a number of steps after which an episode is cut."""


def describe(spec: EngineSpec) -> Description:
    """What an environment is, whatever version of it a specification names; refuses what cannot be measured."""
    return _describe(replace(spec, version="", options=tuple(sorted(spec.options))))


@functools.lru_cache(maxsize=64)
def _describe(spec: EngineSpec) -> Description:
    env = make_env(spec)
    _refuse_other_interface(env, spec)
    form = action_form(env.action_space, game=spec.game)
    layout = layout_of(env.observation_space)
    names, noop, words = _actions(env, spec, form)
    metadata = getattr(env, "metadata", None) or {}
    facts: dict[str, Any] = {}
    source = mask_source(env, begin_level(spec, env, 0, render_mode=None)[2])
    # Masks are read only if the user asks, because most agents never saw them.
    wanted = spec.option("masks")
    if wanted not in (None, True, False):
        raise UsageError(f"The option masks is {wanted!r}: write masks=true or masks=false.")
    if wanted and not source:
        raise UsageError(
            f"{spec.game} does not say which actions are legal: it has neither a method action_masks() nor "
            "info['action_mask']. Leave out --option masks=true."
        )
    facts |= {"masks": source if wanted else "", "offers_masks": bool(source)}
    facts["has_limit"] = getattr(getattr(env, "spec", None), "max_episode_steps", None) is not None
    can_draw = "rgb_array" in (metadata.get("render_modes") or ())
    if can_draw and getattr(env, "render_mode", None) is None and "render_mode" not in arguments_of(spec):
        facts["render_mode"] = "rgb_array"
    version = _version(env, spec) if spec.engine == GYMNASIUM.name else env.version
    with contextlib.suppress(Exception):
        env.close()
    return Description(version, form, noop, words, names, layout, **facts)


def _refuse_other_interface(env: Any, spec: EngineSpec) -> None:
    """Refuse what is not a single environment of Gymnasium."""
    import gymnasium
    from gymnasium.vector import VectorEnv

    if isinstance(env, VectorEnv):
        raise UsageError(
            f"{spec.game} returned a vector environment: return a single one, of which gapfloor makes as many as it "
            "needs."
        )
    # gymnax.make returns the environment with its parameters.
    for kind in type(env[0] if isinstance(env, tuple) and env else env).__mro__:
        words = _KNOWN["other_interfaces"].get(kind.__module__.partition(".")[0])
        if words is not None and not isinstance(env, gymnasium.Env):
            raise UsageError(f"{spec.game} returned {words}.")
    needed = ("reset", "step", "action_space", "observation_space")
    if not all(hasattr(env, name) for name in needed):
        raise UsageError(
            f"{spec.game} returned a {type(env).__name__}, which is not a Gymnasium environment: return one with "
            f"{', '.join(needed)}."
        )


def score_name(spec: EngineSpec, names: Iterable[str]) -> str:
    """The name under which `info` has the score that the user asked for."""
    wanted, known = str(spec.option("score")), list(names)
    for name in known:
        if name in (_KNOWN["success"] if wanted == SUCCESS else (wanted,)):
            return name
    what = f"success (none of {', '.join(_KNOWN['success'])})" if wanted == SUCCESS else f"a score '{wanted}'"
    offered = ", ".join(known[:12]) or "nothing"
    raise UsageError(
        f"{spec.game} does not report {what}: info has {offered}. Leave out --score for the reward."
    )


def _actions(env: Any, spec: EngineSpec, form: ActionForm) -> tuple[tuple[str, ...], Any, str]:
    """Names of the actions, the action of idle slots, and how that is known: named, the user's choice, or zero."""
    space, chosen = form.space, spec.option("noop")
    if not isinstance(space, Discrete):
        if chosen is not None:
            raise UsageError(f"The option noop needs numbered actions, but those of {spec.game} are {space}.")
        return (), space.zero(), "the action of zeros (or the nearest one) is used"
    names = _names(getattr(env, "unwrapped", env), space)
    if chosen is None:
        found = [at for at, name in enumerate(names) if name.lower() in _KNOWN["noop"]]
        if not found and type(getattr(env, "unwrapped", env)).__module__.startswith("minigrid"):
            found = [at for at, name in enumerate(names) if name == "done"]  # it does nothing there
        if not found:
            words = f"not named by the environment: action 0 ({names[0]}) is used instead"
            return names, 0, f"{words}; choose another with --option noop=K"
        noop, words = found[0], f"action {found[0]} ({names[found[0]]})"
    elif isinstance(chosen, bool) or not isinstance(chosen, int) or not 0 <= chosen < space.n:
        raise UsageError(f"The option noop is {chosen!r}: name an action from 0 to {space.n - 1}.")
    else:
        noop, words = chosen, f"action {chosen} (--option noop={chosen})"
    plain = "no-op" if names[noop].lower() in _KNOWN["noop"] else f"{names[noop]} (no-op)"
    return (*names[:noop], plain, *names[noop + 1 :]), noop, words


def _names(inner: Any, space: Discrete) -> tuple[str, ...]:
    """The names that an environment gives its actions; otherwise their numbers."""
    if space.factors:
        counted = itertools.product(*(range(size) for size in space.factors))
        return tuple("/".join(map(str, action)) for action in counted)
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
    if isinstance(found, (list, tuple)) and len(found) == space.n:
        return tuple(str(name) for name in found)
    return tuple(str(action) for action in range(space.n))


def _version(env: Any, spec: EngineSpec) -> str:
    """Gymnasium's version and those of every package whose code is in the environment."""
    modules = {type(each).__module__ for each in _layers(env)}
    if is_factory(spec):
        modules.add(spec.game.partition(":")[0])
    parts: dict[str, str] = {}
    for module in sorted(modules):
        top = module.partition(".")[0]
        if top not in ("gymnasium", "builtins", "gapfloor"):
            parts.update([_module_version(module, top)])
    versions = (f"{name}-{version}" for name, version in sorted(parts.items()))
    return " ".join([GYMNASIUM.installed_version(), *versions])


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
