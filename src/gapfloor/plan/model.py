"""What an analysis plan fixes: tests, families, margins, cuts, resamples, seeds, scope and stop conditions.

Closed sets are literals, so a plan that asks for a test which does not exist is refused when it is read, not
when the data are in.

Settings that came after the first version are None where a plan does not have them. They are then not part of its
hash, so that a plan locked by an earlier version still checks.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from gapfloor.engines.procgen import N_ACTIONS
from gapfloor.errors import UsageError
from gapfloor.lazy import LazyMethod
from gapfloor.settings import from_table, parse_toml, read_text, shipped_text, to_table

#: The paper's tests, or the ones that hold their level at few runs (docs/methods.md).
Method = Literal["paper", "recommended"]

#: With fewer runs a comparison is not tested, unless the plan says otherwise.
LEAST_RUNS = 3


@dataclass(frozen=True)
class Scope:
    """Which data the plan is about. What lies outside is analysed too, and marked exploratory."""

    rules: tuple[str, ...] = ("sampled", "greedy")
    primary_rule: str = "sampled"
    train: str = "0:200"
    """Levels of the level set "train"."""
    test: str = "1000:1100"
    games: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Budget label -> games. Empty: every game and budget in the data."""
    draws: int = 0
    """Draws a run, rule and level set must have. 0: as many as the data show."""
    episodes: int = 0
    """Number of episodes that each draw must have. 0: as many as the data show."""
    agents: tuple[str, ...] | None = None
    """Agents that every game and budget must have. Absent: those in the data."""
    runs: int | None = None
    """Runs that every agent must have of each game and budget. Absent: as many as the data show."""
    seeds: tuple[str, ...] | None = None
    """Seeds of the runs that every agent must have of each game and budget. Absent: those in the data."""


@dataclass(frozen=True)
class FloorTest:
    """The comparison of runs with the floor, and the call."""

    reference: str = "uniform"
    test: Literal["welch"] = "welch"
    alpha: float = 0.05
    correction: Literal["holm"] = "holm"
    family: tuple[Literal["rule", "level_set", "budget"], ...] = ("rule", "level_set", "budget")
    """Comparisons that agree in these are corrected together; a game is always one comparison of them."""
    equivalence: Literal["tost"] = "tost"
    margin_fraction: float = 0.1
    margin_minimum: float = 0.25
    method: Method | None = None
    """Which method makes the calls, of gaps too; the other one is in a table of its own. Absent: the paper's."""
    least_runs: int | None = None
    """With fewer different runs a comparison is not tested. Absent: 3."""


@dataclass(frozen=True)
class GapTest:
    """The test of train - test."""

    per_run: Literal["welch"] = "welch"
    combine: Literal["fisher"] = "fisher"
    direction: Literal["stouffer"] = "stouffer"
    correction: Literal["holm"] = "holm"
    family: tuple[Literal["rule", "budget"], ...] = ("rule", "budget")
    method: Method | None = None
    """The same method as that of the floor; either table may name it."""


@dataclass(frozen=True)
class PairTest:
    """Differences between rules, paired over runs."""

    differences: tuple[str, ...] = ("sampled - greedy",)
    quantities: tuple[Literal["train", "test", "gap"], ...] = ("train", "test", "gap")
    test: Literal["paired t"] = "paired t"


@dataclass(frozen=True)
class AgentTest:
    """Differences between agents over runs."""

    order: tuple[str, ...] = ()
    """The first minus the second. Empty: the order of appearance in the data."""
    test: Literal["welch"] = "welch"
    one_draw_at_a_time: bool = True
    pooled: bool | None = None
    """Whether the runs of all agents of a game are one sample. Absent: yes, as in the paper."""


@dataclass(frozen=True)
class Intervals:
    """Bootstrap intervals: runs are resampled, and the floor's episodes where a floor is subtracted."""

    method: Literal["percentile"] = "percentile"
    confidence: float = 0.95
    resamples: int = 10_000
    seed: int = 0


@dataclass(frozen=True)
class Screen:
    """The entropy screen."""

    rule: str = "sampled"
    actions: int = N_ACTIONS
    """Raw actions where the data do not say: the maximum entropy is their logarithm."""
    cuts: tuple[float, float] = (2.0, 2.3)
    sweep: tuple[float, ...] = (1.8, 1.9, 2.0, 2.1, 2.2)


@dataclass(frozen=True)
class Normalisation:
    """The scale of normalised scores: published constants for ProcGen, and stated upper references for any game."""

    scale: Literal["cobbe2020"] = "cobbe2020"
    upper: dict[str, float] | None = None
    """Game -> its upper reference; its scores are (R - floor)/(upper - floor), with the floor of the same level set."""


@dataclass(frozen=True)
class Stop:
    """What ends an analysis under a locked plan, with the reason, before any number is written."""

    replay_check_fails: bool = True
    cell_missing: bool = True
    value_not_finite: bool = True


