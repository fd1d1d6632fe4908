"""Two agents on the same levels: the difference for new runs on new levels, and what would settle it.

The levels are shared, so what makes a level easy or hard for both agents cancels; the runs are not, so each agent
brings its own run-to-run variance. Both hold the residual of a run on a level once too often, and it is taken out
once: V = V_run(a) + V_run(b) + V_level - V_residual(a) - V_residual(b), with Satterthwaite's df.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gapfloor.statistics.clustered import level_matrix
from gapfloor.statistics.conventions import ALPHA, CONFIDENCE, GENERATOR, NAN, NO_PAIR, Floats, Ints, Pair
from gapfloor.statistics.detectable import POWER, power_of_t
from gapfloor.statistics.power import MAX_RUNS, smallest_reaching
from gapfloor.statistics.welch import t_interval, two_sided_p

#: Runs of an agent: each its episode returns and level seeds.
Runs = Sequence[tuple[Floats, Ints]]
#: Beyond so many times the levels of now, levels are called out of reach.
_MOST_TIMES = 10_000


@dataclass(frozen=True)
class CrossedDifference:
    """Agent a minus agent b, paired by level."""

    estimate: float
    se: float
    """For new runs on new levels; NaN unless both agents have two runs."""
    df: float
    p: float
    interval: Pair
    se_levels: float
    """For these runs on new levels: what a comparison of single checkpoints can claim."""
    df_levels: float
    p_levels: float
    interval_levels: Pair
    v_run_a: float
    v_run_b: float
    v_level: float
    v_residual_a: float
    v_residual_b: float
    n_a: int
    n_b: int
    n_levels: int
    estimand: str = GENERATOR


@dataclass(frozen=True)
class _Part:
    """One level set: both agents' returns on the levels that every run has played."""

    a: Floats
    b: Floats
    weights: Floats
    sign: float


def crossed_difference(
    sets: Sequence[tuple[float, Runs, Runs]], *, confidence: float = CONFIDENCE
) -> CrossedDifference | None:
    """The difference over level sets: `[(1, a, b)]` for a return, `[(1, ...train), (-1, ...test)]` for a gap.

    Runs keep their order from set to set. None where fewer than two levels were played by every run.
    """
    parts = []
    for sign, runs_a, runs_b in sets:
        matrix = level_matrix([*runs_a, *runs_b])
        if matrix is None:
            return None
        split = len(runs_a)
        parts.append(_Part(matrix.values[:split], matrix.values[split:], matrix.weights, sign))
    by_run_a = np.sum([part.sign * (part.a @ part.weights) for part in parts], axis=0)
    by_run_b = np.sum([part.sign * (part.b @ part.weights) for part in parts], axis=0)
    n_a, n_b = len(by_run_a), len(by_run_b)
    estimate = float(np.mean(by_run_a) - np.mean(by_run_b))
    levels = [_level_variance(part) for part in parts]
    v_level = sum(value for value, _ in levels)
    df_levels = _satterthwaite([(value, size - 1) for value, size in levels])
    se_levels = math.sqrt(v_level)
    residuals = [(_residual_variance(p.a, p.weights), _residual_variance(p.b, p.weights)) for p in parts]
    v_a, v_b = (
        float(np.var(runs, ddof=1) / len(runs)) if len(runs) > 1 else NAN for runs in (by_run_a, by_run_b)
    )
    res_a, res_b = (float(sum(pair[side] for pair in residuals)) for side in (0, 1))
    # Taking the residual out may not leave less than either source alone.
    variance = max(v_a + v_b + v_level - res_a - res_b, v_a + v_b, v_level)
    sources: list[tuple[float, float]] = [(v_a, n_a - 1), (v_b, n_b - 1)]
    for (value, size), (left, right) in zip(levels, residuals, strict=True):
        sources += [(value, size - 1), (left, (n_a - 1) * (size - 1)), (right, (n_b - 1) * (size - 1))]
    known = not math.isnan(v_a + v_b)
    se, df = (math.sqrt(variance), _satterthwaite(sources, total=variance)) if known else (NAN, NAN)
    return CrossedDifference(
        estimate=estimate,
        se=se,
        df=df,
        p=_p(estimate, se, df),
        interval=t_interval(estimate, se, df, confidence=confidence) if known else NO_PAIR,
        se_levels=se_levels,
        df_levels=df_levels,
        p_levels=_p(estimate, se_levels, df_levels),
        interval_levels=t_interval(estimate, se_levels, df_levels, confidence=confidence),
        v_run_a=v_a,
        v_run_b=v_b,
        v_level=v_level,
        v_residual_a=res_a,
        v_residual_b=res_b,
        n_a=n_a,
        n_b=n_b,
        n_levels=sum(part.weights.size for part in parts),
    )


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

    def power_at(n: int) -> float:
        first, second = sd_a**2 / n, sd_b**2 / n
        if first + second == 0:
            return 1.0
        df = (first + second) ** 2 * (n - 1) / (first**2 + second**2)
        return power_of_t(difference, se=math.sqrt(first + second), df=df, alpha=alpha / family_size)

    return smallest_reaching(power_at, power, MAX_RUNS)


