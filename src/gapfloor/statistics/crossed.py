"""Two agents on the same levels: their difference for new runs on new levels, and what would settle it.

The levels are shared, so what makes a level easy or hard for both agents cancels; the runs are not, so each agent
brings its own run-to-run variance. Both contain the residual of a run on a level, so it is subtracted
once: V = V_run(a) + V_run(b) + V_level - V_residual(a) - V_residual(b), with Satterthwaite's df.

References:
    Cameron, A. C., Gelbach, J. B. & Miller, D. L. (2011). Robust inference with multiway clustering. Journal of
    Business & Economic Statistics, 29(2), 238-249.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.statistics.clustered import level_matrix
from gapfloor.statistics.conventions import ALPHA, CONFIDENCE, GENERATOR, NAN, Floats, Ints
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.power import MAX_RUNS, POWER, power_of_t, smallest_reaching
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import t_estimate

#: Runs of an agent: each its episode returns and level seeds.
Runs = Sequence[tuple[Floats, Ints]]
#: Beyond this multiple of the levels played so far, a difference is called out of reach.
_MOST_TIMES = 10_000


@dataclass(frozen=True)
class LevelPart:
    """What one level set adds to the variance of the difference."""

    v_level: float
    """Variance that the choice of levels adds to the difference."""
    v_residual_a: float
    """Variance of the first agent's runs on levels beyond both."""
    v_residual_b: float
    """The same for the second agent."""
    effective_levels: float
    """Levels, fewer where some were played more often than others."""


@dataclass(frozen=True)
class CrossedDifference:
    """Agent a minus agent b, paired by level."""

    new_runs: Estimate
    """For new runs on new levels; without an error unless both agents have two runs."""
    these_runs: Estimate
    """For these runs on new levels: what a comparison of single checkpoints can claim."""
    v_run_a: float
    """Variance that the first agent's runs add."""
    v_run_b: float
    """Variance that the second agent's runs add."""
    parts: tuple[LevelPart, ...]
    """What each level set adds to the variance."""
    n_a: int
    """Runs of the first."""
    n_b: int
    """Runs of the second."""
    n_levels: int
    """Distinct levels played."""


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
    found = []
    for sign, runs_a, runs_b in sets:
        matrix = level_matrix([*runs_a, *runs_b])
        if matrix is None:
            return None
        split = len(runs_a)
        found.append(_Part(matrix.values[:split], matrix.values[split:], matrix.weights, sign))
    by_run_a = np.sum([part.sign * (part.a @ part.weights) for part in found], axis=0)
    by_run_b = np.sum([part.sign * (part.b @ part.weights) for part in found], axis=0)
    n_a, n_b = len(by_run_a), len(by_run_b)
    v_a, v_b = (
        float(np.var(runs, ddof=1) / len(runs)) if len(runs) > 1 else NAN for runs in (by_run_a, by_run_b)
    )
    estimate = float(np.mean(by_run_a) - np.mean(by_run_b))
    parts = tuple(_level_part(part) for part in found)
    stated: dict[str, Any] = {"confidence": confidence, "estimand": GENERATOR, "method": "paired by level"}
    return CrossedDifference(
        new_runs=t_estimate(estimate, *_crossed_error(v_a, v_b, parts, n_a, n_b), **stated),
        these_runs=t_estimate(estimate, *_level_error(parts), **stated),
        v_run_a=v_a,
        v_run_b=v_b,
        parts=parts,
        n_a=n_a,
        n_b=n_b,
        n_levels=sum(part.weights.size for part in found),
    )


