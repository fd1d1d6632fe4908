"""How many runs, floor episodes or levels a call needs.

The formula takes the noncentral t at Holm's first, hardest step (alpha / family size), so that the power is
reached whatever the other games do; `simulate_family` simulates the whole family with Holm's later,
easier steps, as a check.

References:
    Lenth, R. V. (2001). Some practical guidelines for effective sample size determination. The American
    Statistician, 55(3), 187-193 (power from the noncentral t).
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics,
    6(2), 65-70.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import ALPHA, Floats
from gapfloor.statistics.detectable import POWER, power_of_t
from gapfloor.statistics.families import holm
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import welch

#: A design that needs more than these is called out of reach.
MAX_RUNS = 1000
MAX_EPISODES = 10_000_000
MAX_LEVELS = 10_000_000


@dataclass(frozen=True)
class Effect:
    """The expected truth behind a comparison: delta and the standard deviations."""

    delta: float
    run_sd: float
    """Between run values."""
    floor_sd: float
    """Between floor episodes."""
    level_sd: float = 0.0
    """Between levels, for claims about the generator."""
    residual_sd: float = 0.0
    """Of a run on a level, beyond the effects of both."""


def floor_power(
    effect: Effect, *, n_runs: int, n_floor: int, family_size: int = 1, alpha: float = ALPHA
) -> float:
    """Power of the floor comparison (Welch) at Holm's hardest step."""
    if n_runs < 2 or n_floor < 2:
        raise UsageError(
            f"A comparison needs at least 2 runs and 2 floor episodes, not {n_runs} and {n_floor}."
        )
    run, floor = effect.run_sd**2 / n_runs, effect.floor_sd**2 / n_floor
    if run + floor == 0:
        return 1.0 if effect.delta else 0.0
    df = float(satterthwaite((run, floor), (n_runs - 1, n_floor - 1)))
    return power_of_t(effect.delta, se=math.sqrt(run + floor), df=df, alpha=alpha / family_size)


def generator_power(
    effect: Effect, *, n_runs: int, n_levels: int, family_size: int = 1, alpha: float = ALPHA
) -> float:
    """Power of the crossed comparison: new runs on new levels."""
    run = effect.run_sd**2 / n_runs
    level = effect.level_sd**2 / n_levels
    residual = effect.residual_sd**2 / (n_runs * n_levels)
    variance = run + level + residual
    if variance == 0:
        return 1.0 if effect.delta else 0.0
    parts = (run + residual, level + residual, residual)
    dfs = (n_runs - 1, n_levels - 1, (n_runs - 1) * (n_levels - 1))
    df = float(satterthwaite(parts, dfs, total=variance))
    return power_of_t(effect.delta, se=math.sqrt(variance), df=df, alpha=alpha / family_size)


def required_runs(
    effect: Effect, *, n_floor: int, family_size: int = 1, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """The fewest runs that reach `power`; None if no number does.

    >>> bigfish = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
    >>> required_runs(bigfish, n_floor=384, family_size=8)
    15
    """
    return smallest_reaching(
        lambda n: floor_power(effect, n_runs=n, n_floor=n_floor, family_size=family_size, alpha=alpha),
        power,
        MAX_RUNS,
    )


def required_floor_episodes(
    effect: Effect, *, n_runs: int, family_size: int = 1, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """The fewest floor episodes that reach `power` with these runs; None if the runs alone forbid it."""
    return smallest_reaching(
        lambda n: floor_power(effect, n_runs=n_runs, n_floor=n, family_size=family_size, alpha=alpha),
        power,
        MAX_EPISODES,
    )


def required_levels(
    effect: Effect, *, n_runs: int, family_size: int = 1, alpha: float = ALPHA, power: float = POWER
) -> int | None:
    """The fewest levels that reach `power` for the generator; None if the runs alone forbid it."""
    return smallest_reaching(
        lambda n: generator_power(effect, n_runs=n_runs, n_levels=n, family_size=family_size, alpha=alpha),
        power,
        MAX_LEVELS,
    )


def smallest_reaching(power_at: Callable[[int], float], power: float, most: int) -> int | None:
    """The smallest n >= 2 that reaches `power`, by doubling and bisection (power rises with n)."""
    if not 0 < power < 1:
        raise UsageError(f"The power must lie between 0 and 1, but is {power}.")
    high = 2
    while power_at(high) < power:
        if high >= most:
            return None
        high = min(2 * high, most)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(middle) >= power else (middle, high)
    return high


@dataclass(frozen=True)
class FamilyPower:
    """How often each game of a family was called, after Holm, with the Monte Carlo error."""

    rejected: tuple[float, ...]
    any_rejected: float
    error: float
    """Largest Monte Carlo standard error of the rates."""
    n_simulations: int


def simulate_family(
    effects: Sequence[Effect],
    *,
    n_runs: Sequence[int],
    n_floor: int,
    rng: np.random.Generator,
    alpha: float = ALPHA,
    n_simulations: int = 2000,
) -> FamilyPower:
    """Simulate a whole family: normal run values and floor means, Welch, Holm.

    With all deltas 0 the rate of any rejection is the family-wise error.
    """
    p = np.empty((n_simulations, len(effects)))
    for i, (effect, n) in enumerate(zip(effects, n_runs, strict=True)):
        runs = _mean_and_variance(effect.delta, effect.run_sd, n, n_simulations, rng)
        floor = _mean_and_variance(0.0, effect.floor_sd, n_floor, n_simulations, rng)
        p[:, i] = welch(runs[0], runs[1], n, floor[0], floor[1], n_floor).p
    return family_power(np.array([holm(row) < alpha for row in p]))


def family_power(rejected: npt.NDArray[np.bool_]) -> FamilyPower:
    """The rates of simulated families: one row per family, one column per game."""
    rates = rejected.mean(axis=0)
    overall = float(rejected.any(axis=1).mean())
    worst = max(max(rate * (1 - rate) for rate in rates), overall * (1 - overall))
    n = rejected.shape[0]
    return FamilyPower(tuple(float(rate) for rate in rates), overall, math.sqrt(worst / n), n)


def _mean_and_variance(
    mean: float, sd: float, n: int, size: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Sample means and variances of normal samples, which are independent of each other."""
    means = mean + sd / math.sqrt(n) * rng.standard_normal(size)
    return means, sd**2 * rng.chisquare(n - 1, size) / (n - 1)
