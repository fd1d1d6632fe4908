"""Runs and floor episodes that a call against the floor needs: from a pilot, or from numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.compared import comparisons, in_families
from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.grouping import group
from gapfloor.analysis.inputs import Inputs
from gapfloor.analysis.planned_study import PlannedStudy
from gapfloor.api.analyse import arrow_table
from gapfloor.api.keyword_settings import read_settings, takes
from gapfloor.errors import UsageError
from gapfloor.machine import one_blas_thread
from gapfloor.plan.lock import load_plan
from gapfloor.plan.model import Method, Plan
from gapfloor.statistics.conventions import ALPHA, NAN, ROUNDING, check_sizes
from gapfloor.statistics.power import POWER, PlannedComparison, StudyDesign
from gapfloor.tables.cells import counted
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of

#: Floor episodes where neither a floor nor its size is known, as in the paper.
USUAL_FLOOR = 384


@dataclass(frozen=True, kw_only=True)
class ComparisonPower:
    """What one comparison with the floor needs."""

    game: str = ""
    """The game; empty where numbers were given."""
    budget: str = ""
    """Label of the training budget."""
    rule: str = ""
    """The rule of the pilot's comparison."""
    level_set: str = ""
    """The level set of the pilot's comparison."""
    delta: float
    """The difference to find."""
    n_runs: int
    """Runs of the pilot."""
    n_floor: int
    """Floor episodes of the pilot."""
    family_size: int
    """Games in Holm's family."""
    floor_is_guessed: bool = False
    """Whether no floor was given, so that a careful guess of its spread is used."""
    power_now: float = NAN
    """Power of a study as large as the pilot; NaN where nothing can be computed."""
    design: StudyDesign | None = None
    """Runs and floor episodes that reach the power together; None if no design does."""
    power_if_skewed: float = NAN
    """Power of the design if run values are exponential, with the long tail to the right; NaN for the paper's calls."""
    reason: str = ""
    """Why nothing can be computed; empty where it can."""

    @property
    def label(self) -> str:
        """The comparison in words."""
        named = " ".join(part for part in (self.game, self.budget, self.rule, self.level_set) if part)
        return named or "the comparison"


@dataclass(frozen=True, kw_only=True, repr=False)
class PowerAdvice(ReadableResult):
    """What every comparison of a pilot needs."""

    row_names = ("comparisons",)

    power: float
    """The power to reach."""
    alpha: float
    """Level of the calls."""
    method: Method
    """Whose calls: the paper's or the recommended ones."""
    comparisons: tuple[ComparisonPower, ...]
    """In the order of the tables."""

    def table(self) -> Table:
        """What each comparison needs."""
        rows = [
            {
                "comparison": each.label, "delta": each.delta, "n_runs": each.n_runs, "n_floor": each.n_floor,
                "power": each.power_now, "needed_runs": each.design and each.design.n_runs,
                "needed_floor": each.design and each.design.n_floor, "skewed": each.power_if_skewed,
            }
            for each in self.comparisons
        ]  # fmt: skip
        return table_of("power", rows)

    def sentences(self) -> list[str]:
        """Whose power this is, and what it cannot know."""
        calls = "the recommended calls" if self.method == "recommended" else "the paper's calls"
        size = self.comparisons[0].family_size
        games = counted(size, "game") + (" (at its first, hardest step)" if size > 1 else "")
        guessed = "The spread of a floor that was not given is a careful guess."
        return [
            f"For {self.power:.0%} power at alpha {self.alpha:g} after Holm over {games}, by {calls}; – where no "
            "number reaches it.",
            *(f"{each.label}: {each.reason}." for each in self.comparisons if each.reason),
            *([guessed] if any(each.floor_is_guessed for each in self.comparisons) else []),
            "The differences are taken as true. Where a few runs leave them open, give the smallest difference worth "
            "finding as delta.",
        ]


