"""Episodes grouped by level, and runs crossed with levels.

A greedy episode is a function of its level, so 384 episodes on 100 levels are not 384 observations of the generator:
errors for new levels are clustered by level. Two cells of one schedule hold the same episodes in the same places, so
their difference is taken episode by episode, and what levels do to both is gone. In a census every level is played
equally often; its mean is about these levels, and only the chance within levels makes an error.

A runs x levels table has three sources of variance: runs, levels, and the residual of a run on a level. The variance
of the mean over runs, V_run, and that of the mean over levels, V_level, both contain the residual, so it is taken out
once. `crossed_sources` keeps the parts apart; `crossed_mean` and `crossed_gap` give the sum Satterthwaite's df.
`crossed_difference` is for two agents on the same levels: what makes a level easy or hard for both cancels, and each
agent brings its own run-to-run variance.

References:
    Liang, K.-Y. & Zeger, S. L. (1986). Longitudinal data analysis using generalized linear models. Biometrika,
        73(1), 13-22.
    Cochran, W. G. (1977). Sampling Techniques, 3rd ed. Wiley, ch. 5 (census).
    Searle, S. R., Casella, G. & McCulloch, C. E. (1992). Variance Components. Wiley, ch. 3 (level_variance_share).
    Cameron, A. C., Gelbach, J. B. & Miller, D. L. (2011). Robust inference with multiway clustering. Journal of
        Business & Economic Statistics 29, 238-249.
    Cornfield, J. and Tukey, J. W. (1956). Average values of mean squares in factorials. Annals of Mathematical
        Statistics 27, 907-949.
    Owen, A. B. (2007). The pigeonhole bootstrap. Annals of Applied Statistics 1, 386-411.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.behrens_fisher import VariancePart
from gapfloor.statistics.conventions import CONFIDENCE, GENERATOR, NAN, Estimate, Floats, Ints
from gapfloor.statistics.welch import satterthwaite, t_estimate

#: Episode returns and level seeds of one run, or of the floor.
Episodes = tuple[Floats, Ints]
_OVER_LEVELS = {"estimand": GENERATOR, "method": "over levels"}


class ByLevel(NamedTuple):
    """What was played on each level, in the order of level seeds."""

    levels: Ints
    counts: Ints
    sums: Floats
    """Sum of returns."""
    place: Ints
    """For each episode, the place of its level."""

    @property
    def means(self) -> Floats:
        """Mean return on each level."""
        return self.sums / self.counts


def by_level(returns: npt.ArrayLike, levels: npt.ArrayLike) -> ByLevel:
    """Episodes grouped by their levels.

    >>> by_level([1.0, 3.0, 5.0, 5.0], [7, 7, 2, 2]).means.tolist()
    [5.0, 2.0]
    """
    found, place, counts = np.unique(np.asarray(levels), return_inverse=True, return_counts=True)
    sums: Floats = np.bincount(place, weights=np.asarray(returns, dtype=np.float64)).astype(np.float64)
    return ByLevel(found, counts, sums, place)


def within_level_sample(returns: npt.ArrayLike, levels: npt.ArrayLike) -> Floats:
    """A sample with the census's mean whose spread is the one within levels alone.

    Each level's deviations are widened so that the sample's variance (ddof=1) is the pooled variance within levels:
    tests and bootstraps for independent episodes then use the census's own error. With one episode per level the
    returns themselves are given, whose spread is too wide rather than too narrow.
    """
    values, grouped = np.asarray(returns, dtype=np.float64), by_level(returns, levels)
    if (grouped.counts < 2).any():
        return values
    widened = np.sqrt((values.size - 1) / (values.size - grouped.counts.size))
    sample: Floats = values.mean() + (values - grouped.means[grouped.place]) * widened
    return sample


def clustered_sem(returns: Floats, levels: Ints) -> float:
    """Standard error of a mean of episodes clustered by level; NaN for fewer than two levels.

    Equals the cluster-robust error of a regression on a constant with the G/(G-1) correction.
    """
    sums = by_level(np.asarray(returns) - np.mean(returns), levels).sums
    if sums.size < 2:
        return NAN
    return float(np.sqrt(sums.size / (sums.size - 1) * np.sum(sums**2)) / len(returns))


def level_variance_share(runs: Sequence[tuple[Floats, Ints]]) -> float:
    """Between-level over total variance of a run's episodes (one-way moments), averaged over runs.

    1 for a policy whose return is a function of the level; NaN where no level was played twice.
    """
    between, within = [], []
    for returns, levels in runs:
        _, counts, sums, _ = by_level(returns, levels)
        n, groups = returns.size, counts.size
        if groups < 2 or n == groups:
            continue
        inside = (np.sum(returns**2) - np.sum(sums**2 / counts)) / (n - groups)
        outside = (np.sum(sums**2 / counts) - returns.sum() ** 2 / n) / (groups - 1)
        size = (n - np.sum(counts**2) / n) / (groups - 1)
        between.append((outside - inside) / size)
        within.append(inside)
    total = float(np.sum(between) + np.sum(within)) if between else 0.0
    return float(np.clip(np.sum(between) / total, 0, 1)) if total > 0 else NAN


def mean_by_level(returns: Floats, levels: Ints, *, confidence: float = CONFIDENCE) -> Estimate:
    """The mean return of one checkpoint on new levels, its error clustered by level."""
    error, df = clustered_sem(returns, levels), float(np.unique(levels).size - 1)
    return t_estimate(float(np.mean(returns)), error, df, confidence=confidence, **_OVER_LEVELS)


def pair_by_level(a: Floats, b: Floats, levels: Ints, *, confidence: float = CONFIDENCE) -> Estimate:
    """A - b of two measurements on one schedule: `a[i]` and `b[i]` were played on `levels[i]`."""
    if not len(a) == len(b) == len(levels):
        raise UsageError(
            f"`a`, `b` and `levels` must hold the same episodes, but have {len(a)}, {len(b)} and {len(levels)}."
        )
    return mean_by_level(np.asarray(a) - np.asarray(b), levels, confidence=confidence)


def independent_difference(a: Estimate, b: Estimate, *, confidence: float = CONFIDENCE) -> Estimate:
    """A - b on different levels, as a gap is: variances add, with Satterthwaite's df."""
    df = float(satterthwaite((a.se**2, b.se**2), (a.df, b.df)))
    return t_estimate(
        a.value - b.value, float(np.hypot(a.se, b.se)), df, confidence=confidence, **_OVER_LEVELS
    )


