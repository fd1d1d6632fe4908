# mypy: ignore-errors
"""Hooks that watch steps, draws, maxima, resets and updates in a running script.

This file is copied next to the user's command as `sitecustomize.py` and runs in the user's own Python, which may be
another version without gapfloor: it uses the standard library only and never changes a result. What it saw is written
as JSON when the process ends.
"""

import atexit
import collections
import functools
import importlib.abc
import importlib.util
import json
import os
import sys
import threading
import traceback

_OUT = os.environ.get("GAPFLOOR_TRACE_OUT", "")
_MOST_STEPS = int(os.environ.get("GAPFLOOR_TRACE_STEPS", "0"))
#: Draws and maxima that are remembered between two steps.
_WINDOW = 400

_sites = {}
_environments = {}
_counts = {"updates": 0, "steps": 0}
_unseen = set()


class _State(threading.local):
    depth = 0  # how many watched steps and resets are running
    drawing = 0  # how many watched draws are running: a sample that calls multinomial inside is one draw

    def __init__(self):
        self.recent = []


_state = _State()


def _users_lines(most):
    """The innermost lines of the user's own code, the deepest first; a library's line where there is none."""
    frame, fallback, found = sys._getframe(1), None, []
    while frame is not None and len(found) < most:
        name = frame.f_code.co_filename
        if not name.startswith("<") and name != __file__:
            library = "site-packages" in name or "dist-packages" in name or name.startswith(sys.base_prefix)
            line = [name, frame.f_lineno, frame.f_code.co_name]
            if not library:
                found.append(line)
            fallback = fallback or line
        frame = frame.f_back
    return found or [fallback or ["?", 0, "?"]]


def _as_numbers(value):
    """A flat list of numbers, or None; large arrays are not compared."""
    try:
        if isinstance(value, dict):
            value = list(value.values())
        if hasattr(value, "detach"):
            value = value.detach().cpu()
        flat, waiting = [], [value]
        while waiting and len(flat) < 4096:
            item = waiting.pop()
            item = item.tolist() if hasattr(item, "tolist") else item
            if isinstance(item, (list, tuple)):
                waiting.extend(reversed(item))
            elif isinstance(item, (int, float)):
                flat.append(float(item))
            else:
                return None
        return flat
    except Exception:
        return None


def _around(owner, name, watch, inherited=False):
    """Replace a function, once, by one that hands it with its arguments to `watch`, which calls it."""
    original = vars(owner).get(name, getattr(owner, name, None) if inherited else None)
    is_static = isinstance(original, (staticmethod, classmethod))
    function = original.__func__ if is_static else original
    if not callable(function) or getattr(function, "_gapfloor", False):
        return

    @functools.wraps(function)
    def watched(*arguments, **keywords):
        return watch(function, arguments, keywords)

    watched._gapfloor = True
    try:
        setattr(owner, name, type(original)(watched) if is_static else watched)
    except (AttributeError, TypeError):
        _unseen.add(f"{getattr(owner, '__name__', owner)}.{name} cannot be watched")


# Draws and maxima.


def _watch_draws(owner, names, kind, inherited=False):
    """Remember what functions give back, as numbers of one kind."""

    def drawn(function, arguments, keywords):
        _state.drawing += 1
        try:
            value = function(*arguments, **keywords)
        finally:
            _state.drawing -= 1
        if _state.drawing == 0:
            # A choice without weights ignores the policy.
            is_choice = getattr(function, "__name__", "") == "choice"
            is_plain = is_choice and keywords.get("p") is None and len(arguments) - inherited < 4
            _note("random" if is_plain else kind, value)
        return value

    for name in names:
        _around(owner, name, drawn, inherited)


def _note(kind, value):
    recent = _state.recent
    if kind == "argmax" and any(one == "noise" and found and len(found) > 1 for one, found, _ in recent):
        kind = "noisy"  # the maximum of something to which noise was added, as in the Gumbel trick
    if len(recent) < _WINDOW:
        recent.append((kind, _as_numbers(value), _users_lines(1)[0]))


# Steps, resets and updates.


def _inside(function, arguments, keywords):
    _state.depth += 1
    try:
        return function(*arguments, **keywords)
    finally:
        _state.depth -= 1


