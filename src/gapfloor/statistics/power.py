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
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
        65-70.
    Basu, D. (1955). On statistics independent of a complete sufficient statistic. Sankhya 15, 377-380.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.behrens_fisher import FloorMean, RunsMean, planned_floor, tail_p
from gapfloor.statistics.conventions import ALPHA, NAN, NO_PAIR, Floats, Method
from gapfloor.statistics.reference_calls import LEAST_FLOOR, LEAST_RUNS
from gapfloor.statistics.run_shape import are_in_doubt
from gapfloor.statistics.satterthwaite import satterthwaite

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
class Effect:
    """The expected truth behind a comparison: delta and the standard deviations."""

    delta: float
    run_sd: float
    """Between run values."""
    floor_sd: float
    """Between floor episodes."""


@dataclass(frozen=True)
class StudyDesign:
    """A number of runs and of floor episodes, with the power that they have."""

    n_runs: int
    n_floor: int
    power: float


def comparison_power(
    effect: Effect,
    *,
    n_runs: int,
    n_floor: int,
    method: Method = "recommended",
    family_size: int = 1,
    alpha: float = ALPHA,
) -> float:
    """Power of the comparison with the floor, by the paper's or the recommended test, at Holm's hardest step.

    >>> bigfish = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
    >>> round(comparison_power(bigfish, n_runs=15, n_floor=384, family_size=8), 2)
    0.78
    """
    variances, dfs = variance_parts(effect, n_runs=n_runs, n_floor=n_floor)
    level = alpha / family_size
    if not variances.sum() > 0:
        return 1.0 if effect.delta else 0.0
    if method == "paper":
        df = float(satterthwaite(tuple(variances), tuple(dfs)))
        return power_of_t(effect.delta, se=math.sqrt(variances.sum()), df=df, alpha=level)
    if n_runs < LEAST_RUNS or n_floor < LEAST_FLOOR:
        return 0.0
    half = _half_widths(effect, n_runs, n_floor, level)
    called = special.ndtr((abs(effect.delta) - half) / math.sqrt(variances.sum())).mean()
    return float(called) * _kept(n_runs, family_size, 1 if effect.delta > 0 else -1)


