"""Policies that only act: planners, scripts, Q-learners, language models.

Such a policy has no distribution that a rule could choose from, so it has one rule, `own`. It is a function from an
observation to an action, or an object with `act`, `select_action`, `compute_single_action` or `predict`. Every slot has
an object of its own. Before an episode `seed(n)` is called and then `reset()`, or `reset(seed=n)`, where the object has
them; an object without them that keeps a generator of numpy or Python as an attribute gets a new one. A policy that
cannot be seeded in any of these ways and does not state `is_deterministic = True` cannot be repeated, and its cells say
so. With `batched = True` one object is asked about all slots at once; it keeps no memory of an episode.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from gapfloor.actions.spaces import ActionSpace, Box, Discrete
from gapfloor.engines.engine import map_arrays
from gapfloor.errors import PolicyError
from gapfloor.policies.notes import note_once
from gapfloor.users_code import in_users_words, parameters_of, required_parameters

#: The methods by which libraries ask for an action, the clearest first.
METHODS = ("act", "select_action", "compute_single_action", "predict")

#: Larger arrays of an object that a policy holds are memories of its training, not weights.
_MOST_BYTES = 1 << 28


class ActingPolicy:
    """A policy that returns actions; `make` gives the object or function of one slot."""

    backend, device = "callable", "cpu"

    def __init__(self, make: Callable[[], Any], *, name: str) -> None:
        self.name, self._make = name, make
        example = make()
        slot = _Slot(example)
        if not callable(slot.function):
            raise PolicyError(
                f"{name} gave a {type(example).__name__}, which cannot act: give an object with act(observation), or "
                "a function from an observation to an action."
            )
        self.is_batched = bool(getattr(example, "batched", False))
        self.is_repeatable = slot.can_be_seeded or getattr(example, "is_deterministic", False) is True
        self.fingerprint = getattr(example, "fingerprint", None) or _content_hash(example)
        self.header: Mapping[str, Any] = {"encoder": _kind(example)}
        self.record = {"repeatable": "yes" if self.is_repeatable else "no"}
        """What a cell record says about this policy, also how it says itself that it chooses, e.g. temperature:0.7."""
        temperature = getattr(example, "temperature", None)
        stated = getattr(example, "stated_rule", "" if temperature is None else f"temperature:{temperature}")
        if str(stated):
            self.record["stated_rule"] = str(stated)

    def slots(self, n: int) -> list[_Slot]:
        """The objects that act in `n` slots; a batched policy has one."""
        return [_Slot(self._make()) for _ in range(1 if self.is_batched else n)]


def acting_policy(given: Any, *, name: str) -> ActingPolicy:
    """The policy of an object or a function in memory; slots get copies where it keeps a memory or a generator."""
    slot = _Slot(given)
    if not slot.can_be_seeded and slot.reset is None:
        return ActingPolicy(lambda: given, name=name)
    note = (
        "all slots share it: if it remembers its episode, give a function that makes it "
        "(acting:package.module:factory), or use --batch 1."
    )
    return ActingPolicy(lambda: copied(given, otherwise=note), name=name)


def copied(given: Any, *, otherwise: str, shared: Any = None) -> Any:
    """A copy of an object; itself where it cannot be copied, with a note that says what that means.

    `shared` is a part that the copy holds as well.
    """
    try:
        return copy.deepcopy(given, {} if shared is None else {id(shared): shared})
    except Exception:
        note_once(f"{type(given).__name__} cannot be copied, so {otherwise}")
        return given


def copy_of_network(network: Any, *, shared: Any = None) -> Any:
    """A copy, so that training the network further does not change what is measured."""
    # A module that keeps the tensors of its last call cannot be copied.
    return copied(network, otherwise="it is used itself: do not train it meanwhile.", shared=shared)


class _Slot:
    """The object of one slot, and how it is begun and asked."""

    def __init__(self, given: Any) -> None:
        self._given = given
        method = next((name for name in METHODS if callable(getattr(given, name, None))), None)
        self.function: Callable[[Any], Any] = given if method is None else getattr(given, method)
        seed, reset = getattr(given, "seed", None), getattr(given, "reset", None)
        self._seed: Callable[[int], Any] | None = seed if callable(seed) else None
        # What else a method of this name needs is not an episode's, e.g. the new_config of RLlib's Algorithm.reset.
        is_ours = callable(reset) and set(required_parameters(reset)) <= {"seed"}
        self.reset: Callable[..., Any] | None = reset if is_ours else None
        self._reset_takes_seed = self.reset is not None and "seed" in parameters_of(self.reset)
        kinds = (np.random.Generator, np.random.RandomState, random.Random)
        state = getattr(given, "__dict__", {})
        self._generators = {name: type(each) for name, each in state.items() if isinstance(each, kinds)}
        self.can_be_seeded = callable(seed) or self._reset_takes_seed or bool(self._generators)
        """Whether its random numbers can be made to depend on the episode alone."""

    def begin(self, number: int) -> None:
        """Begin an episode whose random numbers are those of a seed."""
        if self._seed is None and not self._reset_takes_seed:
            for name, kind in self._generators.items():
                make: Callable[[int], Any] = np.random.default_rng if kind is np.random.Generator else kind
                setattr(self._given, name, make(number))
        if self._seed is not None:
            self._seed(number)
        if self.reset is not None:
            self.reset(seed=number) if self._reset_takes_seed else self.reset()

    def ask(self, observation: Any) -> Any:
        """What the object returns for an observation; libraries return the action with a state, as a tuple."""
        answer = self.function(observation)
        return answer[0] if isinstance(answer, tuple) else answer


class ActionReader:
    """Asks the objects of a batch of slots for actions and refuses what the environment cannot take."""

    def __init__(self, policy: ActingPolicy, *, name: str, n_slots: int, space: ActionSpace) -> None:
        self._policy, self._name, self._space = policy, name, space
        self._slots = policy.slots(n_slots)

    def begin(self, row: int, uniform: float) -> None:
        """Begin an episode in a row; `uniform` is a number of the episode's own stream."""
        if not self._policy.is_batched:
            self._guarded(lambda: self._slots[row].begin(int(uniform * 2**32)))

    def read(self, observations: Any, rows: Sequence[int]) -> list[Any]:
        """The actions of some rows."""
        if self._policy.is_batched:
            chosen = np.asarray(rows)
            some = map_arrays(observations, lambda array: array[chosen])
            answers = list(np.asarray(self._guarded(lambda: self._slots[0].ask(some))))
            if len(answers) != len(rows):
                raise PolicyError(
                    f"The policy {self._name} returned {len(answers)} actions for {len(rows)} observations: a batched "
                    "policy returns one per row."
                )
        else:
            answers = self._guarded(lambda: [self._slots[row].ask(_row(observations, row)) for row in rows])
        return [as_action(each, self._space, name=self._name) for each in answers]

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Exception as error:
            raise PolicyError(f"The policy {self._name} failed: {in_users_words(error)}") from error