def _step(function, arguments, keywords):
    if _state.depth:
        return _inside(function, arguments, keywords)  # a wrapper steps the environment inside it
    given = (*arguments[1:], *keywords.values())
    site = _note_step(arguments[0], given[0] if given else None)
    value = _inside(function, arguments, keywords)
    # Four values end with `done`, five with two reasons for an end.
    ends = value[2 : len(value) - 1] if isinstance(value, tuple) and len(value) in (4, 5) else ()
    site["episodes"] += any(any(_as_numbers(item) or ()) for item in ends)
    _state.recent = []
    return value


def _reset(function, arguments, keywords):
    if _state.depth == 0:
        _environment(arguments[0])["updates_since"] = _counts["updates"]
    return _inside(function, arguments, keywords)


def _update(function, arguments, keywords):
    value = function(*arguments, **keywords)
    _counts["updates"] += 1
    return value


def _environment(environment):
    spec = getattr(environment, "spec", None)
    name = str(getattr(spec, "id", "")) or type(getattr(environment, "unwrapped", environment)).__name__
    # The object is kept, so that no other one gets its number.
    fresh = {"name": name, "updates_since": _counts["updates"], "keep": environment}
    return _environments.setdefault(id(environment), fresh)


def _note_step(environment, action):
    _counts["steps"] += 1
    lines = _users_lines(4)
    seen = _environment(environment)
    fresh = {"place": lines[0], "callers": lines[1:], "environment": seen["name"], "versions": []}
    fresh |= {name: collections.Counter() for name in ("matched", "drawn", "places")}
    fresh |= dict.fromkeys(("steps", "episodes", "quiet", "random", "spanning"), 0)
    # The same line with other callers may act by another rule, or with another epsilon.
    site = _sites.setdefault(f"{lines}:{id(environment)}", fresh)
    site["steps"] += 1
    version = _counts["updates"]
    if site["versions"][-1:] != [version]:
        site["versions"] = [*site["versions"], version][-1000:]
    if version != seen["updates_since"]:
        site["spanning"] += 1
        seen["updates_since"] = version
    numbers = _as_numbers(action)
    kinds = {kind for kind, _, _ in _state.recent}
    site["quiet"] += not kinds & {"sampled", "random", "noise"}
    matched = set()
    for kind, value, where in reversed(_state.recent):
        if kind not in matched and numbers is not None and value == numbers:
            matched.add(kind)
            site["places"][f"{kind} at {where[0]}:{where[1]}"] += 1
    # A random action that is not also the best one: every one of them is counted.
    site["random"] += "random" in matched and not matched & {"argmax", "sampled"}
    for kind in kinds:
        site["drawn"][kind] += 1
    for kind in matched:
        site["matched"][kind] += 1
    if _MOST_STEPS and _counts["steps"] >= _MOST_STEPS:
        _write()
        os._exit(0)
    return site


def _watch_environment(kind):
    for name in ("step", "step_wait"):
        _around(kind, name, _step)
    _around(kind, "reset", _reset)


# What is watched in which module.

_NUMBERS = ("rand", "random", "uniform", "normal", "randn", "standard_normal", "gumbel", "exponential")
#: Module, the object in it, its functions, the kind of numbers that they give, whether inherited ones count.
_DRAWS = (
    ("torch", "", ("multinomial", "bernoulli", "normal"), "sampled", False),
    ("torch", "", ("rand", "randn", "rand_like", "randn_like"), "noise", False),
    ("torch", "", ("randint",), "random", False),
    ("torch", "", ("argmax",), "argmax", False),
    ("torch", "Tensor", ("argmax",), "argmax", True),
    ("torch", "Tensor", ("multinomial",), "sampled", True),
    ("numpy", "", ("argmax",), "argmax", False),
    ("numpy", "random", ("choice", "multinomial"), "sampled", False),
    ("numpy", "random", ("randint", "random_integers"), "random", False),
    ("numpy", "random", _NUMBERS, "noise", False),
    ("random", "", ("randint", "randrange", "choice"), "random", False),
    ("random", "", ("choices",), "sampled", False),
    ("random", "", ("random", "gauss", "uniform"), "noise", False),
    ("random", "Random", ("randint", "randrange", "choice"), "random", False),
    ("random", "Random", ("choices",), "sampled", False),
    ("random", "Random", ("uniform",), "noise", False),
)


