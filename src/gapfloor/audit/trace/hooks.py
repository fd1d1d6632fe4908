# mypy: ignore-errors
"""Hooks that watch steps, draws, maxima, resets and updates in a running script.

This file is copied next to the user's command as `sitecustomize.py` and runs in the user's own Python, which may be
another version without gapfloor: it uses the standard library only and never changes a result. What it saw is written
as JSON when the process ends.
"""

import atexit
import functools
import importlib.abc
import json
import os
import sys
import threading
import traceback

_OUT = os.environ.get("GAPFLOOR_TRACE_OUT", "")
_MOST_STEPS = int(os.environ.get("GAPFLOOR_TRACE_STEPS", "0"))
_WINDOW = 400

_state = threading.local()
_sites = {}
_environments = {}
_counts = {"updates": 0, "steps": 0}
_unseen = set()


def _here():
    """The innermost line of the user's own code: not a library, not this file."""
    frame = sys._getframe(2)
    return _users_lines(frame, 1)[0]


def _users_lines(frame, most):
    """The innermost lines of the user's own code, the deepest first; a library's line where there is none."""
    fallback, found = None, []
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


def _recent():
    if not hasattr(_state, "recent"):
        _state.recent = []
        _state.depth = 0
    return _state.recent


def _as_numbers(value):
    """A flat list of numbers, or None; large arrays are not compared."""
    try:
        if isinstance(value, dict):
            value = list(value.values())
        if hasattr(value, "detach"):
            value = value.detach().cpu()
        if hasattr(value, "tolist"):
            value = value.tolist()
        flat, waiting = [], [value]
        while waiting and len(flat) < 4096:
            item = waiting.pop()
            if isinstance(item, (list, tuple)):
                waiting.extend(reversed([one.tolist() if hasattr(one, "tolist") else one for one in item]))
            elif isinstance(item, (int, float)):
                flat.append(float(item))
            else:
                return None
        return flat
    except Exception:
        return None


def _note(kind, value):
    if getattr(_state, "is_quiet", False):
        return
    recent = _recent()
    if kind == "argmax" and any(one == "noise" and value and len(value) > 1 for one, value, _ in recent):
        kind = "noisy"  # the maximum of something to which noise was added, as in the Gumbel trick
    if len(recent) < _WINDOW:
        recent.append((kind, _as_numbers(value), _here()))


def _replace(owner, name, make, inherited=False):
    """Put `make(function)` in the place of a function, once; static and class methods stay that."""
    original = vars(owner).get(name, getattr(owner, name, None) if inherited else None)
    is_static = isinstance(original, (staticmethod, classmethod))
    function = original.__func__ if is_static else original
    if not callable(function) or getattr(function, "_gapfloor", False):
        return
    made = functools.wraps(function)(make(function))
    made._gapfloor = True
    try:
        setattr(owner, name, type(original)(made) if is_static else made)
    except (AttributeError, TypeError):
        _unseen.add(f"{getattr(owner, '__name__', owner)}.{name} cannot be watched")


def _watch(owner, names, kind, inherited=False):
    """Replace functions by ones that note their results."""

    def make(function, name):
        def watched(*arguments, **keywords):
            depth = getattr(_state, "drawing", 0)
            _state.drawing = depth + 1
            try:
                value = function(*arguments, **keywords)
            finally:
                _state.drawing = depth
            if depth == 0:  # a sample that calls multinomial inside is one draw
                given = arguments[1:] if inherited else arguments
                # A choice without weights ignores the policy.
                is_plain = name == "choice" and keywords.get("p") is None and len(given) < 4
                _note("random" if is_plain else kind, value)
            return value

        return watched

    for name in names:
        _replace(owner, name, functools.partial(make, name=name), inherited)


def _watch_step(owner, name):
    def make(original):
        def stepped(self, *arguments, **keywords):
            _recent()
            is_outer = _state.depth == 0
            _state.depth += 1
            if is_outer:
                _note_step(self, arguments[0] if arguments else next(iter(keywords.values()), None))
            try:
                value = original(self, *arguments, **keywords)
            finally:
                _state.depth -= 1
            if is_outer:
                _note_end(self, value)
                _state.recent = []
            return value

        return stepped

    _replace(owner, name, make)