@one_blas_thread()
@takes(TableOptions)
def power(
    pilot: Source = None,
    *,
    delta: float | None = None,
    sem: float | None = None,
    runs: int | None = None,
    floor_sem: float | None = None,
    floor_episodes: int | None = None,
    plan: str | Path | None = None,
    rule: str | None = None,
    level_set: str = "test",
    family: int | None = None,
    wanted: float = POWER,
    alpha: float | None = None,
    **settings: Any,
) -> PowerAdvice:
    """Compute the numbers of runs and floor episodes that reach a given power.

    From a pilot (a store or a file of episodes), or from `delta`, `sem` and `runs`. Runs and floor episodes are
    searched together. An additional run is preferred to more than 1,000 additional floor episodes.

    Args:
        pilot: A store or a file of episodes, in any form that `analyse` reads.
        delta: Without a pilot: the smallest difference from the floor that you want to find.
        sem: Without a pilot: the SEM over the runs of `runs`.
        runs: Without a pilot: the number of runs that `sem` is for.
        floor_sem: Without a pilot: the floor's SEM (default: half of the standard deviation between runs).
        floor_episodes: Without a pilot: the number of episodes that `floor_sem` is for (default: 384).
        plan: Take alpha, the method and the primary rule from this plan (default: the recommended calls).
        rule: Rule of the pilot's comparisons (default: the plan's primary rule).
        level_set: Level set of the pilot's comparisons.
        family: Number of games in the family (default: those of the pilot, or 1).
        wanted: The power to reach.
        alpha: Level of the calls (default: the plan's, or 0.05).
        **settings: The fields of `TableOptions`.

    Returns:
        The runs and floor episodes that reach the power, for each comparison.

    Command line:
        gapfloor power gapfloor-store
        gapfloor power --delta 0.88 --sem 0.29 --runs 6 --floor-sem 0.24 --family 8

    Examples:
        A difference of 2 with a standard error of 0.6 over three runs:

        >>> import gapfloor
        >>> advice = gapfloor.power(delta=2.0, sem=0.6, runs=3)
        >>> advice.comparisons[0].power_now < 0.8 < advice.comparisons[0].design.power
        True
    """
    options = read_settings(TableOptions, settings)
    if pilot is not None and any(each is not None for each in (delta, sem, runs, floor_sem, floor_episodes)):
        raise UsageError("Give a pilot, or delta, sem and runs, not both.")
    content = load_plan(Path(plan)).plan if plan is not None else None
    if alpha is None:
        alpha = content.floor.alpha if content is not None else ALPHA
    for name, value in (("power", wanted), ("alpha", alpha)):
        if not 0 < value < 1:
            raise UsageError(f"The {name} must lie between 0 and 1, but is {value}.")
    check_sizes({"delta": delta, "SEM": sem, "floor's SEM": floor_sem, "alpha": alpha, "power": wanted})
    if family is not None and family < 1:
        raise UsageError(f"A family has at least 1 game, but this one has {family}.")
    method: Method = "recommended" if content is None else content.method or "paper"
    test: dict[str, Any] = {"method": method, "alpha": alpha}
    if pilot is not None:
        inputs = read_inputs(arrow_table(pilot), options=options)
        rows = _of_pilot(inputs, content or Plan.paper(), rule, level_set, family, wanted, **test)
    else:
        missing = [name for name, value in (("delta", delta), ("sem", sem), ("runs", runs)) if value is None]
        if delta is None or sem is None or runs is None:
            raise UsageError(f"Without a pilot these must be given too: {', '.join(missing)}.")
        if sem <= 0 or (floor_sem is not None and floor_sem < 0):
            raise UsageError("The SEM over runs must be positive, and the floor's SEM must not be negative.")
        if runs < 2:
            raise UsageError(f"A SEM over runs needs at least 2 runs, but there are {runs}.")
        n_floor = USUAL_FLOOR if floor_episodes is None else floor_episodes
        if n_floor < 2:
            raise UsageError(f"A floor needs at least 2 episodes, but has {n_floor}.")
        run_sd = sem * math.sqrt(runs)
        # A careful guess: in the paper's eight games the floor's SEM is .03 to .47 of the standard deviation between
        # runs.
        floor_sd = (run_sd / 2 if floor_sem is None else floor_sem) * math.sqrt(n_floor)
        planned = PlannedComparison(delta, run_sd, floor_sd, family_size=family or 1, **test)
        rows = [_answer(planned, runs, n_floor, wanted, floor_is_guessed=floor_sem is None)]
    return PowerAdvice(power=wanted, alpha=alpha, method=method, comparisons=tuple(rows))


def _of_pilot(
    inputs: Inputs,
    plan: Plan,
    rule: str | None,
    level_set: str,
    family: int | None,
    wanted: float,
    **test: Any,
) -> list[ComparisonPower]:
    """What the pilot's comparisons need, under one rule (the plan's primary) on one level set."""
    context = PlannedStudy(group(inputs, plan), plan)
    asked = (rule or plan.scope.primary_rule, level_set)
    rows = []
    for members in in_families(comparisons(context)):
        for one in members:
            # Over different runs: copies of a run tell nothing about the spread between runs.
            values = one.values("recommended")
            floor = np.sort(one.floor.units)
            if (one.labels["rule"], one.labels["level_set"]) != asked or values.size < 2:
                continue
            planned = PlannedComparison(
                delta=float(values.mean() - floor.mean()),
                run_sd=float(values.std(ddof=1)),
                floor_sd=float(floor.std(ddof=1)),
                family_size=family or len(members),
                **test,
            )
            labels = {name: one.labels[name] for name in ("game", "budget", "rule", "level_set")}
            size = ROUNDING * (abs(planned.delta) + planned.floor_sd)
            alike = "runs" if planned.run_sd <= size else "floor episodes" if planned.floor_sd <= size else ""
            if alike:
                labels["reason"] = (
                    f"the pilot's {alike} do not differ, so nothing is known about the spread of others"
                )
            rows.append(_answer(planned, values.size, floor.size, wanted, **labels))
    if not rows:
        raise UsageError(
            f"The pilot has no comparison under the rule '{asked[0]}' on '{level_set}' levels with two runs and a "
            "floor."
        )
    return rows


def _answer(
    planned: PlannedComparison, n_runs: int, n_floor: int, wanted: float, **said: Any
) -> ComparisonPower:
    """What a planned comparison needs; nothing where a reason is said why it cannot be known."""
    known: dict[str, Any] = {}
    if not said.get("reason"):
        design = planned.smallest_design(wanted)
        known = {"power_now": planned.power(n_runs, n_floor), "design": design}
        if design is not None and planned.method == "recommended":
            known["power_if_skewed"] = planned.skewed_power(design.n_runs, design.n_floor)
    return ComparisonPower(
        delta=planned.delta, n_runs=n_runs, n_floor=n_floor, family_size=planned.family_size, **known, **said
    )
