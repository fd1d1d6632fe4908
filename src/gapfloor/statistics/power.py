"""Runs and floor episodes that a call against the floor needs, and what a comparison could have found.

The power is that of Holm's first, hardest step (alpha / family size), so it is reached whatever the other games do. The
paper's test is Welch's, whose power comes from the noncentral t. For the recommended test the limit of the difference
is that of `behrens_fisher`, read from a table by the runs' share of the variance; given the estimated variance between
runs the estimate is normal, and the probability of a call is averaged over quantiles of chi-square. The shape of normal
samples is independent of their mean and variance (Basu), so the probability that it allows a call is a factor, which is
counted in simulated samples. Skewed runs are simulated as a whole.

References:
    Lenth, R. V. (2001). Some practical guidelines for effective sample size determination. The American
        Statistician 55, 187-193 (power from the noncentral t).
    Basu, D. (1955). On statistics independent of a complete sufficient statistic. Sankhya 15, 377-380.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.behrens_fisher import FloorMean, RunsMean, planned_floor, tail_p
from gapfloor.statistics.conventions import ALPHA, NAN, NO_PAIR, Floats, Method
from gapfloor.statistics.reference_calls import LEAST_FLOOR, LEAST_RUNS
from gapfloor.statistics.run_shape import are_in_doubt
from gapfloor.statistics.welch import satterthwaite

POWER = 0.8

#: A design that needs more than these is called out of reach.
MAX_RUNS = 1000
MAX_EPISODES = 10_000_000
#: How many floor episodes a design may add to save one run.
EPISODES_PER_RUN = 1000
_QUANTILES = 48
#: Simulated comparisons behind a probability.
_SIMULATED = 4000


@dataclass(frozen=True)
class StudyDesign:
    """A number of runs and of floor episodes, with the power that they have."""

    n_runs: int
    n_floor: int
    power: float


@dataclass(frozen=True)
class PlannedComparison:
    """A comparison with the floor: the expected truth behind it, and whose test is to call it.

    >>> bigfish = PlannedComparison(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5, family_size=8)
    >>> round(bigfish.power(15, 384), 2)
    0.78
    """

    delta: float
    run_sd: float
    """Standard deviation between run values."""
    floor_sd: float
    """Standard deviation between floor episodes."""
    method: Method = "recommended"
    family_size: int = 1
    alpha: float = ALPHA
    """Of the family; each number here is for Holm's first, hardest step."""

    def power(self, n_runs: int, n_floor: int) -> float:
        """The probability of a call in the direction of `delta`."""
        _check_sizes(n_runs, n_floor)
        variances = self.run_sd**2 / n_runs, self.floor_sd**2 / n_floor
        level, error = self.alpha / self.family_size, math.sqrt(sum(variances))
        if not error:
            return 1.0 if self.delta else 0.0
        if self.method == "paper":
            df = float(satterthwaite(variances, (n_runs - 1, n_floor - 1)))
            return power_of_t(self.delta, se=error, df=df, alpha=level)
        if n_runs < LEAST_RUNS or n_floor < LEAST_FLOOR:
            return 0.0
        half = _half_widths(self, n_runs, n_floor, level)
        called = special.ndtr((abs(self.delta) - half) / error).mean()
        return float(called) * _kept(n_runs, self.family_size, 1 if self.delta > 0 else -1)

    def skewed_power(self, n_runs: int, n_floor: int) -> float:
        """Power of the recommended test if the runs of all games are exponential, with the long tail to the right.

        Simulated with fixed random numbers.
        """
        _check_sizes(n_runs, n_floor)
        if n_runs < LEAST_RUNS or n_floor < LEAST_FLOOR:
            return 0.0
        rng = np.random.default_rng(0)
        size = (max(_SIMULATED // self.family_size, 1), self.family_size, n_runs)
        values = rng.exponential(size=size) - 1
        noise = rng.standard_normal(size[:2]) * self.floor_sd / math.sqrt(n_floor)
        sign = 1 if self.delta > 0 else -1
        error = self.run_sd * values.std(axis=-1, ddof=1) / math.sqrt(n_runs)
        mean = sign * (self.delta + self.run_sd * values.mean(axis=-1) + noise)
        p = 2 * tail_p(
            RunsMean(mean, error, n_runs - 1, n_runs, NO_PAIR), planned_floor(self.floor_sd, n_floor), sign=1
        )
        doubts = are_in_doubt(values)[0 if sign > 0 else 1]
        return float(np.mean((p < self.alpha / self.family_size) & ~doubts))

    def required_floor_episodes(self, n_runs: int, power: float = POWER) -> int | None:
        """The fewest floor episodes that reach `power` with these runs; None if the runs alone forbid it."""
        if self.power(n_runs, MAX_EPISODES) < power:
            return None
        return smallest_reaching(lambda n: self.power(n_runs, n), power, MAX_EPISODES, least=LEAST_FLOOR)

    def smallest_design(self, power: float = POWER) -> StudyDesign | None:
        """Runs and floor episodes that reach `power` together; None if none up to the limits do.

        No number of runs makes up for a floor that is not known well enough, and the other way round, so both are
        searched together. Of all designs it is the one with the fewest runs plus floor episodes / EPISODES_PER_RUN.
        """
        best: StudyDesign | None = None
        n_runs, smallest = LEAST_RUNS, math.inf
        while n_runs <= MAX_RUNS and n_runs < smallest:
            n_floor = self.required_floor_episodes(n_runs, power)
            if n_floor and n_runs + n_floor / EPISODES_PER_RUN < smallest:
                smallest = n_runs + n_floor / EPISODES_PER_RUN
                best = StudyDesign(n_runs, n_floor, self.power(n_runs, n_floor))
            n_runs += max(1, n_runs // 20 if n_runs >= 40 else 1)
        return best

    def smallest_delta(self, n_runs: int, n_floor: int, power: float = POWER) -> float:
        """The smallest difference above the floor that is called with this power; NaN where none is.

        >>> seen = PlannedComparison(0.0, run_sd=1.0, floor_sd=4.0, family_size=8)
        >>> round(seen.smallest_delta(6, 384), 2)
        2.5
        """
        if not (0 < self.run_sd < math.inf and 0 <= self.floor_sd < math.inf):
            return NAN
        scale = math.hypot(self.run_sd / math.sqrt(n_runs), self.floor_sd / math.sqrt(n_floor))
        return scale * _smallest_size(
            lambda size: replace(self, delta=size * scale).power(n_runs, n_floor), power, high=4.0
        )


def smallest_reaching(
    power_at: Callable[[int], float], power: float, most: int, *, least: int = 2
) -> int | None:
    """The smallest n >= `least` that reaches `power`, by doubling and bisection (power rises with n)."""
    if not 0 < power < 1:
        raise UsageError(f"The power must lie between 0 and 1, but is {power}.")
    low, high = least - 1, least
    while power_at(high) < power:
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power_at(middle) >= power else (middle, high)
    return high


def power_of_t(effect: float, *, se: float, df: float, alpha: float) -> float:
    """Power of a two-sided t-test for a true `effect` (noncentral t).

    >>> round(power_of_t(0.0, se=1.0, df=10, alpha=0.05), 3)
    0.05
    """
    shift, critical = abs(effect) / se, float(special.stdtrit(df, 1 - alpha / 2))
    if shift > 35:
        # Beyond this the noncentral t loses its digits; a normal with the same shift is exact enough.
        return float(special.ndtr(shift - critical))
    upper, lower = (float(special.nctdtr(df, shift, end)) for end in (critical, -critical))
    return 1 - upper + (lower if lower > 0 else 0.0)  # it is NaN where it is too small to matter


def runs_to_settle(
    sd_a: float,
    sd_b: float,
    difference: float,
    *,
    family_size: int,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """Runs of each agent with which Welch's test finds `difference` on these levels; None if out of reach.

    The level of the test is that of Holm's first, hardest step.
    """
    if not (difference and math.isfinite(sd_a + sd_b)):
        return None
    planned = PlannedComparison(difference, sd_a, sd_b, "paper", family_size, alpha)
    return smallest_reaching(lambda n: planned.power(n, n), power, MAX_RUNS)


def minimum_detectable_effect(
    *, se: float, df: float, alpha: float = ALPHA, family_size: int = 1, power: float = POWER
) -> float:
    """The smallest |effect| that a t-test finds with this power at Holm's first, hardest step (alpha / family size)."""
    level = alpha / max(1, family_size)
    critical = float(special.stdtrit(df, 1 - level / 2))
    if not (0 < se < math.inf and 0 < df < math.inf and critical < math.inf):
        return NAN
    return se * _smallest_size(
        lambda size: power_of_t(size, se=1.0, df=df, alpha=level), power, high=critical + 3
    )


def _check_sizes(n_runs: int, n_floor: int) -> None:
    if n_runs < 2 or n_floor < 2:
        raise UsageError(
            f"A comparison needs at least 2 runs and 2 floor episodes, not {n_runs} and {n_floor}."
        )


def _smallest_size(power_at: Callable[[float], float], power: float, *, high: float) -> float:
    """The size of an effect, in standard errors, that is found with this power; NaN where none is."""
    from scipy import optimize  # a sixth of what a command imports, and few need it

    while power_at(high) < power:
        high *= 2
        if not high < 1e9:
            return NAN
    return float(optimize.brentq(lambda size: power_at(size) - power, 1e-9, high, xtol=1e-6))


def _half_widths(planned: PlannedComparison, n_runs: int, n_floor: int, alpha: float) -> Floats:
    """Equally likely distances of a limit of the difference from the estimate, at two-sided 1 - alpha."""
    floor = planned_floor(planned.floor_sd, n_floor)
    # Midpoint quantiles of chi-square over its df: equally likely values of an estimated over the true variance.
    middle = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    runs = planned.run_sd**2 / n_runs * (special.chdtri(n_runs - 1, 1 - middle) / (n_runs - 1))
    total = runs + float(floor.sd) ** 2
    # Beyond some hundred episodes the floor's degrees of freedom make no difference.
    shares, factors = _critical(n_runs, min(n_floor - 1, 400), alpha)
    return np.asarray(float(floor.mean) + np.sqrt(total) * np.interp(np.sqrt(runs / total), shares, factors))


@lru_cache(maxsize=4096)
def _critical(n_runs: int, floor_df: int, alpha: float) -> tuple[Floats, Floats]:
    """By the root of the runs' share of the variance: the limit's distance, in standard errors of the difference."""
    shares = np.sin(np.linspace(0.0, np.pi / 2, 17))
    floor = FloorMean(np.zeros(17), np.sqrt(1 - shares**2), np.zeros(17), floor_df)
    low, high = np.zeros(17), np.full(17, -2 * float(special.stdtrit(n_runs - 1, alpha / 2)))
    for _ in range(32):
        middle = (low + high) / 2
        found = tail_p(RunsMean(middle, shares, n_runs - 1, n_runs, NO_PAIR), floor, sign=1) > alpha / 2
        low, high = np.where(found, middle, low), np.where(found, high, middle)
    return shares, high


@lru_cache(maxsize=1024)
def _kept(n_runs: int, family_size: int, sign: int) -> float:
    """How often the shape of normal runs allows a call above (1) or below (-1)."""
    size = (max(_SIMULATED // family_size, 1), family_size, n_runs)
    above, below = are_in_doubt(np.random.default_rng(0).standard_normal(size))
    return 1 - float(np.mean(above if sign > 0 else below))
