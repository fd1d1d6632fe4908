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
_made = []
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


def _watch(owner, name, kind):
    """Replace a function by one that notes its result."""
    original = owner.__dict__.get(name) if isinstance(owner, type) else getattr(owner, name, None)
    if original is None or getattr(original, "_gapfloor", False):
        return
    is_static = isinstance(original, (staticmethod, classmethod))
    function = original.__func__ if is_static else original
    if not callable(function):
        return

    @functools.wraps(function)
    def watched(*arguments, **keywords):
        depth = getattr(_state, "drawing", 0)
        _state.drawing = depth + 1
        try:
            value = function(*arguments, **keywords)
        finally:
            _state.drawing = depth
        if depth == 0:  # a sample that calls multinomial inside is one draw
            _note(
                kind, value[1] if kind == "argmax" and isinstance(value, tuple) and len(value) > 1 else value
            )
        return value

    watched._gapfloor = True
    try:
        setattr(owner, name, type(original)(watched) if is_static else watched)
    except (AttributeError, TypeError):
        _unseen.add(f"{getattr(owner, '__name__', owner)}.{name} cannot be watched")


def _watch_step(owner, name, position=1):
    original = owner.__dict__.get(name)
    if original is None or getattr(original, "_gapfloor", False) or not callable(original):
        return

    @functools.wraps(original)
    def stepped(self, *arguments, **keywords):
        _recent()
        is_outer = _state.depth == 0
        _state.depth += 1
        if is_outer:
            action = (
                arguments[position - 1] if len(arguments) >= position else next(iter(keywords.values()), None)
            )
            _note_step(self, action)
        try:
            value = original(self, *arguments, **keywords)
        finally:
            _state.depth -= 1
        if is_outer:
            _note_end(self, value)
            _state.recent = []
        return value

    stepped._gapfloor = True
    setattr(owner, name, stepped)


def _watch_reset(owner, name):
    original = owner.__dict__.get(name)
    if original is None or getattr(original, "_gapfloor", False) or not callable(original):
        return

    @functools.wraps(original)
    def was_reset(self, *arguments, **keywords):
        _recent()
        if _state.depth == 0:
            seen = _environments.setdefault(id(self), _new_environment(self))
            seen["updates_since"] = _counts["updates"]
            seed = keywords.get("seed")
            if isinstance(seed, int) and len(seen["seeds"]) < 200:
                seen["seeds"].append(seed)
        _state.depth += 1
        try:
            return original(self, *arguments, **keywords)
        finally:
            _state.depth -= 1

    was_reset._gapfloor = True
    setattr(owner, name, was_reset)


def _new_environment(environment):
    kinds = []
    current = environment
    for _ in range(20):
        kinds.append(type(current).__name__)
        inner = None
        for name in ("env", "venv", "envs", "_env"):
            inner = getattr(current, "__dict__", {}).get(name)
            if inner is not None:
                break
        if inner is None:
            break
        current = inner[0] if isinstance(inner, (list, tuple)) and inner else inner
    spec = getattr(environment, "spec", None)
    return {
        "kinds": kinds,
        "id": str(getattr(spec, "id", "")) or None,
        "seeds": [],
        "updates_since": _counts["updates"],
        "made": None,
        "keep": environment,
    }


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
    for name in ("step", "step_wait", "act"):
        if name != "act":
            _watch_step(kind, name)
    _watch_reset(kind, "reset")


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


def _watch_samples(base, names, kind):
    def watch(owner):
        for name in names:
            if name in owner.__dict__:
                _watch(owner, name, kind)

    _watch_family(base, watch)


def _watch_updates(module):
    optimizer = module.Optimizer
    original = optimizer.__init__

    @functools.wraps(original)
    def made(self, *arguments, **keywords):
        original(self, *arguments, **keywords)
        kind = type(self)
        step = kind.__dict__.get("step") or getattr(kind, "step", None)
        if step is None or getattr(step, "_gapfloor", False):
            return

        @functools.wraps(step)
        def updated(this, *inner, **named):
            value = step(this, *inner, **named)
            _counts["updates"] += 1
            return value

        updated._gapfloor = True
        kind.step = updated

    optimizer.__init__ = made


def _note_made(function, owner=None):
    @functools.wraps(function)
    def make(*arguments, **keywords):
        value = function(*arguments, **keywords)
        plain = {
            name: item
            for name, item in keywords.items()
            if isinstance(item, (str, int, float, bool, type(None)))
        }
        first = next((item for item in arguments if isinstance(item, str)), None)
        if len(_made) < 200:
            _made.append({"id": first, "keywords": plain, "place": _here()})
        return value

    make._gapfloor = True
    return make