@dataclass(frozen=True)
class LevelTable:
    """Mean returns of runs (first axis) on the levels of one set (second axis), and of a reference on them."""

    values: Floats
    weights: Floats
    """Of the levels; they sum to one."""
    reference: Floats | float = 0.0

    def minus(self, slope: float) -> Floats:
        """Values minus `slope` times the reference on the same level."""
        return np.asarray(self.values - slope * np.asarray(self.reference))


def level_table(runs: Sequence[Episodes], floor: Episodes | None = None) -> LevelTable | None:
    """Runs and floor on the levels that all of them played, weighted by how often the runs played them.

    None where fewer than two levels were played by every run (and by the floor).
    """
    samples = [*runs, floor] if floor is not None else list(runs)
    if not runs or any(levels.size == 0 for _, levels in samples):
        return None
    grouped = [by_level(returns, levels) for returns, levels in samples]
    shared = functools.reduce(np.intersect1d, (each.levels for each in grouped))
    if shared.size < 2:
        return None
    places = [np.searchsorted(each.levels, shared) for each in grouped]
    means = np.array([each.means[at] for each, at in zip(grouped, places, strict=True)])
    counts = np.mean(
        [each.counts[at] for each, at in zip(grouped[: len(runs)], places, strict=False)], axis=0
    )
    reference = means[-1] if floor is not None else 0.0
    return LevelTable(means[: len(runs)], counts / counts.sum(), reference)


def level_variance(means: Floats, weights: Floats) -> float:
    """What the choice of levels adds to the variance of a weighted mean of level means."""
    centred = means - np.sum(weights * means)
    return float(np.sum((weights * centred) ** 2) / (1 - np.sum(weights**2)))


def residual_variance(values: Floats, weights: Floats) -> float:
    """What the residuals of runs (first axis) on levels add to the variance of the mean; 0 for a single run."""
    n = len(values)
    if n < 2:
        return 0.0
    by_run = values @ weights[:, None]
    mean = values.mean(axis=0, keepdims=True) - by_run.mean()
    total = np.sum((weights * (values - by_run - mean)) ** 2)
    return float(total / (1 - np.sum(weights**2)) / (n * (n - 1)))


def reference_slope(tables: Sequence[LevelTable]) -> float:
    """The slope of the runs' mean on a level on the reference's, pooled within level sets.

    It minimises the estimated variance that levels add to a contrast of the sets (a control variate, as in analysis
    of covariance). Zero where the reference does not vary over levels.
    """
    above = below = 0.0
    for table in tables:
        mean = table.values.mean(axis=0)
        y = mean - np.sum(table.weights * mean)
        x = table.reference - np.sum(table.weights * table.reference)
        above += float(np.sum(table.weights**2 * x * y))
        below += float(np.sum(table.weights**2 * x * x))
    return above / below if below > 0 else 0.0


def crossed_mean(table: LevelTable, *, confidence: float = CONFIDENCE) -> Estimate:
    """The weighted mean of the runs minus the reference, for new runs on new levels."""
    return _crossed([(1.0, table)], confidence=confidence)


def crossed_gap(train: LevelTable, test: LevelTable, *, confidence: float = CONFIDENCE) -> Estimate:
    """Train - test of the same runs (same row order), levels of both sets sampled independently."""
    if len(train.values) != len(test.values):
        raise UsageError(
            f"`train` and `test` must hold the same runs, but have {len(train.values)} and {len(test.values)}."
        )
    return _crossed([(1.0, train), (-1.0, test)], confidence=confidence)


