"""The generalization gap over runs, and the paper's tests of it.

Each run is tested on its own episodes (Welch); the runs' p are combined with Fisher's method, which asks
whether any run differs, and Stouffer's on one-sided p, which asks for one direction.

References:
    Fisher, R. A. (1932). Statistical Methods for Research Workers, 4th ed. Oliver and Boyd, sec. 21.1.
    Stouffer, S. A. et al. (1949). The American Soldier, vol. 1. Princeton University Press, p. 45.
    Welch, B. L. (1947). The generalization of "Student's" problem when several different population variances are
    involved. Biometrika, 34(1-2), 28-35.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.bootstrap import mean_interval
from gapfloor.statistics.conventions import (
    ALPHA,
    CONFIDENCE,
    N_RESAMPLES,
    NAN,
    Floats,
    Pair,
    finite_sample,
    sem,
)
from gapfloor.statistics.families import FamilyCall, holm, word_of
from gapfloor.statistics.welch import moments, welch_of_moments

#: The words of a gap above and below zero.
GAP_WORDS = ("train higher", "test higher")


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
class Gap:
    """Mean over runs of train - test. `runs` keeps the order given."""

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
    runs = tuple(_test_run(*halves) for halves in zip(train, test, strict=True))
    order = np.lexsort(([run.test for run in runs], [run.train for run in runs]))
    trains = np.array([runs[i].train for i in order])
    tests = np.array([runs[i].test for i in order])
    gaps = np.sort(trains - tests)
    mean, error = float(gaps.mean()), sem(gaps)
    p = np.sort([run.p for run in runs])
    return Gap(
        n=gaps.size,
        train=float(trains.mean()),
        train_sem=sem(trains),
        test=float(tests.mean()),
        test_sem=sem(tests),
        mean=mean,
        sem=error,
        ci=mean_interval(gaps, confidence=confidence, n_resamples=n_resamples, rng=rng),
        p_fisher=combine_fisher(p),
        stouffer_z=combine_stouffer(np.sort([_signed_z(run) for run in runs])),
        runs=runs,
        confidence=confidence,
    )


def call_gaps(gaps: Sequence[Gap], *, alpha: float = ALPHA) -> tuple[FamilyCall, ...]:
    """The calls of a family of gaps by Fisher's p with Holm's correction, in the order given."""
    return tuple(
        FamilyCall(
            test=one,
            call=word_of(p, one.mean, GAP_WORDS, alpha=alpha),
            p_holm=p,
            family_size=len(gaps),
            alpha=alpha,
        )
        for one, p in zip(gaps, map(float, holm([one.p_fisher for one in gaps])), strict=True)
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


def _test_run(train: Floats, test: Floats) -> RunTest:
    own, other = moments(train), moments(test)
    tested = welch_of_moments(own, other)
    return RunTest(own.mean, other.mean, tested.difference, tested.t, tested.p)


def _signed_z(run: RunTest) -> float:
    """The normal score of the one-sided p, from the nearer tail so that it does not round to infinity."""
    tail = max(run.p / 2, np.finfo(np.float64).tiny)
    return float(-special.ndtri(tail) * np.sign(run.t))
