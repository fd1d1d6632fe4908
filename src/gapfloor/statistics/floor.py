"""Runs against the random floor: the paper's primary comparison.

References:
    Welch, B. L. (1947). The generalization of "Student's" problem when several different population variances are
    involved. Biometrika, 34(1-2), 28-35.
    Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power approach for assessing
    the equivalence of average bioavailability. Journal of Pharmacokinetics and Biopharmaceutics, 15(6), 657-680.
    Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman & Hall, ch. 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.bootstrap import difference_interval
from gapfloor.statistics.conventions import (
    ALPHA,
    CONFIDENCE,
    N_RESAMPLES,
    PAPER_MARGIN,
    MarginRule,
    Pair,
    finite_sample,
)
from gapfloor.statistics.families import FamilyCall, holm, word_of
from gapfloor.statistics.welch import equivalence_p, moments, welch_of_moments


@dataclass(frozen=True)
class FloorComparison:
    """The mean over runs minus the floor's mean over episodes, tested and bounded."""

    n: int
    """Number of runs."""
    mean: float
    """Mean over runs."""
    sem: float
    """Standard error of `mean` over runs: sd(ddof=1)/sqrt(n)."""
    floor_sem: float
    """Standard error of `floor` over its episodes."""
    delta: float
    """mean - floor."""
    ci: Pair
    """Percentile bootstrap interval of delta; runs and floor episodes are both resampled."""
    df: float
    """Its degrees of freedom (Satterthwaite)."""
    p: float
    """Two-sided p of Welch's test, before any correction."""
    p_tost: float
    """p of the equivalence test (two one-sided tests) at the margin; not corrected for the family."""
    margin: float
    """How far from the floor still counts as equivalent."""
    confidence: float = CONFIDENCE
    """Confidence of the interval."""

    @property
    def se(self) -> float:
        """Standard error of delta: run-to-run and per-episode floor variance together."""
        return float(np.hypot(self.sem, self.floor_sem))


def compare_to_floor(
    run_values: npt.ArrayLike,
    floor_returns: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    margin: MarginRule = PAPER_MARGIN,
    confidence: float = CONFIDENCE,
    n_resamples: int = N_RESAMPLES,
) -> FloorComparison:
    """Delta with Welch's test, its percentile interval and TOST.

    Args:
        run_values: one value per run, its mean over all of its episodes.
        floor_returns: the floor's episode returns on the same draws.
        rng: generator of the resamples; runs and floor episodes are both resampled.
        margin: what still counts as equivalent.
        confidence: of the interval.
        n_resamples: of the bootstrap.

    With one run nothing can be tested: the tests are NaN and the interval too.

    >>> rng = np.random.default_rng(0)
    >>> c = compare_to_floor([5.2, 6.1, 5.9], [0, 0, 2, 4, 0, 1], rng=rng)
    >>> round(c.delta, 2)
    4.57
    """
    runs = finite_sample(run_values, "run_values")
    floor = finite_sample(floor_returns, "floor_returns", minimum=2)
    own, other = moments(runs), moments(floor)
    test = welch_of_moments(own, other)
    width = margin.at(other.mean)
    return FloorComparison(
        n=runs.size,
        mean=own.mean,
        sem=own.sem,
        floor_sem=other.sem,
        delta=test.difference,
        ci=difference_interval(runs, floor, confidence=confidence, n_resamples=n_resamples, rng=rng),
        df=test.df,
        p=test.p,
        p_tost=float(equivalence_p(test.difference, test.se, test.df, margin=width)),
        margin=width,
        confidence=confidence,
    )


def call_family(comparisons: Sequence[FloorComparison], *, alpha: float = ALPHA) -> tuple[FamilyCall, ...]:
    """The calls of a family of floor comparisons, in the order given.

    Holm p < alpha: above or below; else TOST p < alpha (not adjusted): equivalent; else not distinguishable.
    """
    adjusted, equivalent = (holm([getattr(one, name) for one in comparisons]) for name in ("p", "p_tost"))
    size, calls = int(np.count_nonzero(~np.isnan(adjusted))), []
    for one, p, p_tost in zip(comparisons, map(float, adjusted), map(float, equivalent), strict=True):
        call = word_of(p, one.delta, ("above", "below"), alpha=alpha)
        if call == "not distinguishable" and one.p_tost < alpha:
            call = "equivalent"
        calls.append(
            FamilyCall(test=one, call=call, p_holm=p, p_tost_holm=p_tost, family_size=size, alpha=alpha)
        )
    return tuple(calls)