def skewed_power(
    effect: Effect, *, n_runs: int, n_floor: int, family_size: int = 1, alpha: float = ALPHA
) -> float:
    """Power of the recommended test if the run values of all games are exponential, with the long tail to the right.

    Simulated with fixed random numbers.
    """
    variance_parts(effect, n_runs=n_runs, n_floor=n_floor)
    if n_runs < LEAST_RUNS or n_floor < LEAST_FLOOR:
        return 0.0
    rng = np.random.default_rng(0)
    values = rng.exponential(size=(max(_SIMULATED // family_size, 1), family_size, n_runs)) - 1
    noise = rng.standard_normal(values.shape[:2]) * effect.floor_sd / math.sqrt(n_floor)
    sign = 1 if effect.delta > 0 else -1
    error = effect.run_sd * values.std(axis=-1, ddof=1) / math.sqrt(n_runs)
    mean = sign * (effect.delta + effect.run_sd * values.mean(axis=-1) + noise)
    runs = RunsMean(mean, error, n_runs - 1, n_runs, NO_PAIR)
    called = 2 * tail_p(runs, planned_floor(effect.floor_sd, n_floor), sign=1) < alpha / family_size
    return float(np.mean(called & ~are_in_doubt(values)[0 if sign > 0 else 1]))


def required_runs(
    effect: Effect,
    *,
    n_floor: int,
    method: Method = "recommended",
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """The fewest runs that reach `power` with this floor; None if no number does.

    >>> bigfish = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
    >>> required_runs(bigfish, n_floor=384, family_size=8)
    16
    """

    def power_at(n_runs: int) -> float:
        return comparison_power(
            effect, n_runs=n_runs, n_floor=n_floor, method=method, family_size=family_size, alpha=alpha
        )

    return smallest_reaching(power_at, power, MAX_RUNS, least=LEAST_RUNS)


def required_floor_episodes(
    effect: Effect,
    *,
    n_runs: int,
    method: Method = "recommended",
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """The fewest floor episodes that reach `power` with these runs; None if the runs alone forbid it."""

    def power_at(n_floor: int) -> float:
        return comparison_power(
            effect, n_runs=n_runs, n_floor=n_floor, method=method, family_size=family_size, alpha=alpha
        )

    if power_at(MAX_EPISODES) < power:
        return None
    return smallest_reaching(power_at, power, MAX_EPISODES, least=LEAST_FLOOR)


def smallest_design(
    effect: Effect,
    *,
    method: Method = "recommended",
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
) -> StudyDesign | None:
    """Runs and floor episodes that reach `power` together; None if none up to the limits do.

    No number of runs makes up for a floor that is not known well enough, and the other way round, so both are searched
    together. Of all designs it is the one with the fewest runs plus floor episodes / EPISODES_PER_RUN.

    >>> bigfish = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
    >>> design = smallest_design(bigfish, family_size=8)
    >>> (design.n_runs, design.n_floor) if design else None
    (16, 109)
    """
    best: StudyDesign | None = None
    smallest = math.inf
    for n_runs in _run_counts():
        if n_runs >= smallest:
            break
        found = required_floor_episodes(
            effect, n_runs=n_runs, method=method, family_size=family_size, alpha=alpha, power=power
        )
        if found is None:
            continue
        n_floor = found
        size = n_runs + n_floor / EPISODES_PER_RUN
        if size < smallest:
            reached = comparison_power(
                effect, n_runs=n_runs, n_floor=n_floor, method=method, family_size=family_size, alpha=alpha
            )
            best, smallest = StudyDesign(n_runs, n_floor, reached), size
    return best


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


def variance_parts(effect: Effect, *, n_runs: int, n_floor: int) -> tuple[Floats, Floats]:
    """Variances and degrees of freedom of the two parts of delta: runs and floor."""
    if n_runs < 2 or n_floor < 2:
        raise UsageError(
            f"A comparison needs at least 2 runs and 2 floor episodes, not {n_runs} and {n_floor}."
        )
    variances = np.array([effect.run_sd**2 / n_runs, effect.floor_sd**2 / n_floor])
    return variances, np.array([n_runs - 1.0, n_floor - 1.0])


def _run_counts() -> Iterator[int]:
    """Every number of runs up to 40, then steps of a twentieth."""
    n = LEAST_RUNS
    while n <= MAX_RUNS:
        yield n
        n += max(1, n // 20 if n >= 40 else 1)


def _half_widths(effect: Effect, n_runs: int, n_floor: int, alpha: float) -> Floats:
    """Equally likely distances of a limit of the difference from the estimate, at two-sided 1 - alpha."""
    floor = planned_floor(effect.floor_sd, n_floor)
    runs = effect.run_sd**2 / n_runs * _chi_square_ratios(n_runs - 1)
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
def _chi_square_ratios(df: float) -> npt.NDArray[np.float64]:
    """Midpoint quantiles of chi-square over its df: equally likely values of an estimated over the true variance."""
    middle = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.asarray(special.chdtri(df, 1 - middle) / df)


@lru_cache(maxsize=1024)
def _kept(n_runs: int, family_size: int, sign: int) -> float:
    """How often the shape of normal runs allows a call above (1) or below (-1)."""
    size = (max(_SIMULATED // family_size, 1), family_size, n_runs)
    above, below = are_in_doubt(np.random.default_rng(0).standard_normal(size))
    return 1 - float(np.mean(above if sign > 0 else below))


def power_of_t(effect: float, *, se: float, df: float, alpha: float) -> float:
    """Power of a two-sided t-test for a true `effect` (noncentral t).

    >>> round(power_of_t(0.0, se=1.0, df=10, alpha=0.05), 3)
    0.05
    """
    return _power(effect / se, df=df, critical=float(special.stdtrit(df, 1 - alpha / 2)))


def _power(shift: float, *, df: float, critical: float) -> float:
    if abs(shift) > 35:
        # Beyond this the noncentral t loses its digits; a normal with the same shift is exact enough.
        return float(special.ndtr(abs(shift) - critical))
    upper, lower = _upper_tail(critical, df, shift), float(special.nctdtr(df, shift, -critical))
    return (0.0 if math.isnan(upper) else upper) + (0.0 if math.isnan(lower) else lower)


def _upper_tail(critical: float, df: float, shift: float) -> float:
    """`stats.nct.sf`, whose checks of arguments take fifty times as long as the number itself.

    Importing `scipy.stats` takes as long as the analysis of a small study.
    """
    tail = getattr(special._ufuncs, "_nct_sf", None)
    if tail is None:  # another version of scipy
        from scipy import stats

        tail = stats.nct._sf
    with np.errstate(over="ignore"):
        return min(max(float(tail(critical, df, shift)), 0.0), 1.0)


def smallest_detectable_difference(
    run_sd: float,
    floor_sd: float,
    *,
    n_runs: int,
    n_floor: int,
    method: Method = "recommended",
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
) -> float:
    """The smallest difference above the floor that the method calls with this power; NaN where none is.

    >>> round(smallest_detectable_difference(1.0, 4.0, n_runs=6, n_floor=384, family_size=8), 2)
    2.5
    """
    if not (0 < run_sd < math.inf and 0 <= floor_sd < math.inf):
        return NAN
    scale = math.hypot(run_sd / math.sqrt(n_runs), floor_sd / math.sqrt(n_floor))

    def power_at(size: float) -> float:
        return comparison_power(
            Effect(size * scale, run_sd, floor_sd),
            n_runs=n_runs, n_floor=n_floor, method=method, family_size=family_size, alpha=alpha,
        )  # fmt: skip

    return scale * _smallest_size(power_at, power, lowest=1e-9, high=4.0, most=1e4, xtol=1e-6)


def _smallest_size(
    power_at: Callable[[float], float], power: float, *, lowest: float, high: float, most: float, xtol: float
) -> float:
    """The size of an effect that is found with this power; NaN where none up to `most` is."""
    from scipy import optimize  # a sixth of what a command imports, and few need it

    while power_at(high) < power:
        high *= 2
        if not high < most:
            return NAN
    return float(optimize.brentq(lambda size: power_at(size) - power, lowest, high, xtol=xtol))


def minimum_detectable_effect(
    *, se: float, df: float, alpha: float = ALPHA, family_size: int = 1, power: float = POWER
) -> float:
    """The smallest |effect| found with this power at Holm's first, hardest step (alpha / family size)."""
    level = alpha / max(1, family_size)
    critical = float(special.stdtrit(df, 1 - level / 2))
    if not (0 < se < math.inf and 0 < df < math.inf and critical < math.inf):
        return NAN
    return _smallest_size(
        lambda effect: _power(effect / se, df=df, critical=critical),
        power, lowest=0.0, high=se * (critical + 3), most=1e9 * se, xtol=1e-6 * se,
    )  # fmt: skip


def equivalence_unreachable(*, margin: float, sem: float, n: int, alpha: float = ALPHA) -> bool:
    """Whether the SEM of the floor (or of the runs) alone forbids TOST, however well the other mean is known.

    >>> equivalence_unreachable(margin=0.315, sem=0.24, n=384)
    True
    >>> equivalence_unreachable(margin=0.25, sem=0.10, n=384)
    False
    """
    return bool(sem > 0 and margin / sem <= special.stdtrit(n - 1, 1 - alpha))
