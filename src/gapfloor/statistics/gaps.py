"""The generalization gap over runs: the paper's test, and the recommended one.

The paper tests each run on its own episodes (`welch`); the runs' p are combined with Fisher's method, which asks
whether any run differs, and Stouffer's on one-sided p, which asks for one direction.

The recommended test is about the excess over the floor's gap, for new runs on new levels. The runs' return on each
level is compared with the floor's on the same level, runs and levels are both samples (`level_crossing`), and the
variances of runs and of levels keep their own degrees of freedom (`behrens_fisher`). Without level seeds, or without
levels that the floor and every run have played, a gap is not tested. The floor enters as a control variate with an
estimated slope: excess = gap - slope * floor gap. With level sets that are samples of one generator every slope is
unbiased, and the estimated one has the smallest variance. Where the two sets may come from different generators only
slope one takes out their whole difference, so that version is kept next to it.

References:
    Fisher, R. A. (1932). Statistical Methods for Research Workers, 4th ed. Oliver and Boyd, sec. 21.1.
    Stouffer, S. A. et al. (1949). The American Soldier, vol. 1. Princeton University Press, p. 45.
    Glasserman, P. (2003). Monte Carlo Methods in Financial Engineering, section 4.1 (control variates). Springer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.behrens_fisher import VariancePart, two_part_interval, two_part_p
from gapfloor.statistics.bootstrap import mean_interval
from gapfloor.statistics.conventions import (
    CONFIDENCE,
    GENERATOR,
    N_RESAMPLES,
    NAN,
    NO_PAIR,
    ROUNDING,
    Estimate,
    Pair,
    do_not_differ,
    finite_sample,
    sem,
)
from gapfloor.statistics.families import FamilyCall, FamilyTest
from gapfloor.statistics.level_crossing import (
    Episodes,
    LevelTable,
    crossed_sources,
    level_table,
    reference_slope,
)
from gapfloor.statistics.reference_calls import LEAST_RUNS
from gapfloor.statistics.welch import moments, satterthwaite, t_statistic, two_sided_p, welch_of_moments

#: The words of a gap above and below zero.
GAP_WORDS = ("train higher", "test higher")
GapWord = Literal["train higher", "test higher", "not distinguishable", "not tested"]
#: With fewer common levels in a set the slope is one instead of estimated: it would cost more than it saves.
LEVELS_FOR_SLOPE = 20


@dataclass(frozen=True)
class RunTest:
    """One run's gap with Welch's test on its episode returns."""

    train: float
    """Mean return on training levels."""
    test: float
    """Mean return on held-out levels."""
    gap: float
    """train - test."""
    t: float
    """Welch's t statistic."""
    p: float
    """Two-sided p."""


@dataclass(frozen=True)
class Gap(FamilyTest):
    """Mean over runs of train - test. `runs` keeps the order given."""

    method = "paper"
    words = GAP_WORDS
    n: int
    """Number of runs."""
    train: float
    """Mean over runs of the return on training levels."""
    train_sem: float
    """Standard error of `train` over runs."""
    test: float
    """Mean over runs of the return on held-out levels."""
    test_sem: float
    """Standard error of `test` over runs."""
    mean: float
    """Mean over runs of train - test."""
    sem: float
    """Standard error of `mean` over runs."""
    ci: Pair
    """Percentile bootstrap interval over runs, not stratified by agent."""
    p_fisher: float
    """Fisher's combination of the runs' own Welch tests: small when some run differs."""
    stouffer_z: float
    """Stouffer's combination of the runs' one-sided tests; above zero: train is higher."""
    runs: tuple[RunTest, ...]
    """The test of each run."""
    confidence: float = CONFIDENCE
    """Confidence of the interval."""

    def estimate(self, *, alpha: float | None = None) -> Estimate:
        """The gap with Fisher's p and its percentile interval, whatever `alpha` is."""
        return Estimate(
            value=self.mean, se=self.sem, low=self.ci[0], high=self.ci[1], confidence=self.confidence,
            p=self.p_fisher, method="paper",
        )  # fmt: skip