def _crossed(tables: Sequence[tuple[float, LevelTable]], *, confidence: float) -> Estimate:
    found = crossed_sources([(sign, [each.minus(1.0)], each.weights) for sign, each in tables])
    return found.for_new_runs(df=len(tables[0][1].values) - 1, confidence=confidence, method="runs x levels")


@dataclass(frozen=True)
class CrossedSources:
    """A sum over agents and level sets, with what each source adds to its variance (and the degrees of freedom)."""

    estimate: float
    runs: list[VariancePart]
    """Per agent; NaN for a single run."""
    levels: list[VariancePart]
    """Per level set."""
    residuals: list[VariancePart]
    """Of runs on levels, per level set and agent; the two others contain it."""

    def for_new_runs(self, *, df: float | None = None, **stated: Any) -> Estimate:
        """The estimate for new runs on new levels: V_run + V_level - V_residual; no error for a single run.

        `df` are the degrees of freedom where there is no variance at all (default: the fewest of all parts).
        """
        runs, levels, residuals = (
            sum(v for v, _ in parts) for parts in (self.runs, self.levels, self.residuals)
        )
        # Subtracting the residual, which both contain, may not leave less than either source alone.
        variance = max(runs + levels - residuals, runs, levels) if runs == runs else NAN
        return self._with([*self.runs, *self.levels, *self.residuals], variance, df, stated)

    def for_these_runs(self, **stated: Any) -> Estimate:
        """The estimate for exactly these runs on new levels."""
        return self._with(self.levels, sum(v for v, _ in self.levels), None, stated)

    def _with(
        self, parts: Sequence[VariancePart], variance: float, df: float | None, stated: dict[str, Any]
    ) -> Estimate:
        variances, dfs = zip(*parts, strict=True)
        fewest = min(dfs) if df is None else df
        df = float(satterthwaite(variances, dfs, total=variance, without_variance=fewest))
        return t_estimate(self.estimate, math.sqrt(variance), df, estimand=GENERATOR, **stated)


def crossed_sources(sets: Sequence[tuple[float, Sequence[Floats], Floats]]) -> CrossedSources:
    """What runs, levels and residuals add to a mean, or to the difference of two agents' means.

    Args:
        sets: per level set its sign, the values of each agent (runs, levels), and the weights of the levels. Runs keep
            their order from set to set; levels are shared by the agents.
    """
    totals = [
        np.sum([sign * (agents[at] @ weights) for sign, agents, weights in sets], axis=0)
        for at in range(len(sets[0][1]))
    ]
    levels, residuals = [], []
    for _, agents, weights in sets:
        means = [values.mean(axis=0) for values in agents]
        df = float(1 / np.sum(weights**2) - 1)  # the effective number of levels minus one
        contrast = means[0] - means[1] if len(means) > 1 else means[0]
        levels.append(VariancePart(level_variance(contrast, weights), df))
        residuals += [VariancePart(residual_variance(each, weights), (len(each) - 1) * df) for each in agents]
    first, *second = (float(np.mean(total)) for total in totals)
    runs = [
        VariancePart(float(np.var(total, ddof=1) / total.size) if total.size > 1 else NAN, total.size - 1.0)
        for total in totals
    ]
    return CrossedSources(first - sum(second), runs, levels, residuals)


@dataclass(frozen=True)
class CrossedDifference:
    """Agent a minus agent b, paired by level; NaN where they cannot be paired."""

    new_runs: Estimate
    """For new runs on new levels; without an error unless both agents have two runs."""
    these_runs: Estimate
    """For these runs on new levels: what a comparison of single checkpoints can claim."""
    n_levels: int
    """Distinct levels played by every run; 0 where there are fewer than two."""


def crossed_difference(
    sets: Sequence[tuple[float, Sequence[Episodes], Sequence[Episodes]]], *, confidence: float = CONFIDENCE
) -> CrossedDifference:
    """The difference over level sets: `[(1, a, b)]` for a return, `[(1, ...train), (-1, ...test)]` for a gap.

    Runs keep their order from set to set.
    """
    played: list[tuple[float, Sequence[Floats], Floats]] = []
    for sign, a, b in sets:
        table = level_table([*a, *b])
        if table is None:
            unpaired = Estimate(value=NAN, estimand=GENERATOR, method="paired by level")
            return CrossedDifference(unpaired, unpaired, 0)
        played.append((sign, (table.values[: len(a)], table.values[len(a) :]), table.weights))
    found = crossed_sources(played)
    return CrossedDifference(
        new_runs=found.for_new_runs(confidence=confidence, method="paired by level"),
        these_runs=found.for_these_runs(confidence=confidence, method="paired by level"),
        n_levels=sum(weights.size for _, _, weights in played),
    )