def levels_to_settle(
    found: CrossedDifference,
    difference: float,
    *,
    family_size: int,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """Levels with which these runs settle `difference` for the generator; None if the runs alone forbid it.

    With one run an agent the claim is about these runs; then only the levels' variance counts.
    """
    if not difference:
        return None
    crossed = not math.isnan(found.se)
    run = 0.0
    if crossed:
        # What is left of the runs' variance on infinitely many levels.
        run = max(found.v_run_a - found.v_residual_a, 0.0) + max(found.v_run_b - found.v_residual_b, 0.0)
    total = found.se**2 if crossed else found.v_level
    level = max(total - run, 0.0)

    def power_at(times: int) -> float:
        share = level / (times / 10)
        variance = run + share
        if variance == 0:
            return 1.0
        sources = [(share, found.df_levels * times / 10)]
        if crossed:
            each = [max(v - r, 0.0) for v, r in _runs(found)]
            sources += [(each[0], found.n_a - 1), (each[1], found.n_b - 1)]
        df = _satterthwaite(sources)
        return power_of_t(difference, se=math.sqrt(variance), df=df, alpha=alpha / family_size)

    # In tenths of the levels of now, so that fewer than now can be found too.
    tenths = smallest_reaching(power_at, power, 10 * _MOST_TIMES)
    return None if tenths is None else math.ceil(tenths * found.n_levels / 10)


def _runs(found: CrossedDifference) -> tuple[tuple[float, float], tuple[float, float]]:
    return (found.v_run_a, found.v_residual_a), (found.v_run_b, found.v_residual_b)


def _level_variance(part: _Part) -> tuple[float, float]:
    """V_level of the difference on one level set, and the effective number of its levels."""
    difference = part.a.mean(axis=0) - part.b.mean(axis=0)
    squares = float(np.sum(part.weights**2))
    centred = difference - difference @ part.weights
    return float(np.sum(part.weights**2 * centred**2) / (1 - squares)), 1 / squares


def _residual_variance(values: Floats, weights: Floats) -> float:
    """What one agent's residuals (run on level) add to the variance of its mean; 0 for a single run."""
    n = len(values)
    if n < 2:
        return 0.0
    by_level, by_run = values.mean(axis=0), values @ weights
    residual = values - by_run[:, None] - by_level[None, :] + by_level @ weights
    squares = float(np.sum(weights**2))
    return float(np.sum(weights**2 * residual**2) / (1 - squares) / (n * (n - 1)))


def _satterthwaite(sources: Sequence[tuple[float, float]], *, total: float | None = None) -> float:
    """Degrees of freedom of a sum of variances, each with its own."""
    below = sum(value**2 / df for value, df in sources if value > 0 and df > 0)
    above = sum(value for value, _ in sources) if total is None else total
    return float(above**2 / below) if below > 0 else float(min(df for _, df in sources))


def _p(estimate: float, se: float, df: float) -> float:
    if math.isnan(se):
        return NAN
    t = estimate / se if se > 0 else (float(np.inf * estimate) if estimate else 0.0)
    return float(two_sided_p(t, df))