def gap(
    train_by_run: Sequence[npt.ArrayLike],
    test_by_run: Sequence[npt.ArrayLike],
    *,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    n_resamples: int = N_RESAMPLES,
) -> Gap:
    """The gap of runs given as episode returns: `train_by_run[i]` and `test_by_run[i]` are one run."""
    if len(train_by_run) != len(test_by_run) or not train_by_run:
        raise UsageError(
            f"`train_by_run` and `test_by_run` need the same runs, but have {len(train_by_run)} and "
            f"{len(test_by_run)}."
        )
    train = [finite_sample(returns, "train_by_run", minimum=2) for returns in train_by_run]
    test = [finite_sample(returns, "test_by_run", minimum=2) for returns in test_by_run]
    runs = []
    for half, other in zip(train, test, strict=True):
        tested = welch_of_moments(own := moments(half), rest := moments(other))
        runs.append(RunTest(own.mean, rest.mean, tested.difference, tested.t, tested.p))
    order = np.lexsort(([run.test for run in runs], [run.train for run in runs]))
    trains = np.array([runs[i].train for i in order])
    tests = np.array([runs[i].test for i in order])
    gaps = np.sort(trains - tests)
    mean, error = float(gaps.mean()), sem(gaps)
    p = np.sort([run.p for run in runs])
    # The normal score of the one-sided p, from the nearer tail so that it does not round to infinity.
    tails = [max(run.p / 2, np.finfo(np.float64).tiny) for run in runs]
    z = [float(-special.ndtri(tail) * np.sign(run.t)) for tail, run in zip(tails, runs, strict=True)]
    return Gap(
        n=gaps.size,
        train=float(trains.mean()),
        train_sem=sem(trains),
        test=float(tests.mean()),
        test_sem=sem(tests),
        mean=mean,
        sem=error,
        ci=mean_interval(gaps, confidence=confidence, n_resamples=n_resamples, rng=rng)
        if len(runs) > 1
        else NO_PAIR,
        p_fisher=combine_fisher(p),
        stouffer_z=combine_stouffer(np.sort(z)),
        runs=tuple(runs),
        confidence=confidence,
    )


def combine_fisher(p_values: npt.ArrayLike) -> float:
    """Fisher's combined p; equals `scipy.stats.combine_pvalues(p, method="fisher")`."""
    p = np.asarray(p_values, dtype=np.float64)
    # A p that underflowed to 0 is at most the smallest double; the sum must stay finite.
    logs = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    return float(special.chdtrc(2 * p.size, -2 * logs.sum())) if not np.isnan(logs).any() else NAN


def combine_stouffer(z_values: npt.ArrayLike) -> float:
    """Stouffer's Z of the runs' signed normal scores."""
    z = np.asarray(z_values, dtype=np.float64)
    return float(z.sum() / np.sqrt(z.size))


@dataclass(frozen=True, kw_only=True)
class ExcessTest(FamilyTest):
    """A gap's excess over the floor's gap, on the levels that every run and the floor have played."""

    method = "recommended"
    words = GAP_WORDS
    not_tested: str = ""
    """Why nothing was tested; empty where it was."""
    slope: float = NAN
    excess: float = NAN
    """gap - slope * floor gap."""
    se: float = NAN
    parts: tuple[VariancePart, ...] = ()
    """Of runs and of levels, those of both sets together."""
    p: float = NAN
    plain_excess: float = NAN
    """gap - floor gap."""
    p_plain: float = NAN
    p_runs: float = NAN
    """Student's test of the raw gap over runs, on the levels that were played (n - 1 df)."""
    n_levels: tuple[int, int] = (0, 0)
    """Common levels: training, held-out."""

    def estimate(self, *, alpha: float | None = None) -> Estimate:
        """The excess with its interval at 1 - alpha, which excludes zero exactly where p < alpha."""
        low, high = NO_PAIR if alpha is None else two_part_interval(self.excess, *self.parts, alpha=alpha)
        return Estimate(
            value=self.excess, se=self.se, low=low, high=high, confidence=NAN if alpha is None else 1 - alpha,
            p=self.p, estimand=GENERATOR, method="recommended",
        )  # fmt: skip


