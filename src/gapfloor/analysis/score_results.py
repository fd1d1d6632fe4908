"""Rows of normalised scores and of the suite's robust summaries."""

from __future__ import annotations

from dataclasses import dataclass, field

from gapfloor.analysis.row import Row
from gapfloor.json_values import inlined
from gapfloor.statistics.aggregate import PerformanceProfile


@dataclass(frozen=True, kw_only=True)
class NormalisedResult(Row):
    """(R - R_min)/(R_max - R_min) of a pooled mean; game "mean" is the unweighted suite mean."""

    rule: str
    """A rule, or "uniform" for the floor."""
    level_set: str
    """`train` or `test` (held-out)."""
    score: float
    """(mean - r_min) / (r_max - r_min)."""
    r_min: float
    """The return that counts as 0: the published constant, or the floor; NaN for the suite mean."""
    r_max: float
    """The return that counts as 1: the published constant, or the plan's upper reference; NaN for the suite mean."""


@dataclass(frozen=True, kw_only=True)
class ProfileResult(Row):
    """IQM and performance profile of normalised run scores over all games, in addition to the suite mean.

    Intervals resample runs within games (stratified percentile bootstrap). `game` is "mean".
    """

    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    profile: PerformanceProfile = field(metadata=inlined())
    """Interquartile mean over all games, and the fraction of runs above each tau."""
    p_improvement: float
    """Mean over games of P(policy episode > floor episode) + half of ties."""
