"""Runs and floor episodes that a call against the floor needs.

The power is that of Holm's first, hardest step (alpha / family size), so it is reached whatever the other games do. The
paper's test is Welch's, whose power comes from the noncentral t. The error of the recommended test is a sum of parts
with their own degrees of freedom: given the estimated parts the estimate is normal, and the probability of a call is
averaged over quantiles of the parts' chi-square distributions, so nothing is drawn. A call below the floor is planned
with the runs' degrees of freedom for the whole error, because its limit is that far out unless skewed run values can
be ruled out (`skewed_limits`).

References:
    Lenth, R. V. (2001). Some practical guidelines for effective sample size determination. The American
        Statistician 55, 187-193 (power from the noncentral t).
    Banerjee, S. K. (1960); see `components`.
    Phillips, K. F. (1990). Power of the two one-sided tests procedure in bioequivalence. Journal of Pharmacokinetics
        and Biopharmaceutics 18, 137-144.
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
        65-70.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import ALPHA, Floats
from gapfloor.statistics.detectable import POWER, power_of_t
from gapfloor.statistics.reference_calls import LEAST_RUNS
from gapfloor.statistics.satterthwaite import satterthwaite

#: Whose call is planned.
Method = Literal["paper", "recommended"]

#: A design that needs more than these is called out of reach.
MAX_RUNS = 1000
MAX_EPISODES = 10_000_000
#: Never advise a smaller floor: the mean of a few episodes of random play is far from normal.
LEAST_FLOOR = 32
#: How many floor episodes a design may add to save one run.
EPISODES_PER_RUN = 1000
#: Parts of the variance with more degrees of freedom than this are taken as known.
_KNOWN_FROM = 150
_QUANTILES = 48


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
    0.8
    """
    variances, dfs = variance_parts(effect, n_runs=n_runs, n_floor=n_floor)
    level = alpha / family_size
    if not variances.sum() > 0:
        return 1.0 if effect.delta else 0.0
    if method == "paper":
        df = float(satterthwaite(tuple(variances), tuple(dfs)))
        return power_of_t(effect.delta, se=math.sqrt(variances.sum()), df=df, alpha=level)
    sd, half = _half_widths(variances, dfs, level, with_smallest_df=effect.delta < 0)
    called = special.ndtr((effect.delta - half) / sd) + special.ndtr((-effect.delta - half) / sd)
    return float(called.mean())


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
    15
    """

    def power_at(n_runs: int) -> float:
        return comparison_power(
            effect, n_runs=n_runs, n_floor=n_floor, method=method, family_size=family_size, alpha=alpha
        )

    return smallest_reaching(power_at, power, MAX_RUNS)


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
    return smallest_reaching(power_at, power, MAX_EPISODES)


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
    (15, 239)
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
        n_floor = max(found, LEAST_FLOOR)
        size = n_runs + n_floor / EPISODES_PER_RUN
        if size < smallest:
            reached = comparison_power(
                effect, n_runs=n_runs, n_floor=n_floor, method=method, family_size=family_size, alpha=alpha
            )
            best, smallest = StudyDesign(n_runs, n_floor, reached), size
    return best


def equivalence_power(
    effect: Effect,
    *,
    n_runs: int | None,
    n_floor: int,
    margin: float,
    family_size: int = 1,
    alpha: float = ALPHA,
) -> float:
    """Power of the recommended equivalence test (TOST) at the true `effect.delta`.

    Args:
        effect: the true difference (0 where equivalence holds) and the standard deviations.
        n_runs: None takes the runs' mean as known, which is the best that any number of runs can do.
        n_floor: floor episodes.
        margin: of equivalence.
        family_size: Bonferroni's divisor, for the family-wise version.
        alpha: of each one-sided test.
    """
    if not margin > 0:
        raise UsageError(f"`margin` must be positive, but is {margin}.")
    variances, dfs = variance_parts(effect, n_runs=n_runs or 2, n_floor=n_floor)
    if n_runs is None:
        variances, dfs = variances[1:], dfs[1:]
    # A one-sided test at alpha uses the quantile of a two-sided one at twice alpha.
    sd, half = _half_widths(variances, dfs, 2 * alpha / family_size)
    if sd == 0:
        return float(abs(effect.delta) < margin)
    room = margin - half
    passed = special.ndtr((room - effect.delta) / sd) - special.ndtr((-room - effect.delta) / sd)
    return float(np.mean(np.where(room > 0, passed, 0.0)))


def floor_episodes_for_equivalence(
    effect: Effect,
    *,
    n_runs: int | None,
    margin: float,
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """The fewest floor episodes with which runs that equal the floor are called equivalent with this power.

    None where the runs alone forbid it: then more runs are needed, whatever the floor.

    >>> heist = Effect(delta=0.0, run_sd=0.0, floor_sd=0.24 * 384**0.5)
    >>> floor_episodes_for_equivalence(heist, n_runs=None, margin=0.315)
    1911
    """

    def power_at(n_floor: int) -> float:
        return equivalence_power(
            effect, n_runs=n_runs, n_floor=n_floor, margin=margin, family_size=family_size, alpha=alpha
        )

    return smallest_reaching(power_at, power, MAX_EPISODES)


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


def _half_widths(
    variances: Floats, dfs: Floats, alpha: float, *, with_smallest_df: bool = False
) -> tuple[float, Floats]:
    """The true standard deviation, and equally likely half-widths of Banerjee's interval at 1 - alpha."""
    quantiles = special.stdtrit(np.full(dfs.shape, dfs.min()) if with_smallest_df else dfs, alpha / 2)
    squares: Floats = np.zeros(1)
    for part, df in zip(variances * quantiles**2, dfs, strict=True):
        ratios = _chi_square_ratios(float(df)) if df <= _KNOWN_FROM else np.ones(1)
        # Every combination of quantiles: the parts are independent.
        squares = (squares[:, None] + part * ratios).ravel()
    return math.sqrt(variances.sum()), np.sqrt(squares)


@lru_cache(maxsize=1024)
def _chi_square_ratios(df: float) -> npt.NDArray[np.float64]:
    """Midpoint quantiles of chi-square over its df: equally likely values of an estimated over the true variance."""
    middle = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.asarray(special.chdtri(df, 1 - middle) / df)
