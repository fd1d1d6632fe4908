"""Differences between two measurements of the same runs, and between the runs of two agents.

The paper's rd (rules), gd (gaps) and mg (merged - greedy) are paired over runs; its encoder differences are
Welch over runs, pooled over draws and one draw at a time.

References:
    Student (1908). The probable error of a mean. Biometrika, 6(1), 1-25.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.behrens_fisher import VariancePart, two_part_interval, two_part_p
from gapfloor.statistics.bootstrap import difference_interval, mean_interval
from gapfloor.statistics.conventions import (
    CONFIDENCE,
    N_RESAMPLES,
    NAN,
    NO_PAIR,
    ROUNDING,
    Estimate,
    Method,
    do_not_differ,
    finite_sample,
    sem,
)
from gapfloor.statistics.welch import moments, t_interval, t_statistic, two_sided_p, welch_of_moments


def paired_difference(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    method: Method = "paper",
    confidence: float = CONFIDENCE,
    n_resamples: int = N_RESAMPLES,
) -> Estimate:
    """A - b, paired over runs: the paired t-test, with a percentile interval over runs or Student's.

    >>> d = paired_difference([3.0, 4.0, 6.0], [1.0, 1.0, 2.0], rng=np.random.default_rng(0))
    >>> d.value, d.df
    (3.0, 2.0)
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape:
        raise UsageError(f"`a` and `b` must hold the same runs, but have {first.size} and {second.size}.")
    differences = finite_sample(first - second, "a - b")
    df = float(differences.size - 1)
    mean, error = float(differences.mean()), sem(differences)
    ends = NO_PAIR
    if df:
        # Drawn whatever the method, so that what is drawn next does not depend on it.
        ends = mean_interval(differences, confidence=confidence, n_resamples=n_resamples, rng=rng)
        ends = t_interval(mean, error, df, confidence=confidence) if method == "recommended" else ends
    return Estimate(
        value=mean, se=error, df=df or NAN, low=ends[0], high=ends[1], confidence=confidence,
        p=float(two_sided_p(t_statistic(mean, error), df)) if df else NAN, method=method,
    )  # fmt: skip


def difference_of_agents(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    method: Method = "paper",
    confidence: float = CONFIDENCE,
    n_resamples: int = N_RESAMPLES,
) -> Estimate:
    """A - b over runs: Welch's test with a percentile interval resampling both agents, or Behrens and Fisher's.

    Unlike Welch's test, that of Behrens and Fisher keeps its level where one agent has few runs.

    >>> runs = [5.0, 6.0, 7.0], [1.0, 2.0, 2.5, 1.5]
    >>> round(difference_of_agents(*runs, rng=np.random.default_rng(0), method="recommended").p, 4)
    0.0198
    """
    runs = finite_sample(a, "a"), finite_sample(b, "b")
    own, other = map(moments, runs)
    test = welch_of_moments(own, other)
    p, ends = test.p, NO_PAIR
    if min(own.n, other.n) < 2:
        p = NAN
    elif method == "paper":
        ends = difference_interval(*runs, confidence=confidence, n_resamples=n_resamples, rng=rng)
    else:
        scale = float(np.abs(np.concatenate(runs)).max())
        errors = [0.0 if do_not_differ(values, scale=scale) else sem(values) for values in runs]
        if not max(errors):
            p = 1.0 if abs(test.difference) <= ROUNDING * scale else NAN
        else:
            parts = VariancePart(errors[0] ** 2, own.n - 1), VariancePart(errors[1] ** 2, other.n - 1)
            p = two_part_p(test.difference, *parts)
            ends = two_part_interval(test.difference, *parts, alpha=1 - confidence)
    return Estimate(
        value=test.difference, se=math.hypot(own.sem, other.sem), df=test.df, low=ends[0], high=ends[1],
        confidence=confidence, p=p, method=method,
    )  # fmt: skip