def excess_gap(
    train: Sequence[Episodes],
    test: Sequence[Episodes],
    *,
    train_floor: Episodes | None,
    test_floor: Episodes | None,
    least_runs: int = LEAST_RUNS,
) -> ExcessTest:
    """The gap's excess over the floor's gap, crossed over runs and levels.

    Args:
        train: per run its episode returns and level seeds on training levels; empty seeds if they are not known.
        test: the same runs in the same order on held-out levels.
        train_floor: the floor on the training levels; None if it was not measured.
        test_floor: the floor on the held-out levels.
        least_runs: with fewer runs the gap is not tested.
    """
    if len(train) != len(test) or not train:
        raise UsageError(
            f"`train` and `test` must hold the same runs, but have {len(train)} and {len(test)}."
        )
    if train_floor is None or test_floor is None:
        return ExcessTest(not_tested="no floor")
    if any(levels.size == 0 for _, levels in (*train, *test, train_floor, test_floor)):
        return ExcessTest(not_tested="no level seeds")
    if len(train) < least_runs:
        return ExcessTest(not_tested=f"{len(train)} run{'' if len(train) == 1 else 's'}")
    tables = [level_table(train, train_floor), level_table(test, test_floor)]
    if tables[0] is None or tables[1] is None:
        return ExcessTest(not_tested="fewer than two common levels")
    if all(do_not_differ(table.values) for table in tables if table):
        return ExcessTest(not_tested="the returns of a level set do not differ")
    return _tested(tables[0], tables[1])


def _tested(train: LevelTable, test: LevelTable) -> ExcessTest:
    n_levels = (train.weights.size, test.weights.size)
    slope = reference_slope((train, test)) if min(n_levels) >= LEVELS_FOR_SLOPE else 1.0
    estimate, parts = _estimate(train, test, slope)
    plain, plain_parts = _estimate(train, test, 1.0)
    gaps = train.values @ train.weights - test.values @ test.weights
    return ExcessTest(
        slope=slope,
        excess=estimate,
        se=float(np.sqrt(sum(part.variance for part in parts))),
        parts=parts,
        p=two_part_p(estimate, *parts),
        plain_excess=plain,
        p_plain=two_part_p(plain, *plain_parts),
        p_runs=float(two_sided_p(t_statistic(float(gaps.mean()), sem(gaps)), gaps.size - 1)),
        n_levels=n_levels,
    )


def _estimate(train: LevelTable, test: LevelTable, slope: float) -> tuple[float, tuple[VariancePart, ...]]:
    """The excess, and the variance of runs and of levels: V_run is not taken below the residual that it contains."""
    found = crossed_sources(
        [(1.0, [train.minus(slope)], train.weights), (-1.0, [test.minus(slope)], test.weights)]
    )
    (of_runs,), residuals = found.runs, [part.variance for part in found.residuals]
    variances = [max(of_runs.variance, sum(residuals))]
    variances += [
        max(one.variance - residual, 0.0) for one, residual in zip(found.levels, residuals, strict=True)
    ]
    # What is left of equal numbers is rounding error, not a difference.
    least = ROUNDING * float(max(np.abs(table.values).max() for table in (train, test)))
    runs, *levels = (variance if variance > least**2 else 0.0 for variance in variances)
    df = float(satterthwaite(levels, [max(part.df, 1.0) for part in found.levels]))
    estimate = found.estimate if abs(found.estimate) > least else 0.0
    return estimate, (VariancePart(runs, of_runs.df), VariancePart(sum(levels), df))


def gap_is_established(gap: FamilyCall) -> bool:
    """Whether training return exceeds held-out return for new runs on new levels, beyond what the floor shows.

    Both slopes must agree (Berger's intersection-union test): the estimated one, and one, which takes out the whole
    difference of level sets that do not come from one generator.
    """
    return bool(gap.call == "train higher" and gap.p_plain_holm < gap.alpha and gap.test.plain_excess > 0)


def may_say_played_levels_differ(gap: FamilyCall) -> bool:
    """Whether the runs score differently on the training and held-out levels that were played (Holm over games)."""
    return bool(gap.p_runs_holm < gap.alpha)
