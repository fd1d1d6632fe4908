"""What an analysis finds: every family of rows, with the plan, the source and the problems behind them.

The plan's method made every call, interval and p of them; what the other method says of the same comparisons is in
`other_method`. `AnalysisResults.to_dict()` is the document that `gapfloor analyse --json` prints, and `write_results`
writes it with a CSV file per table. A store keeps the results, and `report` reads them if nothing behind them has
changed: `results/rows.json` holds every row without loss, and a digest of what the analysis read: the episodes and cell
records, the plan with its lock and addenda, and the version of gapfloor.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import gapfloor
from gapfloor.analysis.columns import comparison_table, gap_table
from gapfloor.analysis.inputs import Inputs
from gapfloor.analysis.planned_study import resolve_plan
from gapfloor.analysis.rows import (
    AgentDifferenceRow,
    AgentRow,
    CallCount,
    ComparisonRow,
    DisagreementRow,
    GapRow,
    ReturnRow,
    RuleDifferenceRow,
    ScoreRow,
    ScreenRow,
    ScreenSummary,
    SensitivityRow,
    Status,
)
from gapfloor.errors import GapfloorError
from gapfloor.escape import escape_csv
from gapfloor.json_values import NotThisTypeError, from_exact, to_exact
from gapfloor.plan.lock import NO_KEY, counted_by_time
from gapfloor.plan.model import LEAST_RUNS, Method
from gapfloor.records.atomic import write_text_atomically
from gapfloor.statistics.conventions import Pair
from gapfloor.tables.cells import counted
from gapfloor.tables.readable import ReadableResult, flat_row
from gapfloor.tables.table import Table

SCHEMA = "gapfloor-rows/6"
_PATH = Path("results") / "rows.json"
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
    status: Status = "exploratory"
    """Of what the plan names."""
    locked_at: str = ""
    """ISO time, empty if never locked."""
    cells_seen: int | None = None
    """Cells of the study seen when it was locked; None if never locked."""
    seen_in: str = ""
    """Where these cells were counted, or that the number was declared."""
    earlier_locks: tuple[str, ...] = ()
    """Earlier locks of this plan whose lock file was removed."""
    commit: str = ""
    """The Git commit that held the plan when it was locked, as its lock says; empty if there was none."""
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
    method: Method = "paper"
    """Which method makes the calls: paper or recommended."""
    least_runs: int = LEAST_RUNS
    """With fewer different runs nothing is tested."""
    leaves_open: tuple[str, ...] = ()
    """What the plan does not fix: games, agents, runs, draws or episodes."""
    shown: str = ""
    """What the lock and the times of the data show about what had been seen; empty without a lock."""
    pooled: bool = True
    """Whether the runs of all agents of a game are one sample; otherwise every agent has rows of its own."""
    addenda: tuple[AddendumUsed, ...] = ()
    """Addenda that were locked later."""

    @property
    def label(self) -> str:
        """What may be said of the results that the plan names: never more than its lock shows."""
        if self.status == "exploratory":
            return self.status
        still_open = f"; it leaves open: {', '.join(self.leaves_open)}" if self.leaves_open else ""
        return f"{self.status} ({self.shown}{still_open})"


@dataclass(frozen=True, kw_only=True)
class SourceSummary:
    """What was read."""

    n_episodes: int = 0
    """Episodes read."""
    n_cells: int = 0
    """Cells read."""
    n_runs: int
    """Different runs among them."""
    n_floor_episodes: int = 0
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
    has_level_seeds: bool = False
    """Whether episodes say which level they were on."""
    has_cell_records: bool = False
    """Whether entropies and action counts came with the episodes."""
    extra_columns: tuple[str, ...] = ()
    """Columns that were not needed, kept with the episodes."""


@dataclass(frozen=True, kw_only=True)
class OtherMethod:
    """The same comparisons by the method that the plan did not choose."""

    method: Method
    """The method of these calls."""
    floor_comparisons: tuple[ComparisonRow, ...] = ()
    """The comparisons with the floor."""
    gaps: tuple[GapRow, ...] = ()
    """The gaps."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AnalysisResults(ReadableResult):
    """Everything `analyse` found."""

    row_names = (
        "floor_comparisons", "gaps", "floors", "agent_floor_comparisons", "reference_comparisons", "pairs", "encoders",
        "agents", "sensitivity", "screen", "disagreements", "normalised", "problems",
    )  # fmt: skip

    plan: PlanUsed
    """The plan as it was used."""
    source: SourceSummary
    """What was read."""
    floors: tuple[ReturnRow, ...]
    """Floors: one row per game, level set and reference."""
    floor_comparisons: tuple[ComparisonRow, ...]
    """The calls, one agent at a time; of all agents together where the plan pools them."""
    agent_floor_comparisons: tuple[ComparisonRow, ...]
    """One agent at a time (the paper's enc.*.z); Holm within agent, rule, level set, budget."""
    reference_comparisons: tuple[ComparisonRow, ...] = ()
    """Against stricter references than the uniform floor, where the data hold any; exploratory."""
    gaps: tuple[GapRow, ...]
    """Gaps: one row per game, budget and rule."""
    pairs: tuple[RuleDifferenceRow, ...] = ()
    """Differences between two rules of the same runs."""
    encoders: tuple[AgentDifferenceRow, ...] = ()
    """Differences between two agents."""
    agents: tuple[AgentRow, ...] = ()
    """Every agent's returns."""
    screen: tuple[ScreenRow, ...] = ()
    """The entropy screen."""
    disagreements: tuple[DisagreementRow, ...] = ()
    """How often a rule differs from argmax."""
    normalised: tuple[ScoreRow, ...] = ()
    """Normalised scores."""
    call_counts: tuple[CallCount, ...]
    """The calls counted over a family."""
    screen_summaries: tuple[ScreenSummary, ...] = ()
    """Flagged games counted."""
    sensitivity: tuple[SensitivityRow, ...] = ()
    """What other estimators say about the comparisons with the floor and the gaps."""
    other_method: OtherMethod | None = None
    """The same comparisons by the method that the plan did not choose."""
    problems: tuple[Problem, ...]
    """What is missing or unusual in the data."""

    def tables(self) -> list[Table]:
        """Comparisons with the floor, and gaps; what the data do not have is left out."""
        tables = (comparison_table(self.floor_comparisons), gap_table(self.gaps))
        return [table for table in tables if table.rows]

    def sentences(self) -> list[str]:
        """What was read and by which plan, and the problems in the data."""
        problems = [f"{problem.kind}: {problem.where}: {problem.what}" for problem in self.problems]
        shown = problems[:MOST_PROBLEMS]
        more = len(problems) - len(shown)
        more_words = [f"and {more} more problems (the JSON document has all)."] if more else []
        plan, source = self.plan, self.source
        sizes = ((source.n_episodes, "episode"), (source.n_cells, "cell"), (source.n_runs, "run"))
        size = ", ".join(counted(n, noun) for n, noun in sizes if n or noun == "run")
        pooled = " The plan pools the runs of all agents." if plan.pooled and len(source.agents) > 1 else ""
        no_key = f" {NO_KEY}." if plan.locked_at else ""
        read = f"{size}. Plan {plan.name} ({plan.hash[:12]}): {plan.label}.{no_key}{pooled}"
        return [read, *shown, *more_words]


