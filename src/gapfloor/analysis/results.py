"""What an analysis finds: every family of rows, with the plan, the source and the problems behind them.

The paper's own columns are on a row itself; the estimators that stay valid where they do not are in its field
`robust`. A number that cannot be computed (one run, no level seeds) is NaN here and null in JSON.
`AnalysisResults.to_dict()` is the document that `gapfloor analyse --json` prints.

Shared words: `ci` is always the plan's interval (percentile bootstrap) and `t_interval` Student's; `status` is
"pre-registered", "pre-specified" or "exploratory"; `family` names the tests that are corrected together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gapfloor.analysis.difference_results import AgentDifferenceResult, AgentResult, PairResult
from gapfloor.analysis.floor_results import CallCount, FloorComparisonResult, FloorResult
from gapfloor.analysis.gap_results import GapResult
from gapfloor.analysis.result_tables import analysis_size, analysis_tables
from gapfloor.analysis.row import Status
from gapfloor.analysis.score_results import NormalisedResult, ProfileResult
from gapfloor.analysis.screen_results import DisagreementResult, ScreenResult, ScreenSummary
from gapfloor.plan.model import LEAST_RUNS, Method
from gapfloor.statistics.conventions import Pair
from gapfloor.text_tables import ReadableResult, TextTable

#: Problems shown before the rest is counted.
MOST_PROBLEMS = 20


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something in the data that a reader must know; nothing is dropped without one."""

    kind: Literal["missing", "unbalanced", "replay", "copy", "no floor", "too few", "assumed", "levels"]
    """missing, unbalanced, replay (the same episodes twice), copy, no floor, too few, assumed, levels (not planned)."""
    where: str
    """The rows or the cell concerned, in words."""
    what: str
    """What the problem is, in words."""


@dataclass(frozen=True, kw_only=True)
class AddendumUsed:
    """An addendum as the results used it."""

    name: str
    """Its name."""
    hash: str
    """SHA-256 of the text that was locked."""
    status: Status
    """pre-registered, pre-specified or exploratory."""
    locked_at: str
    """When it was locked, as ISO time."""
    cells_seen: int
    """Cells of its rules that had been seen when it was locked."""


@dataclass(frozen=True, kw_only=True)
class PlanUsed:
    """The plan as the results used it."""

    name: str
    """Its name."""
    hash: str
    """SHA-256 of the text that was locked."""
    status: Status
    """Of what the plan names."""
    locked_at: str
    """ISO time, empty if never locked."""
    cells_seen: int | None
    """Cells of the study seen when it was locked; None if never locked."""
    seen_in: str = ""
    """Where these cells were counted, or that the number was declared."""
    earlier_locks: tuple[str, ...] = ()
    """Earlier locks of this plan whose lock file was removed."""
    alpha: float
    """Level of the tests."""
    confidence: float
    """Confidence of the intervals."""
    resamples: int
    """Bootstrap resamples."""
    seed: int
    """The plan's seed, from which every row's own seed is made."""
    primary_rule: str
    """The rule of the main claim."""
    cuts: Pair
    """The two cuts between low, intermediate and high entropy, in nats."""
    reference: str = "uniform"
    """The reference of the floor comparisons and gaps."""
    floor_method: Method = "paper"
    """Which method makes the calls against a reference: paper or recommended."""
    gap_method: Method = "paper"
    """Which method makes the calls of gaps."""
    looks: tuple[int, ...] = ()
    """Numbers of runs at which a growing study is looked at; empty if there is one analysis at the end."""
    least_runs: int = LEAST_RUNS
    """With fewer different runs nothing is tested."""
    addenda: tuple[AddendumUsed, ...] = ()
    """Addenda that were locked later."""


@dataclass(frozen=True, kw_only=True)
class SourceSummary:
    """What was read."""

    n_episodes: int
    """Episodes read."""
    n_cells: int
    """Cells read."""
    n_runs: int
    """Different runs among them."""
    n_floor_episodes: int
    """Episodes of the uniform reference among them."""
    games: tuple[str, ...]
    """The games, in the order of the tables."""
    budgets: tuple[str, ...]
    """The budget labels."""
    agents: tuple[str, ...]
    """In the order differences are taken."""
    rules: tuple[str, ...]
    """The rules, in the order given."""
    level_sets: tuple[str, ...]
    """The level sets."""
    draws: tuple[str, ...]
    """Seeds of the level draws."""
    has_level_seeds: bool
    """Whether episodes say which level they were on."""
    has_cell_records: bool
    """Whether entropies and action counts came with the episodes."""
    extra_columns: tuple[str, ...]
    """Columns that were not needed, kept with the episodes."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AnalysisResults(ReadableResult):
    """Everything `analyse` found."""

    row_names = (
        "floor_comparisons", "gaps", "floors", "agent_floor_comparisons", "reference_comparisons", "pairs", "encoders",
        "agents", "screen", "disagreements", "normalised", "profiles", "problems",
    )  # fmt: skip

    plan: PlanUsed
    """The plan as it was used."""
    source: SourceSummary
    """What was read."""
    floors: tuple[FloorResult, ...]
    """Floors: one row per game, level set and reference."""
    floor_comparisons: tuple[FloorComparisonResult, ...]
    """Pooled over agents: the calls."""
    agent_floor_comparisons: tuple[FloorComparisonResult, ...]
    """One agent at a time (the paper's enc.*.z); Holm within agent, rule, level set, budget."""
    reference_comparisons: tuple[FloorComparisonResult, ...]
    """Against stricter references than the uniform floor, where the data hold any; exploratory."""
    gaps: tuple[GapResult, ...]
    """Gaps: one row per game, budget and rule."""
    pairs: tuple[PairResult, ...]
    """Differences between two rules of the same runs."""
    encoders: tuple[AgentDifferenceResult, ...]
    """Differences between two agents."""
    agents: tuple[AgentResult, ...]
    """Every agent's returns."""
    screen: tuple[ScreenResult, ...]
    """The entropy screen."""
    disagreements: tuple[DisagreementResult, ...]
    """How often a rule differs from argmax."""
    normalised: tuple[NormalisedResult, ...]
    """Normalised scores."""
    profiles: tuple[ProfileResult, ...]
    """IQM and performance profiles over the suite."""
    call_counts: tuple[CallCount, ...]
    """The paper's calls counted over a family."""
    screen_summaries: tuple[ScreenSummary, ...]
    """Flagged games counted."""
    plan_call_counts: tuple[CallCount, ...] = ()
    """The calls of the plan's method counted over a family."""
    problems: tuple[Problem, ...]
    """What is missing or unusual in the data."""

    def tables(self) -> list[TextTable]:
        """Comparisons with the floor, and gaps."""
        return list(analysis_tables(self).values())

    def sentences(self) -> list[str]:
        """What was read, and the problems in it."""
        problems = [f"{problem.kind}: {problem.where}: {problem.what}" for problem in self.problems]
        shown = problems[:MOST_PROBLEMS]
        more = len(problems) - len(shown)
        return [
            analysis_size(self),
            *shown,
            *([f"and {more} more problems (the JSON document has all)."] if more else []),
        ]