def _watch_family(base, watch):
    """Call `watch` with a base class, its subclasses, and every subclass that comes later."""
    waiting = [base]
    while waiting:
        kind = waiting.pop()
        watch(kind)
        waiting.extend(kind.__subclasses__())
    before = base.__dict__.get("__init_subclass__")

    def watch_later(cls, **keywords):
        if before is not None:
            before.__func__(cls, **keywords)
        else:
            super(base, cls).__init_subclass__(**keywords)
        watch(cls)

    base.__init_subclass__ = classmethod(watch_later)


def _patch_optimizer(module):
    def made(function, arguments, keywords):
        function(*arguments, **keywords)
        _around(type(arguments[0]), "step", _update, inherited=True)

    _around(module.Optimizer, "__init__", made)


def _patch_generators(module):
    # Generators are extension types: `default_rng` gives a watched subclass that draws the same numbers.
    random = module.random
    watched = type("Generator", (random.Generator,), {})
    _watch_draws(watched, ("choice", "multinomial"), "sampled", inherited=True)
    _watch_draws(watched, ("integers",), "random", inherited=True)
    _watch_draws(watched, _NUMBERS, "noise", inherited=True)

    def made(function, arguments, keywords):
        generator = function(*arguments, **keywords)
        return watched(generator.bit_generator) if type(generator) is random.Generator else generator

    _around(random, "default_rng", made)


def _patch_gym3(module):
    for item in vars(module).values():
        if isinstance(item, type) and "Env" in item.__name__:
            _watch_environment(item)


def _patch_environments(module):
    for name in ("Env", "VectorEnv", "VecEnv"):
        if name in vars(module):
            _watch_family(vars(module)[name], _watch_environment)


def _patch_spaces(module):
    _watch_family(module.Space, lambda kind: _watch_draws(kind, ("sample",), "random"))


def _patch_distributions(module):
    _watch_family(module.Distribution, lambda kind: _watch_draws(kind, ("sample", "rsample"), "sampled"))


_PATCHES = {
    "gymnasium.core": _patch_environments,
    "gymnasium.vector.vector_env": _patch_environments,
    "gymnasium.spaces.space": _patch_spaces,
    "gym.core": _patch_environments,
    "gym.vector.vector_env": _patch_environments,
    "gym.spaces.space": _patch_spaces,
    "stable_baselines3.common.vec_env.base_vec_env": _patch_environments,
    "gym3.interop": _patch_gym3,
    "torch": None,
    "torch.distributions.distribution": _patch_distributions,
    "torch.optim.optimizer": _patch_optimizer,
    "numpy": _patch_generators,
    "random": None,
}
_BLIND = {"jax": "JAX", "tensorflow": "TensorFlow", "envpool": "envpool", "ray": "Ray's workers"}


class _Finder(importlib.abc.MetaPathFinder):
    """Runs a patch right after its module was loaded by whoever would have loaded it."""

    active = frozenset()

    def find_spec(self, name, path, target=None):
        if name not in _PATCHES or name in self.active:
            return None
        self.active |= {name}
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.active -= {name}
        if spec is not None and hasattr(spec.loader, "exec_module"):
            original = spec.loader.exec_module

            def execute(module):
                original(module)
                _apply(name, module)

            spec.loader.exec_module = execute
        return spec


def _apply(name, module):
    try:
        for home, owner, functions, kind, inherited in _DRAWS:
            if home == name:
                _watch_draws(getattr(module, owner) if owner else module, functions, kind, inherited)
        if _PATCHES[name] is not None:
            _PATCHES[name](module)
    except Exception:
        _unseen.add(f"{name}: {traceback.format_exc(limit=1).splitlines()[-1]}")


def _write():
    _unseen.update(f"{text} (not watched)" for name, text in _BLIND.items() if name in sys.modules)
    document = {"sites": list(_sites.values()), "updates": _counts["updates"], "unseen": sorted(_unseen)}
    with open(f"{_OUT}.{os.getpid()}", "w", encoding="utf-8") as stream:
        json.dump(document, stream, default=str)


if _OUT:
    sys.meta_path.insert(0, _Finder())
    for _name in _PATCHES:
        if _name in sys.modules:
            _apply(_name, sys.modules[_name])
    atexit.register(_write)
