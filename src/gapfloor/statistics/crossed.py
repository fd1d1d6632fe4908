"""Two agents on the same levels: their difference for new runs on new levels, and how many runs would settle it.

The levels are shared, so what makes a level easy or hard for both agents cancels; the runs are not, so each agent
brings its own run-to-run variance. Both contain the residual of a run on a level, so it is subtracted
once: V = V_run(a) + V_run(b) + V_level - V_residual(a) - V_residual(b), with Satterthwaite's df.

References:
    Cameron, A. C., Gelbach, J. B. & Miller, D. L. (2011). Robust inference with multiway clustering. Journal of
    Business & Economic Statistics, 29(2), 238-249.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gapfloor.statistics.conventions import ALPHA, CONFIDENCE, GENERATOR, NAN, Floats
from gapfloor.statistics.estimate import Estimate
from gapfloor.statistics.level_crossing import Episodes, crossed_sources, level_table
from gapfloor.statistics.power import MAX_RUNS, POWER, power_of_t, smallest_reaching
from gapfloor.statistics.satterthwaite import satterthwaite

_METHOD = "paired by level"
#: Runs of an agent: each its episode returns and level seeds.
Runs = Sequence[Episodes]


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
    sets: Sequence[tuple[float, Runs, Runs]], *, confidence: float = CONFIDENCE
) -> CrossedDifference:
    """The difference over level sets: `[(1, a, b)]` for a return, `[(1, ...train), (-1, ...test)]` for a gap.

    Runs keep their order from set to set.
    """
    played: list[tuple[float, Sequence[Floats], Floats]] = []
    for sign, a, b in sets:
        table = level_table([*a, *b])
        if table is None:
            unpaired = Estimate(value=NAN, estimand=GENERATOR, method=_METHOD)
            return CrossedDifference(unpaired, unpaired, 0)
        played.append((sign, (table.values[: len(a)], table.values[len(a) :]), table.weights))
    found = crossed_sources(played)
    return CrossedDifference(
        new_runs=found.for_new_runs(confidence=confidence, method=_METHOD),
        these_runs=found.for_these_runs(confidence=confidence, method=_METHOD),
        n_levels=sum(weights.size for _, _, weights in played),
    )


def runs_to_settle(
    sd_a: float,
    sd_b: float,
    difference: float,
    *,
    family_size: int,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """Runs of each agent with which Welch's test finds `difference` on these levels; None if out of reach.

    The level of the test is that of Holm's first, hardest step.
    """
    if not (difference and math.isfinite(sd_a + sd_b)):
        return None

    def power_at(n: int) -> float:
        first, second = sd_a**2 / n, sd_b**2 / n
        if first + second == 0:
            return 1.0
        df = float(satterthwaite((first, second), (n - 1, n - 1)))
        return power_of_t(difference, se=math.sqrt(first + second), df=df, alpha=alpha / family_size)

    return smallest_reaching(power_at, power, MAX_RUNS)
