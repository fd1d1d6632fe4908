"""Estimators that put the floor or the agents into the standard error where the paper's rows do not.

The floor-excess gap subtracts from the gap the difference between the level sets that random play shows too. The
stratified comparison estimates run-to-run variance within agents, so that a difference between agents is not
counted as noise.

References:
    Cochran, W. G. (1977). Sampling Techniques, 3rd ed. Wiley, ch. 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import (
    CONFIDENCE,
    NAN,
    NO_PAIR,
    PAPER_MARGIN,
    THESE_LEVELS,
    MarginRule,
    Pair,
    finite_sample,
)
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import equivalence_p, t_interval, t_statistic, two_sided_p


@dataclass(frozen=True)
class Excess:
    """gap - floor gap."""

    estimate: float = NAN
    """The mean gap over runs minus the floor's own gap."""
    se: float = NAN
    """Standard error: over runs, and over the floor's episodes."""
    df: float = NAN
    """Its degrees of freedom (Satterthwaite)."""
    p: float = NAN
    """Two-sided p of an excess of zero."""
    interval: Pair = NO_PAIR
    """Student's interval."""
    floor_gap: float = NAN
    """The floor's own train - test difference on the same draws."""
    floor_gap_se: float = NAN
    """Per-episode standard error of `floor_gap`."""
    estimand: str = THESE_LEVELS
    """What the number is about: these levels, or the generator of levels."""


def floor_excess_gap(
    gaps: npt.ArrayLike,
    floor_train: npt.ArrayLike,
    floor_test: npt.ArrayLike,
    *,
    confidence: float = CONFIDENCE,
) -> Excess:
    """The mean gap over runs minus the floor's own, with Satterthwaite's df over the three samples."""
    runs = finite_sample(gaps, "gaps")
    train = finite_sample(floor_train, "floor_train", minimum=2)
    test = finite_sample(floor_test, "floor_test", minimum=2)
    floor_gap = float(train.mean() - test.mean())
    excess = float(runs.mean()) - floor_gap
    parts = [x.var(ddof=1) / x.size for x in (train, test)]
    floor_se = float(np.sqrt(sum(parts)))
    if runs.size < 2:
        return Excess(excess, floor_gap=floor_gap, floor_gap_se=floor_se)
    parts.append(runs.var(ddof=1) / runs.size)
    df = float(satterthwaite(parts, [train.size - 1, test.size - 1, runs.size - 1]))
    se = float(np.sqrt(sum(parts)))
    p = float(two_sided_p(excess / se, df)) if se > 0 else NAN
    return Excess(excess, se, df, p, t_interval(excess, se, df, confidence=confidence), floor_gap, floor_se)


@dataclass(frozen=True)
class StratifiedComparison:
    """Delta to the floor with agents as strata; `p`, `p_tost` and `delta` serve `call_family`."""

    delta: float = NAN
    """Pooled mean over runs minus the floor's mean."""
    se: float = NAN
    """Its standard error, with run variance taken within agents."""
    df: float = NAN
    """Its degrees of freedom (Satterthwaite)."""
    p: float = NAN
    """Two-sided p, before any correction."""
    p_tost: float = NAN
    """p of the equivalence test at the margin."""
    estimand: str = THESE_LEVELS
    """What the number is about: these levels, or the generator of levels."""


def compare_to_floor_stratified(
    values_by_agent: Sequence[npt.ArrayLike],
    floor_returns: npt.ArrayLike,
    *,
    margin: MarginRule = PAPER_MARGIN,
) -> StratifiedComparison:
    """Delta of the pooled mean, its variance taken within agents (each weighted by its runs)."""
    if not values_by_agent:
        raise UsageError("`values_by_agent` must hold at least one agent.")
    agents = [finite_sample(values, "values_by_agent") for values in values_by_agent]
    floor = finite_sample(floor_returns, "floor_returns", minimum=2)
    n = sum(agent.size for agent in agents)
    delta = float(sum(agent.sum() for agent in agents) / n - floor.mean())
    if any(agent.size < 2 for agent in agents):
        return StratifiedComparison(delta)
    parts = [(agent.size / n) ** 2 * agent.var(ddof=1) / agent.size for agent in agents]
    parts.append(floor.var(ddof=1) / floor.size)
    df = float(satterthwaite(parts, [*(agent.size - 1 for agent in agents), floor.size - 1]))
    se = float(np.sqrt(sum(parts)))
    p = float(two_sided_p(t_statistic(delta, se), df))
    width = margin.at(float(floor.mean()))
    return StratifiedComparison(delta, se, df, p, float(equivalence_p(delta, se, df, margin=width)))
