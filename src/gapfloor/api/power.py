"""How many runs, floor episodes and levels a call needs: from a pilot, or from numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.pilot import PilotComparison, read_pilot
from gapfloor.api.analyse import arrow_table
from gapfloor.api.keyword_settings import read_settings, takes
from gapfloor.api.power_text import power_sentences
from gapfloor.api.table_settings import TableSettings
from gapfloor.errors import UsageError
from gapfloor.machine import one_blas_thread
from gapfloor.plan.lock import load_plan
from gapfloor.plan.model import Method
from gapfloor.statistics.component_power import (
    floor_episodes_for_equivalence,
    recommended_power,
    simulate_recommended_family,
)
from gapfloor.statistics.conventions import ALPHA, GENERATOR, NAN, check_sizes
from gapfloor.statistics.designs import (
    Costs,
    PilotEstimate,
    StudyDesign,
    assured_design,
    best_design,
    careful_floor_sd,
    cheapest_design,
)
from gapfloor.statistics.detectable import POWER
from gapfloor.statistics.power import (
    MAX_EPISODES,
    MAX_RUNS,
    Effect,
    floor_power,
    required_levels,
    simulate_family,
    smallest_reaching,
)
from gapfloor.text_tables import ReadableResult, TextTable

#: Costs in units of one run: a thousand floor episodes, or one run played on a thousand levels, cost as much as a run.
DEFAULT_COSTS = Costs(run=1.0, floor_episode=0.001, level=0.001)
#: Floor episodes where neither a floor nor its size is known, as in the paper.
USUAL_FLOOR = 384
#: Games in all simulated families together; more would take gigabytes.
MOST_SIMULATED = 20_000_000


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
    power_now: float
    """Power of a study as large as the pilot."""
    required_runs: int | None
    """Fewest runs with the pilot's floor episodes; None if no number reaches the power."""
    required_floor_episodes: int | None
    """Fewest floor episodes with the pilot's runs; None if no number reaches the power."""
    design: StudyDesign | None
    """The cheapest runs and floor episodes together."""
    assured: StudyDesign | None
    """The cheapest ones that reach the power in 80% of the truths which the pilot allows."""
    affordable: StudyDesign | None = None
    """The design with the highest power for the stated budget."""
    floor_episodes_for_equivalence: int | None = None
    """Floor episodes with which policies that equal the floor can be called equivalent; None without a pilot."""
    n_levels: int | None = None
    """Levels that all runs of the pilot and its floor played; None without level seeds."""
    required_levels: int | None = None
    """Fewest levels with the pilot's runs, for a claim about the generator."""
    generator_design: StudyDesign | None = None
    """The cheapest runs and levels together, for a claim about the generator."""
    simulated_power: float | None = None
    """Power of `design` in simulated families whose other games have no difference."""
    simulation_error: float | None = None
    """Its Monte Carlo error."""


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
    costs: Costs
    """Of runs, floor episodes and levels."""
    comparisons: tuple[ComparisonPower, ...]
    """In the order of the tables."""
    budget: float | None = None
    """The stated budget per game."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor power --json` prints."""
        plain = super().to_dict()
        del plain["budget"]
        return plain

    def tables(self) -> list[TextTable]:
        """None: each comparison is a few lines."""
        return []

    def sentences(self) -> list[str]:
        """The designs that each comparison needs."""
        return power_sentences(self)


@dataclass(frozen=True)
class _Aim:
    """What a comparison must reach, by which method and at what cost."""

    method: Method
    family_size: int
    alpha: float
    power: float
    costs: Costs
    budget: float | None
    smallest_delta: float | None

    def power_of(self, effect: Effect, n_runs: int, n_floor: int) -> float:
        formula = recommended_power if self.method == "recommended" else floor_power
        return formula(effect, n_runs=n_runs, n_floor=n_floor, family_size=self.family_size, alpha=self.alpha)

    def fewest(self, power_at: Callable[[int], float], most: int) -> int | None:
        return smallest_reaching(power_at, self.power, most)