def as_action(answer: Any, space: ActionSpace, *, name: str) -> Any:
    """An action as play sees it: a whole number, or a row of numbers within the bounds."""
    if isinstance(answer, (int, np.integer)) and isinstance(space, Discrete) and 0 <= answer < space.n:
        return int(answer)
    try:
        values = np.asarray(answer.detach().cpu() if hasattr(answer, "detach") else answer, dtype=np.float64)
        values = values.ravel()
    except (TypeError, ValueError):
        values = np.full(1, np.nan)
    if isinstance(space, Box):
        if len(values) == space.width and np.isfinite(values).all():
            return np.clip(values, *space.bounds)
    elif isinstance(space, Discrete):
        sizes = space.factors if len(values) == len(space.factors) > 1 else (space.n,)
        is_within = len(values) == len(sizes) and ((values >= 0) & (values < sizes)).all()
        if is_within and (values == np.floor(values)).all():
            return int(np.ravel_multi_index(tuple(values.astype(np.int64)), sizes))
    raise PolicyError(
        f"The policy {name} returned {str(answer)[:80]!r} as an action, but the actions are {space}: return one of "
        "them."
    )


def _row(observations: Any, row: int) -> Any:
    """The observation of one row; a text as Python's own."""
    return map_arrays(observations, lambda a: str(a[row]) if isinstance(a[row], np.str_) else a[row])


