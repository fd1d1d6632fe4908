"""Probing a policy that can be called: does it sample, whatever it calls itself?

The same observation is given again under different seeds. A deterministic policy never answers differently; a
stochastic one does so in n calls except with probability sum(p_k^n), which is at most p_max^(n-1). Where answers
change, the calls are repeated under one seed: what still changes then is a state that the policy keeps, or a generator
of its own.
"""

from __future__ import annotations

import inspect
import math
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.errors import UsageError
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.registry import table_of
from gapfloor.tables.table import Table


@dataclass(frozen=True, repr=False)
class ProbeResult(ReadableResult):
    """What repeated calls showed."""

    rule: str
    """sampled, deterministic or undecided."""
    is_deterministic: bool
    n_observations: int
    n_calls: int
    """Calls per observation."""
    error_rate: float
    """Bound on calling a policy deterministic that puts at most `smallest_chance` off its favourite action."""
    smallest_chance: float
    n_changing: int
    """Observations on which the answer changed between calls."""
    is_stateful: bool | None
    """Whether answers depend on earlier calls; None when that cannot be told without `reset`."""
    note: str | None
    """Why the rule is undecided, and what would decide it."""
    contradicts: str | None
    """The claim that the calls refute, if the policy came with one."""

    def table(self) -> Table:
        """The rule and what was seen."""
        return table_of("probe", [self])

    def sentences(self) -> list[str]:
        """How sure the answer is, and what it contradicts."""
        lines = [f"Undecided: {self.note}"] if self.note else []
        if self.is_deterministic:
            lines.append(
                f"A policy that leaves its favourite action with a probability of {self.smallest_chance:g} or more "
                f"would have been taken for deterministic with a probability of at most {self.error_rate:g}."
            )
        return [*lines, f"Contradiction: {self.contradicts}."] if self.contradicts else lines


def calls_needed(*, error_rate: float, smallest_chance: float) -> int:
    """Calls after which a policy that leaves its favourite with `smallest_chance` has been caught.

    >>> calls_needed(error_rate=0.001, smallest_chance=0.05)
    136
    """
    if not 0 < error_rate < 1 or not 0 < smallest_chance < 1:
        raise UsageError(
            f"`error_rate` ({error_rate}) and `smallest_chance` ({smallest_chance}) must lie between 0 and 1."
        )
    return math.ceil(math.log(error_rate) / math.log1p(-smallest_chance)) + 1