def _watch_reset(owner):
    def make(original):
        def was_reset(self, *arguments, **keywords):
            _recent()
            if _state.depth == 0:
                seen = _environments.setdefault(id(self), _new_environment(self))
                seen["updates_since"] = _counts["updates"]
            _state.depth += 1
            try:
                return original(self, *arguments, **keywords)
            finally:
                _state.depth -= 1

        return was_reset

    _replace(owner, "reset", make)


def _new_environment(environment):
    spec = getattr(environment, "spec", None)
    name = str(getattr(spec, "id", "")) or type(getattr(environment, "unwrapped", environment)).__name__
    # The object is kept, so that no other one gets its number.
    return {"name": name, "updates_since": _counts["updates"], "keep": environment}


def _note_step(environment, action):
    _counts["steps"] += 1
    lines = _users_lines(sys._getframe(2), 4)
    place = lines[0]
    seen = _environments.setdefault(id(environment), _new_environment(environment))
    # The same line with other callers may act by another rule, or with another epsilon.
    key = f"{lines}:{id(environment)}"
    seen["site"] = key
    site = _sites.setdefault(
        key,
        {
            "place": place,
            "callers": lines[1:],
            "environment": id(environment),
            "steps": 0,
            "episodes": 0,
            "matched": {},
            "drawn": {},
            "quiet": 0,
            "random": 0,
            "places": {},
            "versions": [],
            "spanning": 0,
        },
    )
    site["steps"] += 1
    version = _counts["updates"]
    if not site["versions"] or site["versions"][-1] != version:
        site["versions"].append(version)
        del site["versions"][:-1000]
    if version != seen["updates_since"]:
        site["spanning"] += 1
        seen["updates_since"] = version
    numbers = _as_numbers(action)
    recent = _recent()
    kinds = {kind for kind, _, _ in recent}
    for kind in kinds:
        site["drawn"][kind] = site["drawn"].get(kind, 0) + 1
    if not kinds & {"sampled", "random", "noise"}:
        site["quiet"] += 1
    matched = set()
    for kind, value, where in reversed(recent):
        if kind not in matched and numbers is not None and value == numbers:
            matched.add(kind)
            name = f"{kind} at {where[0]}:{where[1]}"
            site["places"][name] = site["places"].get(name, 0) + 1
    # A random action that is not also the best one: every one of them is counted.
    site["random"] += "random" in matched and not matched & {"argmax", "sampled"}
    for kind in matched:
        site["matched"][kind] = site["matched"].get(kind, 0) + 1
    if _MOST_STEPS and _counts["steps"] >= _MOST_STEPS:
        _write()
        os._exit(0)


def _note_end(environment, value):
    try:
        done = value[2] if len(value) in (4, 5) else None
        more = value[3] if len(value) == 5 else None
        ended = [any(_as_numbers(item) or []) for item in (done, more) if item is not None]
    except Exception:
        return
    site = _sites.get(_environments.get(id(environment), {}).get("site"))
    if any(ended) and site is not None:
        site["episodes"] += 1


def _watch_class(kind):
    _watch_step(kind, "step")
    _watch_step(kind, "step_wait")
    _watch_reset(kind)


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
    def count(step):
        def updated(*arguments, **keywords):
            value = step(*arguments, **keywords)
            _counts["updates"] += 1
            return value

        return updated

    def make(original):
        def made(self, *arguments, **keywords):
            original(self, *arguments, **keywords)
            _replace(type(self), "step", count, inherited=True)

        return made

    _replace(module.Optimizer, "__init__", make)


def _patch_torch(module):
    _watch(module, ("multinomial", "bernoulli", "normal"), "sampled")
    _watch(module, ("rand", "randn", "rand_like", "randn_like"), "noise")
    _watch(module, ("randint",), "random")
    _watch(module, ("argmax",), "argmax")
    _watch(module.Tensor, ("argmax",), "argmax", inherited=True)
    _watch(module.Tensor, ("multinomial",), "sampled", inherited=True)