@one_blas_thread()
@takes(TableSettings)
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
    costs: Costs = DEFAULT_COSTS,
    budget: float | None = None,
    smallest_delta: float | None = None,
    n_simulations: int = 2000,
    seed: int = 0,
    **settings: Any,
) -> PowerAdvice:
    """Compute the numbers of runs and floor episodes that reach a given power.

    From a pilot (a store or a file of episodes), or from `delta`, `sem` and `runs`.

    Args:
        pilot: A store or a file of episodes, in any form that `analyse` reads.
        delta: Without a pilot: the difference to the floor worth finding.
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
        costs: Costs of a run, a floor episode, and one run on one level.
        budget: Budget per game, in the unit of `costs`: the highest power that it pays for is told too.
        smallest_delta: The smallest difference worth finding, for pilots that leave the difference open.
        n_simulations: Number of families to simulate at the advised design; 0: none.
        seed: Seed of the simulation.
        **settings: The fields of `TableSettings`.

    Returns:
        The cheapest designs that reach the power, for each comparison.

    Command line:
        gapfloor power gapfloor-store
        gapfloor power --delta 0.88 --sem 0.29 --runs 6 --floor-sem 0.24 --family 8

    Examples:
        A difference of 2 with a standard error of 0.6 over three runs:

        >>> import gapfloor
        >>> advice = gapfloor.power(delta=2.0, sem=0.6, runs=3, n_simulations=0)
        >>> advice.comparisons[0].power_now < 0.8 < advice.comparisons[0].design.power
        True
    """
    options = read_settings(TableSettings, settings).options()
    if pilot is not None and any(each is not None for each in (delta, sem, runs, floor_sem, floor_episodes)):
        raise UsageError("Give a pilot, or delta, sem and runs, not both.")
    plan_file = Path(plan) if plan is not None else None
    content = load_plan(plan_file).plan if plan_file is not None else None
    if alpha is None:
        alpha = content.floor.alpha if content is not None else ALPHA
    for name, value in (("power", wanted), ("alpha", alpha)):
        if not 0 < value < 1:
            raise UsageError(f"The {name} must lie between 0 and 1, but is {value}.")
    check_sizes(
        {
            "delta": delta, "SEM": sem, "floor's SEM": floor_sem, "smallest delta": smallest_delta, "alpha": alpha,
            "power": wanted, "cost of a run": costs.run, "cost of a floor episode": costs.floor_episode,
            "cost of a level": costs.level, "budget": budget,
        }
    )  # fmt: skip
    _check_costs(costs, budget)
    method: Method = "recommended" if content is None else content.floor.method or "paper"

    def aim(family_size: int) -> _Aim:
        if n_simulations * family_size > MOST_SIMULATED:
            raise UsageError(
                f"{n_simulations} simulations of a family of {family_size} are too many: at most {MOST_SIMULATED:,} "
                "games can be simulated. Give fewer simulations."
            )
        return _Aim(method, family_size, alpha, wanted, costs, budget, smallest_delta)

    if pilot is not None:
        found = read_pilot(
            read_inputs(arrow_table(pilot), options=options), plan_file, rule=rule, level_set=level_set
        )
        sized = [(aim(family or one.row.decision.family_size), one) for one in found]
        answers = [(_of_pilot(one, goal), one.estimate, goal) for goal, one in sized]
    else:
        estimate, guessed = _of_numbers(delta, sem, runs, floor_sem, floor_episodes)
        goal = aim(family or 1)
        answers = [(replace(_answer(estimate, goal), floor_is_guessed=guessed), estimate, goal)]
    rng = np.random.default_rng(seed)
    rows = [
        _simulated(answer, estimate, goal, n_simulations, rng) if n_simulations else answer
        for answer, estimate, goal in answers
    ]
    return PowerAdvice(
        power=wanted, alpha=alpha, method=method, costs=costs, comparisons=tuple(rows), budget=budget
    )


def _check_costs(costs: Costs, budget: float | None) -> None:
    if not (costs.run > 0 and costs.floor_episode > 0 and costs.level >= 0):
        raise UsageError(
            f"A run and a floor episode must cost something, but the costs are {costs.run:g} and "
            f"{costs.floor_episode:g} (levels: {costs.level:g})."
        )
    if budget is not None and not budget > 0:
        raise UsageError(f"The budget must be positive, but is {budget:g}.")