@dataclass(frozen=True)
class Plan:
    """An analysis plan: tests, families, margins, scope and stop conditions, fixed before the data are seen.

    A plan in memory was never locked: what is analysed by it is exploratory. `Plan.init(path)` writes a plan to a file,
    `Plan.lock(path)` fixes it, and `Plan.check(path)` says whether it is unchanged.

    Examples:
        >>> import gapfloor
        >>> plan = gapfloor.Plan.paper()
        >>> plan.floor.alpha, plan.scope.primary_rule
        (0.05, 'sampled')
    """

    name: str
    scope: Scope = field(default_factory=Scope)
    floor: FloorTest = field(default_factory=FloorTest)
    gaps: GapTest = field(default_factory=GapTest)
    pairs: PairTest = field(default_factory=PairTest)
    agents: AgentTest = field(default_factory=AgentTest)
    intervals: Intervals = field(default_factory=Intervals)
    screen: Screen = field(default_factory=Screen)
    normalised: Normalisation = field(default_factory=Normalisation)
    stop: Stop = field(default_factory=Stop)

    init = LazyMethod("gapfloor.api.plan_files:init_plan", is_static=True)
    lock = LazyMethod("gapfloor.api.plan_files:lock_file", is_static=True)
    check = LazyMethod("gapfloor.api.plan_files:check_plan", is_static=True)

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """The checked plan of a TOML file."""
        return parse_plan(read_text(Path(path)), source=str(path))

    @classmethod
    def paper(cls) -> Plan:
        """The paper's plan with an open scope, which is used where none is named; `data/paper.toml` spells it out."""
        return cls("paper")

    @property
    def method(self) -> Method | None:
        """Whose tests make the calls, if the plan says it; it has one method."""
        return self.floor.method or self.gaps.method

    @property
    def least_runs(self) -> int:
        """With fewer different runs a comparison is not tested."""
        return LEAST_RUNS if self.floor.least_runs is None else self.floor.least_runs

    @property
    def leaves_open(self) -> tuple[str, ...]:
        """What the plan does not fix, so that choosing it after the data were seen would not show."""
        scope = self.scope
        is_fixed = {
            "games": bool(scope.games),
            "agents": scope.agents is not None,
            "runs": scope.runs is not None or scope.seeds is not None,
            "seeds": scope.seeds is not None,
            "draws": scope.draws > 0,
            "episodes": scope.episodes > 0,
        }
        return tuple(name for name, fixed in is_fixed.items() if not fixed)

    def names(self, *, game: str, budget: str) -> bool:
        """Whether the plan is about this game at this budget."""
        return not self.scope.games or game in self.scope.games.get(budget, ())


@dataclass(frozen=True)
class Addendum:
    """An analysis added after the plan, with its own rule, scope and family."""

    name: str
    rules: tuple[str, ...]
    level_sets: tuple[str, ...] = ("test",)
    games: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pairs: tuple[str, ...] = ()
    quantities: tuple[Literal["train", "test", "gap"], ...] = ("test",)
    reading: str = ""
    """How the outcome will be read, written before it is known."""

    def names(self, *, game: str, budget: str) -> bool:
        """Whether the addendum is about this game at this budget."""
        return not self.games or game in self.games.get(budget, ())


def parse_plan(text: str, *, source: str) -> Plan:
    """The plan in a TOML text."""
    plan = from_table(Plan, parse_toml(text, source=source), source=source)
    _check_plan(plan, source)
    return plan


def parse_addendum(text: str, *, source: str) -> Addendum:
    """The addendum in a TOML text."""
    addendum = from_table(Addendum, parse_toml(text, source=source), source=source)
    if not addendum.rules:
        raise UsageError(f"{source}: rules is empty: name the rule that the addendum is about.")
    for difference in addendum.pairs:
        split_difference(difference, source=source)
    return addendum


def builtin_text(name: str) -> str:
    """The text of a plan or addendum that comes with the package."""
    return shipped_text(f"plan/data/{name}.toml")


def content_hash(content: Plan | Addendum) -> str:
    """SHA-256 of what a plan says; comments, order and spelling of defaults do not enter."""
    return hashlib.sha256(json.dumps(to_table(content), sort_keys=True).encode()).hexdigest()


def split_difference(difference: str, *, source: str) -> tuple[str, str]:
    """The two rules of "sampled - greedy".

    >>> split_difference("merged - greedy", source="plan.toml")
    ('merged', 'greedy')
    """
    first, separator, second = difference.partition(" - ")
    if not separator or not first.strip() or not second.strip():
        raise UsageError(f"{source}: {difference!r} is not a difference of rules: write 'sampled - greedy'.")
    return first.strip(), second.strip()


def _check_plan(plan: Plan, source: str) -> None:
    scope = plan.scope
    rules = {
        "floor.alpha must lie between 0 and 1": 0 < plan.floor.alpha < 1,
        "floor.margin_fraction and margin_minimum must not be negative": min(
            plan.floor.margin_fraction, plan.floor.margin_minimum
        )
        >= 0,
        "intervals.confidence must lie between 0 and 1": 0 < plan.intervals.confidence < 1,
        "intervals.resamples must be at least 100": plan.intervals.resamples >= 100,
        "intervals.seed must not be negative": plan.intervals.seed >= 0,
        "screen.cuts must rise": plan.screen.cuts[0] < plan.screen.cuts[1],
        "screen.actions must be at least 2": plan.screen.actions >= 2,
        "scope.rules must name a rule": bool(scope.rules),
        "scope.primary_rule must be one of scope.rules": scope.primary_rule in scope.rules,
        "scope.draws and scope.episodes must not be negative": min(scope.draws, scope.episodes) >= 0,
        "scope.seeds must name a seed": scope.seeds is None or bool(scope.seeds),
        "scope.runs must be at least 1": scope.runs is None or scope.runs >= 1,
        "scope.agents must name an agent": scope.agents is None or bool(scope.agents),
        "floor.method and gaps.method must be the same: a plan has one method": plan.gaps.method
        in (None, plan.method),
        "floor.least_runs must be at least 2": plan.least_runs >= 2,
    }
    for rule, holds in rules.items():
        if not holds:
            raise UsageError(f"{source}: {rule}.")
    for difference in plan.pairs.differences:
        split_difference(difference, source=source)