def _patch_numpy(module):
    random = module.random
    _watch(module, ("argmax",), "argmax")
    _watch(random, ("choice", "multinomial"), "sampled")
    _watch(random, ("randint", "random_integers"), "random")
    _watch(random, ("rand", "random", "uniform", "normal", "randn", "gumbel", "exponential"), "noise")

    # Generators are extension types: `default_rng` gives a watched subclass that draws the same numbers.
    class Watched(random.Generator):
        pass

    _watch(Watched, ("choice", "multinomial"), "sampled", inherited=True)
    _watch(Watched, ("integers",), "random", inherited=True)
    numbers = ("random", "uniform", "normal", "standard_normal", "gumbel", "exponential")
    _watch(Watched, numbers, "noise", inherited=True)

    def make(original):
        def default_rng(seed=None):
            made = original(seed)
            return made if type(made) is not random.Generator else Watched(made.bit_generator)

        return default_rng

    Watched.__name__ = Watched.__qualname__ = "Generator"
    _replace(random, "default_rng", make)


def _patch_random(module):
    for owner in (module, module.Random):
        _watch(owner, ("randint", "randrange", "choice"), "random")
        _watch(owner, ("choices",), "sampled")
        _watch(owner, ("uniform",), "noise")
    _watch(module, ("random", "gauss"), "noise")


def _patch_spaces(module):
    _watch_family(module.Space, lambda kind: _watch(kind, ("sample",), "random"))


def _patch_distributions(module):
    _watch_family(module.Distribution, lambda kind: _watch(kind, ("sample", "rsample"), "sampled"))


def _patch_gym3(module):
    for item in vars(module).values():
        if isinstance(item, type) and "Env" in item.__name__:
            _watch_class(item)


def _patch_environments(module):
    for name in ("Env", "VectorEnv", "VecEnv"):
        if name in vars(module):
            _watch_family(vars(module)[name], _watch_class)


_PATCHES = {
    "gymnasium.core": _patch_environments,
    "gymnasium.vector.vector_env": _patch_environments,
    "gymnasium.spaces.space": _patch_spaces,
    "gym.core": _patch_environments,
    "gym.vector.vector_env": _patch_environments,
    "gym.spaces.space": _patch_spaces,
    "stable_baselines3.common.vec_env.base_vec_env": _patch_environments,
    "gym3.interop": _patch_gym3,
    "torch": _patch_torch,
    "torch.distributions.distribution": _patch_distributions,
    "torch.optim.optimizer": _patch_optimizer,
    "numpy": _patch_numpy,
    "random": _patch_random,
}
_BLIND = {"jax": "JAX", "tensorflow": "TensorFlow", "envpool": "envpool", "ray": "Ray's workers"}


class _Finder(importlib.abc.MetaPathFinder):
    """Runs a patch right after its module was loaded by whoever would have loaded it."""

    def find_spec(self, name, path, target=None):
        if name not in _PATCHES or name in self.active:
            return None
        self.active.add(name)
        try:
            for finder in sys.meta_path:
                if finder is self or not hasattr(finder, "find_spec"):
                    continue
                spec = finder.find_spec(name, path, target)
                if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    original = spec.loader.exec_module

                    def execute(module, _original=original, _name=name):
                        _original(module)
                        _apply(_name, module)

                    spec.loader.exec_module = execute
                    return spec
        finally:
            self.active.discard(name)
        return None

    def __init__(self):
        self.active = set()


def _apply(name, module):
    try:
        _PATCHES[name](module)
    except Exception:
        _unseen.add(f"{name}: {traceback.format_exc(limit=1).splitlines()[-1]}")


def _write():
    if not _OUT:
        return
    environments = {str(key): item["name"] for key, item in _environments.items()}
    _unseen.update(f"{text} (not watched)" for name, text in _BLIND.items() if name in sys.modules)
    document = {
        "sites": list(_sites.values()),
        "environments": environments,
        "updates": _counts["updates"],
        "steps": _counts["steps"],
        "unseen": sorted(_unseen),
        "python": sys.version.split()[0],
        "argv": sys.argv,
    }
    with open(f"{_OUT}.{os.getpid()}", "w", encoding="utf-8") as stream:
        json.dump(document, stream, default=str)


if _OUT:
    sys.meta_path.insert(0, _Finder())
    for _name in list(_PATCHES):
        if _name in sys.modules:
            _apply(_name, sys.modules[_name])
    atexit.register(_write)
