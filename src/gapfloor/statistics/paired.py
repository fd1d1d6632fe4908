"""Differences between two measurements of the same runs, and between the runs of two agents.

The paper's rd (rules), gd (gaps) and mg (merged - greedy) are paired over runs; its encoder differences are
Welch over runs, pooled over draws and one draw at a time.

References:
    Student (1908). The probable error of a mean. Biometrika, 6(1), 1-25.
    Welch, B. L. (1947). The generalization of "Student's" problem when several different population variances are
    involved. Biometrika, 34(1-2), 28-35.
    Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman & Hall, ch. 13.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.bootstrap import difference_interval, mean_interval
from gapfloor.statistics.conventions import (
    CONFIDENCE,
    N_RESAMPLES,
    NAN,
    NO_PAIR,
    THESE_LEVELS,
    Floats,
    Pair,
    finite_sample,
    sem,
)
from gapfloor.statistics.welch import (
    Moments,
    moments,
    t_interval,
    t_statistic,
    two_sided_p,
    welch_of_moments,
)


@dataclass(frozen=True)
class PairedDifference:
    """Mean over runs of a - b."""

    n: int
    """Number of runs."""
    mean_a: float
    """Mean of a over runs."""
    mean_b: float
    """Mean of b over runs."""
    difference: float
    """Mean over runs of a - b."""
    sem: float
    """Standard error of `difference` over runs."""
    ci: Pair
    """Percentile bootstrap interval over runs."""
    t: float
    """The paired t statistic."""
    df: float
    """Its degrees of freedom, n - 1."""
    p: float
    """Two-sided p of the paired t-test."""
    t_interval: Pair
    """Student's interval."""
    runs_a_higher: int
    """Number of runs in which a is higher."""
    runs_b_higher: int
    """Number of runs in which b is higher."""
    runs_equal: int
    """Number of runs in which both are equal."""
    estimand: str = THESE_LEVELS
    """What the number is about: these levels, or the generator of levels."""


def paired_difference(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    n_resamples: int = N_RESAMPLES,
) -> PairedDifference:
    """A - b, paired over runs: paired t and a percentile interval over runs.

    >>> d = paired_difference([3.0, 4.0, 6.0], [1.0, 1.0, 2.0], rng=np.random.default_rng(0))
    >>> d.difference, d.runs_a_higher
    (3.0, 3)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise UsageError(f"`a` and `b` must hold the same runs, but have {first.size} and {second.size}.")
    differences = finite_sample(first - second, "a - b")
    n = differences.size
    mean, error = float(differences.mean()), sem(differences)
    t = t_statistic(mean, error)
    return PairedDifference(
        n=n,
        mean_a=float(np.sort(first).mean()),
        mean_b=float(np.sort(second).mean()),
        difference=mean,
        sem=error,
        ci=mean_interval(differences, confidence=confidence, n_resamples=n_resamples, rng=rng),
        t=t,
        df=float(n - 1) if n > 1 else NAN,
        p=float(two_sided_p(t, n - 1)) if n > 1 else NAN,
        t_interval=t_interval(mean, error, n - 1, confidence=confidence) if n > 1 else NO_PAIR,
        runs_a_higher=int(np.count_nonzero(differences > 0)),
        runs_b_higher=int(np.count_nonzero(differences < 0)),
        runs_equal=int(np.count_nonzero(differences == 0)),
    )


@dataclass(frozen=True)
class AgentDifference:
    """Mean over the runs of agent a minus that of agent b."""

    n_a: int
    """Number of runs of agent a."""
    n_b: int
    """Number of runs of agent b."""
    mean_a: float
    """Mean over the runs of agent a."""
    mean_b: float
    """Mean over the runs of agent b."""
    sem_a: float
    """Standard error of `mean_a` over runs."""
    sem_b: float
    """Standard error of `mean_b` over runs."""
    difference: float
    """mean_a - mean_b."""
    ci: Pair
    """Percentile bootstrap interval; the runs of both agents are resampled."""
    t: float
    """Welch's t statistic."""
    df: float
    """Its degrees of freedom (Satterthwaite)."""
    p: float
    """Two-sided p of Welch's test."""
    t_interval: Pair
    """Student's interval with the test's standard error and df."""
    estimand: str = THESE_LEVELS
    """What the number is about: these levels, or the generator of levels."""


class AgentSample(NamedTuple):
    """The runs of an agent with what every comparison needs of them."""

    runs: Floats
    """In ascending order."""
    moments: Moments


def agent_sample(values: npt.ArrayLike, name: str) -> AgentSample:
    """The sample of an agent with these run values; `name` is the argument that an error names."""
    runs = finite_sample(values, name)
    return AgentSample(runs, moments(runs))


def difference_of_agents(
    a: AgentSample, b: AgentSample, *, rng: np.random.Generator, confidence: float, n_resamples: int
) -> AgentDifference:
    """A - b over runs: Welch's test, its t interval, and a percentile interval resampling both agents."""
    test = welch_of_moments(a.moments, b.moments)
    return AgentDifference(
        n_a=a.moments.n,
        n_b=b.moments.n,
        mean_a=a.moments.mean,
        mean_b=b.moments.mean,
        sem_a=a.moments.sem,
        sem_b=b.moments.sem,
        difference=test.difference,
        ci=difference_interval(a.runs, b.runs, confidence=confidence, n_resamples=n_resamples, rng=rng),
        t=test.t,
        df=test.df,
        p=test.p,
        t_interval=t_interval(test.difference, test.se, test.df, confidence=confidence),
    )


def share_from_training(train: AgentDifference, gap: AgentDifference) -> float:
    """The part of a difference in gaps that comes from training-level return; NaN if the gaps are equal."""
    return train.difference / gap.difference if gap.difference else NAN
