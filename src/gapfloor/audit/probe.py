"""Probing a policy that can be called: does it sample, whatever it calls itself?

The same observation is given again under different seeds. A deterministic policy never answers differently; a
stochastic one does so in n calls except with probability sum(p_k^n), which is at most p_max^(n-1).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.errors import UsageError

Floats = np.ndarray[Any, np.dtype[np.float64]]

#: Without observations of the user's own, this many of noise are shown.
N_NOISE = 16


@dataclass(frozen=True)
class ProbeResult:
    """What repeated calls showed."""

    rule: str
    """sampled, argmax, deterministic (no distribution to tell whose maximum), mixed or undecided."""
    is_deterministic: bool
    n_observations: int
    n_calls: int
    """Calls per observation."""
    error_rate: float
    """Bound on calling a policy deterministic that puts at most `smallest_chance` off its favourite action."""
    smallest_chance: float
    n_changing: int
    """Observations on which the answer changed between calls."""
    n_greedy: int | None
    """Observations on which every answer was the distribution's maximum; None without a distribution."""
    p_value: float | None
    """How well the answers fit the distribution (chi-square over all observations); None without one."""
    contradicts: str | None
    """The claim that the calls refute, if the policy came with one."""


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
    observations: Sequence[Any] | None = None,
    *,
    distribution: Callable[[Any], Any] | None = None,
    noise_shape: tuple[int, ...] | None = None,
    claims: str | None = None,
    error_rate: float = 0.001,
    smallest_chance: float = 0.05,
    reseed: Callable[[int], None] | None = None,
) -> ProbeResult:
    """Whether `act` is deterministic or samples, from repeated calls on the same observations.

    Args:
        act: Takes one observation, returns one discrete action (a number or an array of one element).
        observations: The observations to repeat; a few dozen that differ are better than many alike. Without any,
            seeded noise (bytes of `noise_shape`) is shown, which tells deterministic from stochastic all the same.
        distribution: Takes one observation, returns the action probabilities. By default the policy's own: its
            `distribution` or `probabilities` (one observation) or `logits` (a batch), where it has one.
        noise_shape: The shape of an observation of noise; by default that of a ProcGen frame.
        claims: What the harness says it does, `deterministic` or `stochastic`; a contradiction is reported.
        error_rate: Accepted probability of taking a sampling policy for a deterministic one.
        smallest_chance: A policy that leaves its favourite action less often than this counts as deterministic.
        reseed: Seeds every generator that `act` uses; by default Python's, numpy's and, when loaded, torch's.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> probe_rule(lambda obs: rng.integers(3), [0, 1]).rule
    'sampled'
    >>> probe_rule(lambda obs: 2, [0, 1]).rule
    'deterministic'
    """
    if claims not in (None, "deterministic", "stochastic"):
        raise UsageError(f"`claims` must be deterministic or stochastic, not '{claims}'.")
    if observations is None:
        observations = _noise(noise_shape)
    if distribution is None:
        distribution = _own_distribution(act)
    if len(observations) == 0:
        raise UsageError("`observations` is empty: give at least one observation to repeat.")
    n_calls = calls_needed(error_rate=error_rate, smallest_chance=smallest_chance)
    seed_all = reseed or _reseed
    answers = [
        [
            _action(act, observation, seed_all, seed=number * len(observations) + place)
            for number in range(n_calls)
        ]
        for place, observation in enumerate(observations)
    ]
    n_changing = sum(len(set(row)) > 1 for row in answers)
    n_greedy, p_value = None, None
    if distribution is not None:
        probabilities = [_probabilities(distribution, observation) for observation in observations]
        n_greedy = sum(_is_greedy(row, chances) for row, chances in zip(answers, probabilities, strict=True))
        p_value = _fit(answers, probabilities)
    rule = _rule(n_changing, n_greedy, p_value, len(answers), error_rate)
    contradicts = None
    if claims == "deterministic" and n_changing:
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
        n_greedy=n_greedy,
        p_value=p_value,
        contradicts=contradicts,
    )