def probe_rule(
    act: Callable[[Any], Any],
    observations: Sequence[Any],
    *,
    claims: str | None = None,
    error_rate: float = 0.001,
    smallest_chance: float = 0.05,
    reseed: Callable[[int], None] | None = None,
    reset: Callable[[], None] | None = None,
) -> ProbeResult:
    """Whether `act` is deterministic or samples, from repeated calls on the same observations.

    Args:
        act: Takes one observation, returns one action: a number, an array (continuous actions too), or a tuple whose
            first element is the action (like that of `predict` in Stable-Baselines3).
        observations: The observations to repeat; a few dozen that differ are better than many alike.
        claims: What the harness says it does, `deterministic` or `stochastic`; a contradiction is reported.
        error_rate: Accepted probability of taking a sampling policy for a deterministic one.
        smallest_chance: A policy that leaves its favourite action less often than this counts as deterministic.
        reset: Puts the policy back to the start of an episode; it is called before every call. Give it for a policy
            with a memory: otherwise changing answers cannot be told from sampling.
        reseed: Seeds every generator that `act` uses; by default Python's, numpy's and, when loaded, torch's.

    Returns:
        The rule, how sure that is, and what it contradicts.

    Examples:
        >>> import gapfloor
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> gapfloor.audit.probe(lambda obs: rng.integers(3), [0, 1]).rule
        'sampled'
        >>> gapfloor.audit.probe(lambda obs: 2, [0, 1]).rule
        'deterministic'
    """
    if claims not in (None, "deterministic", "stochastic"):
        raise UsageError(f"`claims` must be deterministic or stochastic, not '{claims}'.")
    if len(observations) == 0:
        raise UsageError("`observations` is empty: give at least one observation to repeat.")
    n_calls = calls_needed(error_rate=error_rate, smallest_chance=smallest_chance)
    seed_all = reseed or _reseed

    def ask(observation: Any, seed: int) -> _Answer:
        if reset is not None:
            reset()
        return _action(act, observation, seed_all, seed=seed)

    answers = [
        [ask(observation, number * len(observations) + place) for number in range(n_calls)]
        for place, observation in enumerate(observations)
    ]
    n_changing = sum(len(set(row)) > 1 for row in answers)
    is_stateful, note = _state(act, ask, observations, n_changing, has_reset=reset is not None)
    rule = "undecided" if note is not None else "sampled" if n_changing else "deterministic"
    contradicts = None
    if claims == "deterministic" and n_changing and note is None:
        contradicts = f"it calls itself deterministic, and its answer changed on {n_changing} observations"
    elif claims == "stochastic" and not n_changing:
        contradicts = "it calls itself stochastic, and its answer never changed"
    return ProbeResult(
        rule=rule,
        is_deterministic=n_changing == 0,
        n_observations=len(answers),
        n_calls=n_calls,
        error_rate=error_rate,
        smallest_chance=smallest_chance,
        n_changing=n_changing,
        is_stateful=is_stateful,
        note=note,
        contradicts=contradicts,
    )


def _state(
    act: Callable[[Any], Any],
    ask: Callable[[Any, int], _Answer],
    observations: Sequence[Any],
    n_changing: int,
    *,
    has_reset: bool,
) -> tuple[bool | None, str | None]:
    """Whether the policy keeps a state, and what to say when that hides whether it samples."""
    if n_changing == 0:
        return False, None
    if all(ask(observation, 0) == ask(observation, 0) for observation in observations for _ in range(4)):
        return False, None
    if has_reset or _owns_generator(act):
        return None, None  # the answer changes although nothing is kept: a generator of its own
    return None, (
        "the answer changes under one and the same seed: the policy keeps a state, or a generator that is not seeded. "
        "Pass reset= to start each call afresh, or reseed= to seed its generator."
    )


def _owns_generator(act: Callable[[Any], Any]) -> bool:
    """Whether the policy holds a random generator of its own, which seeding the global ones does not reach."""
    held: list[Any] = []
    with suppress(
        TypeError, ValueError
    ):  # not a plain function, or one that closes over a name without a value
        known = inspect.getclosurevars(act)
        held += [*known.nonlocals.values(), *known.globals.values()]
    for owner in (act, getattr(act, "__self__", None)):
        held += list(getattr(owner, "__dict__", {}).values())
    kinds = (np.random.Generator, np.random.RandomState, random.Random)
    return any(isinstance(item, kinds) or type(item).__name__ == "Generator" for item in held)


def _reseed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the policies probed use the global generator
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


_Answer = int | tuple[float, ...]


def _action(
    act: Callable[[Any], Any], observation: Any, seed_all: Callable[[int], None], *, seed: int
) -> _Answer:
    seed_all(seed)
    answer = act(observation)
    if isinstance(answer, tuple) and len(answer) == 2:
        answer = answer[0]  # the action and the next state
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu()
    value = np.asarray(answer)
    is_array = hasattr(answer, "shape")
    if not np.issubdtype(value.dtype, np.number) or value.size == 0 or (value.size != 1 and not is_array):
        raise UsageError(
            f"`act` returned {type(answer).__name__} of shape {value.shape}; return one action as a number or an array."
        )
    flat = value.reshape(-1)
    if flat.size == 1 and float(flat[0]) == int(flat[0]):
        return int(flat[0])
    return tuple(float(item) for item in flat)