def results_digest(inputs: Inputs, plan: Any = None) -> str:
    """The hash of everything that `analyse(inputs, plan)` depends on."""
    digest = hashlib.sha256(f"{SCHEMA} {gapfloor.__version__}".encode())
    locked = resolve_plan(plan)
    # Times of cells matter only by what a lock makes of them: the same study has the same digest whenever it is run.
    counted = counted_by_time(locked, inputs.times) if locked is not None else None
    digest.update(json.dumps(to_exact(counted), sort_keys=True).encode())
    for field in dataclasses.fields(inputs):
        if field.name in ("stored_at", "changed_at"):
            continue
        digest.update(field.name.encode())
        _update(digest, getattr(inputs, field.name))
    return digest.hexdigest()


def keep_results(results: AnalysisResults, store: Path, *, digest: str) -> None:
    """File the rows where that is possible: a store that cannot be written to is analysed again by `report`."""
    document = {"schema": SCHEMA, "inputs": digest, "results": to_exact(results)}
    with contextlib.suppress(OSError, GapfloorError):
        write_text_atomically(store / _PATH, json.dumps(document, allow_nan=False) + "\n")


def read_stored_results(store: Path, *, digest: str) -> AnalysisResults | None:
    """The rows of a store; None where there are none, they cannot be read, or they belong to other inputs."""
    try:
        document = json.loads((store / _PATH).read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA or document["inputs"] != digest:
            return None
        return from_exact(AnalysisResults, document["results"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, NotThisTypeError):
        return None


def _update(digest: Any, value: Any) -> None:
    """Feed a value to a hash: arrays and tables by their bytes, containers by their members."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as writer:
            writer.write_table(value.combine_chunks())
        digest.update(sink.getvalue())
    elif isinstance(value, dict | frozenset | tuple):
        digest.update(f"{len(value)}:".encode())
        members = value.items() if isinstance(value, dict) else value
        for member in sorted(members) if isinstance(value, frozenset) else members:
            _update(digest, member)
    else:
        digest.update(repr(value).encode())


def write_results(results: AnalysisResults, folder: Path) -> None:
    """Write `results.json` and the CSV tables; the JSON comes last, so that where it exists the rest does too."""
    document = results.to_dict()
    for name in results.row_names:
        if document[name]:
            write_text_atomically(folder / f"{name}.csv", to_csv(document[name]))
    write_text_atomically(folder / "results.json", json.dumps(document, indent=1, allow_nan=False) + "\n")


def to_csv(rows: list[dict[str, Any]]) -> str:
    """Rows as CSV: nested values become columns named parent.child, intervals two columns."""

    def is_pair(values: list[Any]) -> bool:
        return len(values) == 2 and not any(isinstance(value, dict) for value in values)

    flat = [flat_row(row, is_pair=is_pair) for row in rows]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(flat[0]), lineterminator="\n")
    writer.writeheader()
    for row in flat:
        writer.writerow({key: _csv_value(value) for key, value in row.items()})
    return buffer.getvalue()


def _csv_value(value: Any) -> Any:
    if isinstance(value, str):
        return escape_csv(value)
    return json.dumps(value) if isinstance(value, list) else value