def _patch_torch(module):
    for name in ("multinomial", "bernoulli", "normal"):
        _watch(module, name, "sampled")
    for name in ("rand", "randn", "rand_like", "randn_like", "randint"):
        _watch(module, name, "random" if name == "randint" else "noise")
    _watch(module, "argmax", "argmax")
    for name in ("argmax", "multinomial"):
        tensor = module.Tensor
        original = getattr(tensor, name, None)
        if original is not None and not getattr(original, "_gapfloor", False):
            kind = "argmax" if name == "argmax" else "sampled"

            def method(self, *arguments, _original=original, _kind=kind, **keywords):
                depth = getattr(_state, "drawing", 0)
                _state.drawing = depth + 1
                try:
                    value = _original(self, *arguments, **keywords)
                finally:
                    _state.drawing = depth
                if depth == 0:
                    _note(_kind, value)
                return value

            method._gapfloor = True
            setattr(tensor, name, method)


def _patch_numpy(module):
    _watch(module, "argmax", "argmax")
    random = module.random
    for name in ("choice", "multinomial"):
        _watch(random, name, "sampled")
    for name in ("randint", "random_integers"):
        _watch(random, name, "random")
    for name in ("rand", "random", "uniform", "normal", "randn", "gumbel", "exponential"):
        _watch(random, name, "noise")
    _patch_generator(random)


def _patch_generator(random):
    """Generators of numpy are extension types: `default_rng` gives a watched subclass that draws the same numbers."""

    class Watched(random.Generator):
        pass

    for names, kind in (
        (("choice", "multinomial"), "sampled"),
        (("integers",), "random"),
        (("random", "uniform", "normal", "standard_normal", "gumbel", "exponential"), "noise"),
    ):
        for name in names:
            setattr(Watched, name, _drawing(getattr(random.Generator, name), name, kind))
    original = random.default_rng

    @functools.wraps(original)
    def default_rng(seed=None):
        made = original(seed)
        return made if type(made) is not random.Generator else Watched(made.bit_generator)

    Watched.__name__ = Watched.__qualname__ = "Generator"
    random.default_rng = default_rng


def _drawing(function, name, kind):
    @functools.wraps(function)
    def drawn(self, *arguments, **keywords):
        value = function(self, *arguments, **keywords)
        # `choice` without weights ignores the policy.
        is_plain = name == "choice" and keywords.get("p") is None and len(arguments) < 4
        if getattr(_state, "drawing", 0) == 0:
            _note("random" if is_plain else kind, value)
        return value

    return drawn


def _patch_gym(module):
    for name in ("make", "make_vec"):
        if hasattr(module, name):
            setattr(module, name, _note_made(getattr(module, name)))


def _patch_procgen(module):
    for name in ("ProcgenEnv", "ProcgenGym3Env"):
        kind = getattr(module, name, None)
        if isinstance(kind, type):
            kind.__init__ = _note_made(kind.__init__)
        elif callable(kind):
            setattr(module, name, _note_made(kind))


def _patch_random(module):
    for name in ("randint", "randrange", "choice"):
        _watch(module, name, "random")
    _watch(module, "choices", "sampled")
    for name in ("random", "uniform", "gauss"):
        _watch(module, name, "noise")
    for name in ("randint", "randrange", "choice"):
        _watch(module.Random, name, "random")
    _watch(module.Random, "choices", "sampled")
    _watch(module.Random, "uniform", "noise")


_PATCHES = {
    "gymnasium.core": lambda module: _watch_family(module.Env, _watch_class),
    "gymnasium.vector.vector_env": lambda module: _watch_family(module.VectorEnv, _watch_class),
    "gymnasium.envs.registration": _patch_gym,
    "gymnasium.spaces.space": lambda module: _watch_samples(module.Space, ("sample",), "random"),
    "gym.core": lambda module: _watch_family(module.Env, _watch_class),
    "gym.vector.vector_env": lambda module: _watch_family(module.VectorEnv, _watch_class),
    "gym.envs.registration": _patch_gym,
    "gym.spaces.space": lambda module: _watch_samples(module.Space, ("sample",), "random"),
    "stable_baselines3.common.vec_env.base_vec_env": lambda module: _watch_family(
        module.VecEnv, _watch_class
    ),
    "gym3.interop": lambda module: [
        _watch_class(item)
        for item in vars(module).values()
        if isinstance(item, type) and "Env" in item.__name__
    ],
    "procgen.env": _patch_procgen,
    "torch": _patch_torch,
    "torch.distributions.distribution": lambda module: _watch_samples(
        module.Distribution, ("sample", "rsample"), "sampled"
    ),
    "torch.optim.optimizer": _watch_updates,
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
    environments = {
        str(key): {name: value for name, value in item.items() if name != "keep"}
        for key, item in _environments.items()
    }
    _unseen.update(f"{text} (not watched)" for name, text in _BLIND.items() if name in sys.modules)
    document = {
        "sites": list(_sites.values()),
        "environments": environments,
        "made": _made,
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