def _crossed_error(
    v_a: float, v_b: float, parts: Sequence[LevelPart], n_a: int, n_b: int
) -> tuple[float, float]:
    """Standard error and df for new runs on new levels; NaN where an agent has one run."""
    if math.isnan(v_a + v_b):
        return NAN, NAN
    v_level = sum(part.v_level for part in parts)
    residual = sum(part.v_residual_a + part.v_residual_b for part in parts)
    # Subtracting the residual may not leave less than either source alone.
    variance = max(v_a + v_b + v_level - residual, v_a + v_b, v_level)
    sources: list[tuple[float, float]] = [(v_a, n_a - 1), (v_b, n_b - 1)]
    for part in parts:
        df = part.effective_levels - 1
        sources += [
            (part.v_level, df),
            (part.v_residual_a, (n_a - 1) * df),
            (part.v_residual_b, (n_b - 1) * df),
        ]
    return math.sqrt(variance), _df(sources, total=variance)


def _level_error(parts: Sequence[LevelPart]) -> tuple[float, float]:
    """Standard error and df for these runs on new levels."""
    sources = [(part.v_level, part.effective_levels - 1) for part in parts]
    total = sum(value for value, _ in sources)
    return math.sqrt(total), _df(sources, total=total)


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
        df = float(satterthwaite((first, second), (n - 1, n - 1)))
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

    Never fewer than the levels already played. With one run per agent the claim is about these runs, and only the
    levels' variance counts. Every level is assumed to be played as often as now.
    """
    if not difference:
        return None

    def times(step: int) -> float:
        # The search begins at step 2, which stands for the levels played so far; each further step adds a tenth.
        return (step + 8) / 10

    def power_at(step: int) -> float:
        se, df = _error_on(found, times(step))
        if se == 0:
            return 1.0
        return power_of_t(difference, se=se, df=df, alpha=alpha / family_size)

    step = smallest_reaching(power_at, power, 10 * _MOST_TIMES)
    return None if step is None else math.ceil(times(step) * found.n_levels)


def _error_on(found: CrossedDifference, times: float) -> tuple[float, float]:
    """Standard error and df on `times` as many levels: what levels and residuals add is divided by it."""
    parts = [
        LevelPart(
            part.v_level / times,
            part.v_residual_a / times,
            part.v_residual_b / times,
            max(part.effective_levels * times, 2.0),
        )
        for part in found.parts
    ]
    if math.isnan(found.new_runs.se):
        return _level_error(parts)
    v_runs = []
    for v_run, now in (
        (found.v_run_a, sum(part.v_residual_a for part in found.parts)),
        (found.v_run_b, sum(part.v_residual_b for part in found.parts)),
    ):
        # More levels do not reduce a run's own part; it is 0 where the residual alone explains the runs' spread.
        stays = max(v_run - now, 0.0)
        v_runs.append(stays + (v_run - stays) / times)
    return _crossed_error(v_runs[0], v_runs[1], parts, found.n_a, found.n_b)


def _level_part(part: _Part) -> LevelPart:
    difference = part.a.mean(axis=0) - part.b.mean(axis=0)
    squares = float(np.sum(part.weights**2))
    centred = difference - difference @ part.weights
    return LevelPart(
        v_level=float(np.sum(part.weights**2 * centred**2) / (1 - squares)),
        v_residual_a=_residual_variance(part.a, part.weights),
        v_residual_b=_residual_variance(part.b, part.weights),
        effective_levels=1 / squares,
    )


def _residual_variance(values: Floats, weights: Floats) -> float:
    """What the residuals of one agent (of a run on a level) add to the variance of its mean; 0 for a single run."""
    n = len(values)
    if n < 2:
        return 0.0
    by_level, by_run = values.mean(axis=0), values @ weights
    residual = values - by_run[:, None] - by_level[None, :] + by_level @ weights
    squares = float(np.sum(weights**2))
    return float(np.sum(weights**2 * residual**2) / (1 - squares) / (n * (n - 1)))


def _df(sources: Sequence[tuple[float, float]], *, total: float) -> float:
    """Degrees of freedom of a `total` that is made of variances, each given with its own df."""
    variances, dfs = zip(*sources, strict=True)
    return float(satterthwaite(variances, dfs, total=total, without_variance=min(dfs)))
