"""What an analysis finds: every family of rows, with the plan, the source and the problems behind them.

The paper's own columns are on a row itself; the estimators that stay valid where they do not are in its field
`robust`. A number that cannot be computed (one run, no level seeds) is NaN here and null in JSON.
`AnalysisResults.to_dict()` is the document that `gapfloor analyse --json` prints.

Shared words: `ci` is always the plan's interval (percentile bootstrap) and `t_interval` Student's; `status` is
"pre-registered", "pre-specified" or "exploratory"; `family` names the tests that are corrected together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.analysis.difference_results import AgentDifferenceResult, AgentResult, PairResult
from gapfloor.analysis.floor_results import CallCount, FloorComparisonResult, FloorResult
from gapfloor.analysis.gap_results import GapResult
from gapfloor.analysis.row import Status
from gapfloor.analysis.score_results import NormalisedResult, ProfileResult
from gapfloor.analysis.screen_results import DisagreementResult, ScreenResult, ScreenSummary
from gapfloor.json_values import jsonable
from gapfloor.statistics.conventions import Pair


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something in the data that a reader must know; nothing is dropped without one."""

    kind: Literal["missing", "unbalanced", "replay", "copy", "no floor", "too few", "assumed"]
    where: str
    """The rows or the cell concerned, in words."""
    what: str


@dataclass(frozen=True, kw_only=True)
class AddendumUsed:
    """An addendum as the results used it."""

    name: str
    hash: str
    status: Status
    locked_at: str
    cells_seen: int


@dataclass(frozen=True, kw_only=True)
class PlanUsed:
    """The plan as the results used it."""

    name: str
    hash: str
    status: Status
    """Of what the plan names."""
    locked_at: str
    """ISO time, empty if never locked."""
    cells_seen: int | None
    """Cells of the study seen when it was locked; None if never locked."""
    alpha: float
    confidence: float
    resamples: int
    seed: int
    primary_rule: str
    cuts: Pair
    addenda: tuple[AddendumUsed, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SourceSummary:
    """What was read."""

    n_episodes: int
    n_cells: int
    n_runs: int
    n_floor_episodes: int
    games: tuple[str, ...]
    budgets: tuple[str, ...]
    agents: tuple[str, ...]
    """In the order differences are taken."""
    rules: tuple[str, ...]
    level_sets: tuple[str, ...]
    draws: tuple[str, ...]
    has_level_seeds: bool
    has_cell_records: bool
    extra_columns: tuple[str, ...]
    """Columns that were not needed, kept with the episodes."""


@dataclass(frozen=True, kw_only=True)
class AnalysisResults:
    """Everything `analyse` found."""

    plan: PlanUsed
    source: SourceSummary
    floors: tuple[FloorResult, ...]
    floor_comparisons: tuple[FloorComparisonResult, ...]
    """Pooled over agents: the calls."""
    agent_floor_comparisons: tuple[FloorComparisonResult, ...]
    """One agent at a time (the paper's enc.*.z); Holm within agent, rule, level set, budget."""
    reference_comparisons: tuple[FloorComparisonResult, ...]
    """Against stricter references than the uniform floor, where the data hold any; exploratory."""
    gaps: tuple[GapResult, ...]
    pairs: tuple[PairResult, ...]
    encoders: tuple[AgentDifferenceResult, ...]
    agents: tuple[AgentResult, ...]
    screen: tuple[ScreenResult, ...]
    disagreements: tuple[DisagreementResult, ...]
    normalised: tuple[NormalisedResult, ...]
    profiles: tuple[ProfileResult, ...]
    call_counts: tuple[CallCount, ...]
    screen_summaries: tuple[ScreenSummary, ...]
    problems: tuple[Problem, ...]

    def to_dict(self) -> dict[str, Any]:
        """The results as JSON-ready values: tuples become lists, NaN and infinities null."""
        plain = jsonable(self)
        assert isinstance(plain, dict)
        return plain