def _of_numbers(
    delta: float | None,
    sem: float | None,
    runs: int | None,
    floor_sem: float | None,
    floor_episodes: int | None,
) -> tuple[PilotEstimate, bool]:
    missing = [name for name, value in (("delta", delta), ("sem", sem), ("runs", runs)) if value is None]
    if delta is None or sem is None or runs is None:
        raise UsageError(f"Without a pilot these must be given too: {', '.join(missing)}.")
    if sem < 0 or (floor_sem is not None and floor_sem < 0):
        raise UsageError("A SEM cannot be negative.")
    if runs < 2:
        raise UsageError(f"A SEM over runs needs at least 2 runs, but there are {runs}.")
    n_floor = USUAL_FLOOR if floor_episodes is None else floor_episodes
    if n_floor < 2:
        raise UsageError(f"A floor needs at least 2 episodes, but has {n_floor}.")
    run_sd = sem * math.sqrt(runs)
    is_guessed = floor_sem is None
    floor_sd = (
        careful_floor_sd(run_sd, n_episodes=n_floor) if floor_sem is None else floor_sem * math.sqrt(n_floor)
    )
    return PilotEstimate(delta, run_sd, runs, floor_sd, n_floor), is_guessed


def _of_pilot(found: PilotComparison, aim: _Aim) -> ComparisonPower:
    row = found.row
    answer = replace(
        _answer(found.estimate, aim),
        game=row.game,
        budget=row.budget,
        rule=row.rule,
        level_set=row.level_set,
        # With as many runs as one likes: what the floor alone must allow.
        floor_episodes_for_equivalence=floor_episodes_for_equivalence(
            replace(found.effect, delta=0.0),
            n_runs=None,
            margin=row.test.margin,
            family_size=aim.family_size,
            alpha=aim.alpha,
            power=aim.power,
        )
        if row.test.margin
        else None,
    )
    if found.generator is None:
        return answer
    shared: dict[str, Any] = {"family_size": aim.family_size, "alpha": aim.alpha, "power": aim.power}
    return replace(
        answer,
        n_levels=found.n_levels,
        required_levels=required_levels(found.generator, n_runs=row.n, **shared),
        generator_design=cheapest_design(found.generator, costs=aim.costs, estimand=GENERATOR, **shared),
    )


def _answer(estimate: PilotEstimate, aim: _Aim) -> ComparisonPower:
    effect = estimate.effect
    shared: dict[str, Any] = {"family_size": aim.family_size, "alpha": aim.alpha}
    return ComparisonPower(
        delta=estimate.delta,
        n_runs=estimate.n_runs,
        n_floor=estimate.n_floor,
        family_size=aim.family_size,
        power_now=aim.power_of(effect, estimate.n_runs, estimate.n_floor),
        required_runs=aim.fewest(lambda n: aim.power_of(effect, n, estimate.n_floor), MAX_RUNS),
        required_floor_episodes=aim.fewest(lambda n: aim.power_of(effect, estimate.n_runs, n), MAX_EPISODES),
        design=cheapest_design(effect, costs=aim.costs, power=aim.power, **shared),
        assured=assured_design(
            estimate, costs=aim.costs, power=aim.power, smallest_delta=aim.smallest_delta, **shared
        ),
        affordable=best_design(effect, costs=aim.costs, budget=aim.budget, **shared)
        if aim.budget is not None
        else None,
    )


def _simulated(
    answer: ComparisonPower, estimate: PilotEstimate, aim: _Aim, n: int, rng: np.random.Generator
) -> ComparisonPower:
    """The advised design played, the rest of its family without effect (the hardest case)."""
    design = answer.design
    if design is None:
        return answer
    others = [replace(estimate.effect, delta=0.0)] * (aim.family_size - 1)
    simulate = simulate_recommended_family if aim.method == "recommended" else simulate_family
    played = simulate(
        [estimate.effect, *others],
        n_runs=[design.n_runs] * aim.family_size,
        n_floor=design.n_floor,
        rng=rng,
        alpha=aim.alpha,
        n_simulations=n,
    )
    found = played.rejected[0]
    return replace(
        answer, simulated_power=found, simulation_error=math.sqrt(found * (1 - found) / n) if n else NAN
    )
