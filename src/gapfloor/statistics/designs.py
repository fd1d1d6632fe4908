"""Designs of a study: runs, floor episodes and levels together, at what cost, and how far a pilot can be trusted.

Runs and floor episodes replace each other only up to a point: no number of runs makes up for a floor that is not
known well enough, and the other way round. So all of them are searched together. A pilot's own error matters as
much: planning with its estimates as if they were true gives too few runs in more than half of all pilots.

References:
    Browne, R. H. (1995). On the use of a pilot sample for sample size determination. Statistics in Medicine 14,
        1933-1940.
    O'Hagan, A., Stevens, J. W. and Campbell, M. J. (2005). Assurance in clinical trial design. Pharmaceutical
        Statistics 4, 187-201.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.component_power import (
    equivalence_power,
    power_of_parts,
    recommended_power,
)
from gapfloor.statistics.conventions import ALPHA, GENERATOR, THESE_LEVELS
from gapfloor.statistics.detectable import POWER
from gapfloor.statistics.power import MAX_EPISODES, MAX_RUNS, Effect, smallest_reaching
from gapfloor.statistics.reference_calls import LEAST_RUNS

#: Numbers of levels that a search tries, in steps of about a quarter.
_LEVELS = tuple(round(10 * 1.25**i) for i in range(32))
#: Share of equally likely truths, given the pilot, in which the advised design must reach its power.
ASSURANCE = 0.8
_TRUTHS = 25
#: Never advise a smaller floor: the mean of a few episodes of random play is far from normal.
LEAST_FLOOR = 32


@dataclass(frozen=True)
class Costs:
    """What a study pays, all in one unit (e.g. GPU hours)."""

    run: float
    """Training one run."""
    floor_episode: float
    """One episode of random play."""
    level: float = 0.0
    """Playing one run on one level, as often as planned."""

    def of(self, n_runs: int, n_floor: int, n_levels: int | None) -> float:
        """The cost of a design."""
        return n_runs * (self.run + self.level * (n_levels or 0)) + n_floor * self.floor_episode


@dataclass(frozen=True)
class StudyDesign:
    """A number of runs, floor episodes and (for claims about the generator) levels, with power and cost."""

    n_runs: int
    n_floor: int
    n_levels: int | None
    power: float
    cost: float


@dataclass(frozen=True)
class PilotEstimate:
    """What a pilot found for one comparison, with the sizes that tell how far to trust it."""

    delta: float
    run_sd: float
    n_runs: int
    floor_sd: float
    n_floor: int

    @property
    def effect(self) -> Effect:
        """The estimates taken as true."""
        return Effect(self.delta, self.run_sd, self.floor_sd)


def cheapest_design(
    effect: Effect,
    *,
    costs: Costs,
    estimand: str = THESE_LEVELS,
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
) -> StudyDesign | None:
    """The cheapest runs, floor episodes and levels that reach `power`; None if none up to the limits does.

    Args:
        effect: the difference to find and the standard deviations behind it.
        costs: of runs, floor episodes and levels.
        estimand: THESE_LEVELS, or GENERATOR to search the number of levels too.
        family_size: games in Holm's family; the power is that of its first, hardest step.
        alpha: level of the call.
        power: to reach.

    >>> bigfish = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
    >>> design = cheapest_design(bigfish, costs=Costs(run=1.0, floor_episode=0.001), family_size=8)
    >>> (design.n_runs, design.n_floor) if design else None
    (15, 239)
    """

    def power_at(n_runs: int, n_floor: int, n_levels: int | None) -> float:
        return recommended_power(
            effect, n_runs=n_runs, n_floor=n_floor, n_levels=n_levels, family_size=family_size, alpha=alpha
        )

    return _cheapest(power_at, costs, _levels_of(estimand), power)


def cheapest_equivalence_design(
    effect: Effect,
    *,
    costs: Costs,
    margin: float,
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
) -> StudyDesign | None:
    """The cheapest runs and floor episodes with which runs at `effect.delta` (usually 0) are called equivalent."""

    def power_at(n_runs: int, n_floor: int, _: int | None) -> float:
        return equivalence_power(
            effect, n_runs=n_runs, n_floor=n_floor, margin=margin, family_size=family_size, alpha=alpha
        )

    return _cheapest(power_at, costs, (None,), power)


def assured_design(
    pilot: PilotEstimate,
    *,
    costs: Costs,
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
    smallest_delta: float | None = None,
) -> StudyDesign | None:
    """The cheapest runs and floor episodes that reach `power` with ASSURANCE, given what the pilot leaves open."""

    def power_at(n_runs: int, n_floor: int, _: int | None) -> float:
        return assured_power(
            pilot,
            n_runs=n_runs,
            n_floor=n_floor,
            family_size=family_size,
            alpha=alpha,
            smallest_delta=smallest_delta,
        )[1]

    return _cheapest(power_at, costs, (None,), power)


def best_design(
    effect: Effect,
    *,
    costs: Costs,
    budget: float,
    estimand: str = THESE_LEVELS,
    family_size: int = 1,
    alpha: float = ALPHA,
) -> StudyDesign | None:
    """The design with the highest power that costs at most `budget`; None if it does not pay for the least runs."""
    if not (costs.run > 0 and costs.floor_episode > 0):
        raise UsageError("A budget can only be divided if a run and a floor episode cost something.")
    best: StudyDesign | None = None
    for n_runs in _run_counts():
        if costs.of(n_runs, 2, None) > budget:
            break
        for n_levels in _levels_of(estimand):
            left = budget - costs.of(n_runs, 0, n_levels)
            n_floor = min(int(left / costs.floor_episode), MAX_EPISODES)
            if n_floor < 2:
                break
            found = recommended_power(
                effect,
                n_runs=n_runs,
                n_floor=n_floor,
                n_levels=n_levels,
                family_size=family_size,
                alpha=alpha,
            )
            if best is None or found > best.power:
                best = StudyDesign(n_runs, n_floor, n_levels, found, costs.of(n_runs, n_floor, n_levels))
    return best


def assured_power(
    pilot: PilotEstimate,
    *,
    n_runs: int,
    n_floor: int,
    family_size: int = 1,
    alpha: float = ALPHA,
    smallest_delta: float | None = None,
) -> tuple[float, float]:
    """Expected power, and the power that the design reaches in a share ASSURANCE of the truths the pilot allows.

    The truths are equally likely quantiles of the run variance (chi-square) and, given it, of delta (normal): what
    the pilot says with flat priors. With `smallest_delta` the difference worth finding is stated instead of
    estimated, and only the variance is uncertain (Browne).
    """
    if pilot.n_runs < 2:
        raise UsageError(f"A pilot needs at least 2 runs, but has {pilot.n_runs}.")
    middle = (np.arange(_TRUTHS) + 0.5) / _TRUTHS
    ratio = special.chdtri(pilot.n_runs - 1, 1 - middle) / (pilot.n_runs - 1)
    run_variance = (pilot.run_sd**2 / ratio)[:, None]
    floor_variance = pilot.floor_sd**2
    if smallest_delta is None:
        error = np.sqrt(run_variance / pilot.n_runs + floor_variance / pilot.n_floor)
        delta = abs(pilot.delta) + error * special.ndtri(middle)[None, :]
    else:
        delta = np.full((_TRUTHS, 1), abs(smallest_delta))
    variances = np.stack(
        np.broadcast_arrays(run_variance / n_runs, np.full(delta.shape, floor_variance / n_floor)), axis=-1
    )
    found = power_of_parts(
        delta,
        variances,
        np.array([n_runs - 1.0, n_floor - 1.0]),
        alpha=alpha / family_size,
        is_below=pilot.delta < 0,
    )
    # A call in the other direction than the pilot's is not what was planned for.
    found = np.where(delta > 0, found, 0.0)
    return float(found.mean()), float(np.quantile(found, 1 - ASSURANCE))


def assured_runs(
    pilot: PilotEstimate,
    *,
    n_floor: int,
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
    smallest_delta: float | None = None,
) -> int | None:
    """The fewest runs whose power is reached in a share ASSURANCE of the truths that the pilot allows.

    None where no number of runs does, usually because the pilot leaves the sign of the difference open: then state
    the smallest difference worth finding.
    """
    found = smallest_reaching(
        lambda n: assured_power(
            pilot,
            n_runs=n,
            n_floor=n_floor,
            family_size=family_size,
            alpha=alpha,
            smallest_delta=smallest_delta,
        )[1],
        power,
        MAX_RUNS,
    )
    return None if found is None else max(found, LEAST_RUNS)


def careful_floor_sd(run_sd: float, *, n_episodes: int) -> float:
    """A careful guess of the standard deviation of floor episodes where no floor has been measured yet.

    The SEM of a floor of `n_episodes` is taken as half of the standard deviation between runs. In the paper's eight
    games (384 episodes) it lies between .03 and .47 of it.
    """
    return run_sd / 2 * math.sqrt(n_episodes)


def _cheapest(
    power_at: Callable[[int, int, int | None], float],
    costs: Costs,
    levels: Sequence[int | None],
    power: float,
) -> StudyDesign | None:
    """The cheapest design that reaches `power`: for each number of runs and levels the fewest floor episodes."""
    best: StudyDesign | None = None
    for n_runs in _run_counts():
        if best is not None and costs.of(n_runs, 2, None) >= best.cost:
            break
        for n_levels in levels:
            if best is not None and costs.of(n_runs, 2, n_levels) >= best.cost:
                break
            if power_at(n_runs, MAX_EPISODES, n_levels) < power:
                continue

            def with_floor(n_floor: int, runs: int = n_runs, among: int | None = n_levels) -> float:
                return power_at(runs, n_floor, among)

            # The largest number reaches the power, so there is a smallest.
            n_floor = max(smallest_reaching(with_floor, power, MAX_EPISODES) or MAX_EPISODES, LEAST_FLOOR)
            cost = costs.of(n_runs, n_floor, n_levels)
            if best is None or cost < best.cost:
                best = StudyDesign(n_runs, n_floor, n_levels, with_floor(n_floor), cost)
    return best


def _levels_of(estimand: str) -> tuple[int | None, ...]:
    if estimand not in (THESE_LEVELS, GENERATOR):
        raise UsageError(f"`estimand` must be '{THESE_LEVELS}' or '{GENERATOR}', but is '{estimand}'.")
    return (None,) if estimand == THESE_LEVELS else _LEVELS


def _run_counts() -> Iterator[int]:
    """Every number of runs up to 40, then steps of a twentieth."""
    n = LEAST_RUNS
    while n <= MAX_RUNS:
        yield n
        n += max(1, n // 20 if n >= 40 else 1)