def _noise(shape: tuple[int, ...] | None) -> list[Any]:
    if shape is None:
        from gapfloor.engines.procgen import OBSERVATION_SHAPE  # only now: a probe needs no engine

        shape = OBSERVATION_SHAPE
    return list(np.random.default_rng(0).integers(0, 256, (N_NOISE, *shape), dtype=np.uint8))


def _own_distribution(act: Callable[[Any], Any]) -> Callable[[Any], Any] | None:
    for name in ("distribution", "probabilities"):
        found: Callable[[Any], Any] | None = getattr(act, name, None)
        if callable(found):
            return found
    logits = getattr(act, "logits", None)
    if not callable(logits):
        return None

    def from_logits(observation: Any) -> Floats:
        given = logits(np.asarray(observation)[None])
        if hasattr(given, "detach"):
            given = given.detach().cpu()
        scores = np.asarray(given, dtype=np.float64).reshape(-1)
        chances = np.exp(scores - scores.max())
        return np.asarray(chances / chances.sum(), dtype=np.float64)

    return from_logits


def _reseed(seed: int) -> None:
    import sys

    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002 - the policies probed use the global generator
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _action(
    act: Callable[[Any], Any], observation: Any, seed_all: Callable[[int], None], *, seed: int
) -> int:
    seed_all(seed)
    answer = act(observation)
    if hasattr(answer, "detach"):
        answer = answer.detach().cpu()
    value = np.asarray(answer)
    if value.size != 1 or not np.issubdtype(value.dtype, np.number):
        raise UsageError(
            f"`act` returned {type(answer).__name__} of shape {value.shape}; return one discrete action."
        )
    if float(value.reshape(-1)[0]) != int(value.reshape(-1)[0]):
        raise UsageError(f"`act` returned {value.reshape(-1)[0]}; return the number of a discrete action.")
    return int(value.reshape(-1)[0])


def _probabilities(distribution: Callable[[Any], Any], observation: Any) -> Floats:
    given = distribution(observation)
    if hasattr(given, "detach"):
        given = given.detach().cpu()
    chances = np.asarray(given, dtype=np.float64).reshape(-1)
    if chances.size == 0 or (chances < 0).any() or not math.isclose(float(chances.sum()), 1.0, abs_tol=1e-3):
        raise UsageError(f"`distribution` returned {chances[:4]}...; return probabilities that sum to 1.")
    return np.asarray(chances / chances.sum(), dtype=np.float64)


def _is_greedy(row: list[int], chances: Floats) -> bool:
    best = np.flatnonzero(chances >= chances.max() - 1e-9)
    return all(answer in best for answer in row)


def _fit(answers: list[list[int]], probabilities: list[Floats]) -> float:
    """The p-value of a chi-square test over all observations; cells that expect under five are pooled."""
    from scipy.stats import chi2

    statistic, freedom = 0.0, 0
    for row, chances in zip(answers, probabilities, strict=True):
        if any(answer < 0 or answer >= chances.size or chances[answer] == 0 for answer in row):
            return 0.0
        counts = np.bincount(row, minlength=chances.size).astype(np.float64)
        expected = chances * len(row)
        small = expected < 5
        pooled_counts = np.append(counts[~small], counts[small].sum())
        pooled_expected = np.append(expected[~small], expected[small].sum())
        keep = pooled_expected > 1e-9
        if keep.sum() > 1:
            part = (pooled_counts[keep] - pooled_expected[keep]) ** 2 / pooled_expected[keep]
            statistic += float(part.sum())
            freedom += int(keep.sum()) - 1
    return float(chi2.sf(statistic, freedom)) if freedom else 1.0


def _rule(n_changing: int, n_greedy: int | None, p_value: float | None, n: int, error_rate: float) -> str:
    if n_changing == 0:
        if n_greedy is None:
            return "deterministic"
        return "argmax" if n_greedy == n else "deterministic"
    if n_greedy is None or p_value is None:
        return "sampled"
    if p_value >= error_rate:
        return "sampled"
    return "mixed"
