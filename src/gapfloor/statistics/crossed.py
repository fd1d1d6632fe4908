"""Two agents on the same levels: their difference for new runs on new levels, and how many runs would settle it.

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

from gapfloor.statistics.conventions import ALPHA, CONFIDENCE, GENERATOR, NAN, Floats, Ints
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.level_crossing import level_df, level_table, level_variance, residual_variance
from gapfloor.statistics.power import MAX_RUNS, POWER, power_of_t, smallest_reaching
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import t_estimate

#: Runs of an agent: each its episode returns and level seeds.
Runs = Sequence[tuple[Floats, Ints]]


@dataclass(frozen=True)
class CrossedDifference:
    """Agent a minus agent b, paired by level."""

    new_runs: Estimate
    """For new runs on new levels; without an error unless both agents have two runs."""
    these_runs: Estimate
    """For these runs on new levels: what a comparison of single checkpoints can claim."""
    n_levels: int
    """Distinct levels played."""


def crossed_difference(
    sets: Sequence[tuple[float, Runs, Runs]], *, confidence: float = CONFIDENCE
) -> CrossedDifference | None:
    """The difference over level sets: `[(1, a, b)]` for a return, `[(1, ...train), (-1, ...test)]` for a gap.

    Runs keep their order from set to set. None where fewer than two levels were played by every run.
    """
    by_run_a, by_run_b, n_levels = [], [], 0
    # Variances, each with its degrees of freedom: of levels, and of both agents' residuals.
    levels: list[tuple[float, float]] = []
    residuals: list[tuple[float, float]] = []
    for sign, runs_a, runs_b in sets:
        table = level_table([*runs_a, *runs_b])
        if table is None:
            return None
        weights, a, b = table.weights, table.values[: len(runs_a)], table.values[len(runs_a) :]
        by_run_a.append(sign * (a @ weights))
        by_run_b.append(sign * (b @ weights))
        n_levels += weights.size
        df = float(level_df(weights))
        levels.append((float(level_variance(a.mean(axis=0) - b.mean(axis=0), weights)), df))
        residuals += [(float(residual_variance(each, weights)), (len(each) - 1) * df) for each in (a, b)]
    totals = [np.sum(by_run, axis=0) for by_run in (by_run_a, by_run_b)]
    runs = [
        (float(np.var(total, ddof=1) / len(total)) if len(total) > 1 else NAN, len(total) - 1.0)
        for total in totals
    ]
    v_runs, v_level = sum(v for v, _ in runs), sum(v for v, _ in levels)
    # Subtracting the residual, which both contain, may not leave less than either source alone.
    crossed = max(v_runs + v_level - sum(v for v, _ in residuals), v_runs, v_level)
    estimate = float(np.mean(totals[0]) - np.mean(totals[1]))
    stated: dict[str, Any] = {"confidence": confidence, "estimand": GENERATOR, "method": "paired by level"}

    def estimated(variance: float, sources: Sequence[tuple[float, float]]) -> Estimate:
        variances, dfs = zip(*sources, strict=True)
        df = float(satterthwaite(variances, dfs, total=variance, without_variance=min(dfs)))
        return t_estimate(estimate, math.sqrt(variance), df, **stated)

    return CrossedDifference(
        new_runs=t_estimate(estimate, NAN, NAN, **stated)
        if math.isnan(v_runs)
        else estimated(crossed, [*runs, *levels, *residuals]),
        these_runs=estimated(v_level, levels),
        n_levels=n_levels,
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
        df = float(satterthwaite((first, second), (n - 1, n - 1)))
        return power_of_t(difference, se=math.sqrt(first + second), df=df, alpha=alpha / family_size)

    return smallest_reaching(power_at, power, MAX_RUNS)
