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

import math
from typing import NamedTuple

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
    Floats,
    Method,
    Pair,
    do_not_differ,
    finite_sample,
    sem,
)
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.welch import (
    Moments,
    moments,
    t_interval,
    t_statistic,
    two_sided_p,
    welch_of_moments,
)


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
    # Drawn whatever the method, so that what is drawn next does not depend on it.
    ends = mean_interval(differences, confidence=confidence, n_resamples=n_resamples, rng=rng)
    if method == "recommended":
        ends = t_interval(mean, error, df, confidence=confidence) if df else NO_PAIR
    return Estimate(
        value=mean, se=error, df=df or NAN, low=ends[0], high=ends[1], confidence=confidence,
        p=float(two_sided_p(t_statistic(mean, error), df)) if df else NAN, method=method,
    )  # fmt: skip


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
    a: AgentSample,
    b: AgentSample,
    *,
    rng: np.random.Generator,
    method: Method = "paper",
    confidence: float,
    n_resamples: int,
) -> Estimate:
    """A - b over runs: Welch's test with a percentile interval resampling both agents, or Behrens and Fisher's."""
    test = welch_of_moments(a.moments, b.moments)
    p = test.p
    if method == "recommended":
        p, (low, high) = recommended_difference(a, b, confidence=confidence)
    else:
        low, high = difference_interval(
            a.runs, b.runs, confidence=confidence, n_resamples=n_resamples, rng=rng
        )
    return Estimate(
        value=test.difference, se=math.hypot(a.moments.sem, b.moments.sem), df=test.df, low=low, high=high,
        confidence=confidence, p=p, method=method,
    )  # fmt: skip


def recommended_difference(a: AgentSample, b: AgentSample, *, confidence: float) -> tuple[float, Pair]:
    """The p and interval of a - b by Behrens and Fisher, as in the recommended calls; NaN where no agent's runs differ.

    Unlike Welch's test it keeps its level where one agent has few runs.

    >>> a, b = agent_sample([5.0, 6.0, 7.0], "a"), agent_sample([1.0, 2.0, 2.5, 1.5], "b")
    >>> round(recommended_difference(a, b, confidence=0.95)[0], 4)
    0.0198
    """
    if min(a.runs.size, b.runs.size) < 2:
        return NAN, NO_PAIR
    scale = float(np.abs(np.concatenate([a.runs, b.runs])).max())
    errors = [0.0 if do_not_differ(each.runs, scale=scale) else each.moments.sem for each in (a, b)]
    if not max(errors):
        is_equal = abs(a.moments.mean - b.moments.mean) <= ROUNDING * scale
        return (1.0 if is_equal else NAN), NO_PAIR
    parts = [VariancePart(error**2, each.runs.size - 1) for each, error in zip((a, b), errors, strict=True)]
    difference = a.moments.mean - b.moments.mean
    return two_part_p(difference, *parts), two_part_interval(difference, *parts, alpha=1 - confidence)
