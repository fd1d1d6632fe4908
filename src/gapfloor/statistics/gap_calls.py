"""The recommended test of a generalization gap: the excess over the floor's gap, for new runs on new levels.

The runs' return on each level is compared with the floor's on the same level, runs and levels are both samples
(`level_crossing`), the variances of runs and of levels keep their own degrees of freedom (`behrens_fisher`), and Holm's
procedure runs over the games. Without level seeds, or without levels that the floor and every run have played, a gap
is not tested.

The floor enters as a control variate with an estimated slope: excess = gap - slope * floor gap. With level sets that
are samples of one generator every slope is unbiased, and the estimated one has the smallest variance. Where the two
sets may come from different generators only slope one takes out their whole difference, so that version is kept next
to it.

References:
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
        65-70.
    Glasserman, P. (2003). Monte Carlo Methods in Financial Engineering, section 4.1 (control variates). Springer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gapfloor.errors import UsageError
from gapfloor.statistics.behrens_fisher import VariancePart, two_part_interval, two_part_p
from gapfloor.statistics.conventions import (
    ALPHA,
    NAN,
    ROUNDING,
    Floats,
    Pair,
    do_not_differ,
    sem,
)
from gapfloor.statistics.families import FamilyCall, holm, holm_divisors, word_of
from gapfloor.statistics.gaps import GAP_WORDS
from gapfloor.statistics.level_crossing import (
    Episodes,
    LevelTable,
    crossed_parts,
    level_table,
    reference_slope,
)
from gapfloor.statistics.reference_calls import LEAST_RUNS
from gapfloor.statistics.satterthwaite import satterthwaite
from gapfloor.statistics.welch import t_statistic, two_sided_p

GapWord = Literal["train higher", "test higher", "not distinguishable", "not tested"]

#: With fewer common levels in a set the slope is one instead of estimated: it would cost more than it saves.
LEVELS_FOR_SLOPE = 20


@dataclass(frozen=True, kw_only=True)
class ExcessTest:
    """A gap's excess over the floor's gap, on the levels that every run and the floor have played."""

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

    def interval(self, *, alpha: float) -> Pair:
        """Of the excess at 1 - alpha: it excludes zero exactly where p < alpha."""
        return two_part_interval(self.excess, *self.parts, alpha=alpha)


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
    tables = [level_table(train, train_floor), level_table(test, test_floor)]
    if tables[0] is None or tables[1] is None:
        return ExcessTest(not_tested="fewer than two common levels")
    if len(train) < least_runs:
        return ExcessTest(not_tested=f"{len(train)} run{'' if len(train) == 1 else 's'}")
    if all(do_not_differ(table.values) for table in tables if table):
        return ExcessTest(not_tested="the returns of a level set do not differ")
    return _tested(tables[0], tables[1])


def call_gap_family(tests: Sequence[ExcessTest], *, alpha: float = ALPHA) -> tuple[FamilyCall, ...]:
    """The recommended calls of a family of gaps, in the order given; untested gaps do not count in it."""
    adjusted = [holm([getattr(one, name) for one in tests]) for name in ("p", "p_plain", "p_runs")]
    divisors = holm_divisors([one.p for one in tests], alpha=alpha)
    return tuple(
        FamilyCall(
            test=one,
            # The unadjusted p is compared, so that rounding cannot part call and interval.
            call=word_of(one.p, one.excess, GAP_WORDS, alpha=alpha / max(divisor, 1)),
            p_holm=float(p),
            p_plain_holm=float(plain),
            p_runs_holm=float(runs),
            divisor=int(divisor),
            family_size=int(np.count_nonzero(divisors)),
            alpha=alpha,
            not_tested=one.not_tested,
        )
        for one, divisor, p, plain, runs in zip(tests, divisors, *adjusted, strict=True)
    )


def _tested(train: LevelTable, test: LevelTable) -> ExcessTest:
    n_levels = (train.weights.size, test.weights.size)
    one = np.ones(())
    slope = reference_slope((train, test)) if min(n_levels) >= LEVELS_FOR_SLOPE else one
    estimate, parts = _estimate(train, test, slope)
    plain, plain_parts = _estimate(train, test, one)
    raw = crossed_parts([(1.0, train.values, train.weights), (-1.0, test.values, test.weights)])
    error = sem(raw.by_run)
    return ExcessTest(
        slope=float(slope),
        excess=estimate,
        se=float(np.sqrt(sum(part.variance for part in parts))),
        parts=parts,
        p=two_part_p(estimate, *parts),
        plain_excess=plain,
        p_plain=two_part_p(plain, *plain_parts),
        p_runs=float(two_sided_p(t_statistic(float(raw.estimate), error), raw.by_run.size - 1)),
        n_levels=n_levels,
    )


def _estimate(train: LevelTable, test: LevelTable, slope: Floats) -> tuple[float, tuple[VariancePart, ...]]:
    found = crossed_parts([(1.0, train.minus(slope), train.weights), (-1.0, test.minus(slope), test.weights)])
    # What is left of equal numbers is rounding error, not a difference.
    least = ROUNDING * float(max(np.abs(table.values).max() for table in (train, test)))
    runs, *levels = np.where(found.variances > least**2, found.variances, 0.0)
    df = float(satterthwaite(levels, list(found.dfs[1:])))
    parts = VariancePart(float(runs), float(found.dfs[0])), VariancePart(float(sum(levels)), df)
    estimate = float(found.estimate)
    return (estimate if abs(estimate) > least else 0.0), parts