def _kind(given: Any) -> str:
    name = str(getattr(given, "__name__", type(given).__name__))
    return name if name.isidentifier() else "policy"


def _content_hash(given: Any) -> str:
    """The hash of a policy's own code and of the numbers, texts, arrays and networks that it holds or names."""
    if isinstance(given, functools.partial):
        digest = hashlib.sha256(_content_hash(given.func).encode())
        _add(digest, [given.args, given.keywords], depth=6)
        return digest.hexdigest()
    digest = hashlib.sha256()
    is_function = hasattr(given, "__code__")
    try:
        digest.update(inspect.getsource(given if is_function else type(given)).encode())
    except (OSError, TypeError):
        digest.update(given.__code__.co_code if is_function else _kind(given).encode())
    closure = [cell.cell_contents for cell in getattr(given, "__closure__", None) or ()]
    _add(digest, [getattr(given, "__defaults__", None), closure, _contents(given, {})], depth=6)
    # The object of a bound method, and what a function takes from its module: e.g. a model loaded above it.
    if inspect.ismethod(given):
        named = [given.__self__]
    else:
        names = getattr(getattr(given, "__code__", None), "co_names", ())
        values = getattr(given, "__globals__", {})
        named = [values[name] for name in names if name in values and not _is_code(values[name])]
    for each in closure + named:
        _add(digest, {} if _is_code(each) else _contents(each, each), depth=5)
    return digest.hexdigest()


def _contents(given: Any, otherwise: Any) -> Any:
    """The attributes of an object, with the weights that it gives itself: RLlib keeps them too deep to be found."""
    weights = getattr(given, "get_weights", None)
    held = getattr(given, "__dict__", otherwise)
    return [held, weights()] if callable(weights) and not required_parameters(weights) else held


def _is_code(value: Any) -> bool:
    return isinstance(value, (type, ModuleType)) or hasattr(value, "__code__")


def _add(digest: Any, value: Any, depth: int) -> None:
    if isinstance(value, (str, bytes, int, float, bool, type(None))):
        digest.update(repr(value).encode())
    elif _is_array(value):
        array = np.ascontiguousarray(value.detach().cpu() if hasattr(value, "detach") else value)
        digest.update(
            f"{array.dtype}{array.shape}".encode() + (b"" if array.dtype.hasobject else array.tobytes())
        )
    elif isinstance(value, Mapping) and depth:
        for key in sorted(value, key=repr):
            _add(digest, [key, value[key]], depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for each in value:
            _add(digest, each, depth - 1)
    else:
        digest.update(type(value).__qualname__.encode())
        if not _is_code(value):
            _add_held_arrays(digest, value, depth)


def _add_held_arrays(digest: Any, value: Any, depth: int) -> None:
    """The weights of a network; of another object, its networks and those arrays that are not large memories."""
    if callable(getattr(value, "state_dict", None)):
        for item in value.state_dict().items():
            _add(digest, item, depth=1)
    elif depth:
        for name, each in sorted(getattr(value, "__dict__", {}).items()):
            is_weights = _is_array(each) and getattr(each, "nbytes", 0) <= _MOST_BYTES
            if is_weights or (hasattr(each, "__dict__") and not _is_array(each)):
                _add(digest, [name, each], depth - 1)


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and getattr(value, "dtype", None) is not None
