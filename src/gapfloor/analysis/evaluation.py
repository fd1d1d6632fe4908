"""From stored cells to what `floor` and `evaluate` return: the rows of `analyse`, one agent at a time.

The episodes are gathered as `analyse` gathers them, and every row is made by the same functions with the built-in
plan, so that an evaluation and an analysis of the same cells cannot disagree.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.analysis.columns import comparison_table, floor_table, gap_table, score_table
from gapfloor.analysis.compared import called_rows, comparisons, gap_comparisons, stricter_rows
from gapfloor.analysis.grouping import Condition, Place, RunName, RunSample, group
from gapfloor.analysis.inputs import inputs_of_cells
from gapfloor.analysis.planned_study import PlannedStudy, families_of, return_row
from gapfloor.analysis.rows import ComparisonRow, GapRow, ReturnRow, Row, ScoreRow
from gapfloor.machine import one_blas_thread
from gapfloor.plan.model import Plan
from gapfloor.records.episode_sample import ONE_ACTION_SHARE
from gapfloor.records.stored_cell import LABELS, StoredCell
from gapfloor.statistics.conventions import NAN, sem
from gapfloor.statistics.normalised import between
from gapfloor.tables.cells import counted, fine_decimals, fixed
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table

#: A stored cell, what it has in common with others of its row, and the sample that it is part of.
Gathered = tuple[StoredCell, tuple[Place, str, str, str, str], RunSample]
_WHOLE = "The level set 'all' is the whole distribution: no other level set is disjoint from it."


@dataclass(frozen=True, repr=False)
class FloorMeasurement(ReadableResult):
    """Floors of games on their level sets."""

    row_names = ("floors",)

    floors: tuple[ReturnRow, ...]
    """One row per game, level set and reference."""
    design: str = ""
    """How levels were chosen (draws or census), with slots, burn-in and episodes."""
    redone: tuple[str, ...] = ()
    """Cells that were found cut or altered and have been measured again."""

    def table(self) -> Table:
        """The floors."""
        return floor_table(self.floors)

    def sentences(self) -> list[str]:
        """What was measured again, and a level set from which no other is disjoint."""
        return [
            *([_WHOLE] if any(row.levels == "all" for row in self.floors) else []),
            *(f"The cell {name} was cut or altered and has been measured again." for name in self.redone),
        ]


@dataclass(frozen=True)
class CellRow:
    """One evaluated cell."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    seed: int | None
    """The seed of the run."""
    budget: str
    """Label of the training budget, e.g. 8M; empty if there is none."""
    reference: str
    """The policy that knows nothing; `uniform` is the floor. Empty for a run."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    draw: int
    """Seed of the level draw."""
    mean: float
    """Mean return."""
    sem: float
    """Per episode: sd(ddof=1)/sqrt(n)."""
    n_episodes: int
    """Counted episodes."""
    n_steps: int
    """Environment steps of the counted episodes."""
    entropy_raw: float | None
    """Entropy of the policy over raw actions, all counted steps, in nats."""
    entropy_merged: float | None
    """Mean entropy over the actions that differ in each probed state, in nats; None without a probe."""
    disagreement: float | None
    """Share of counted steps on which the rule chose a class other than that of plain argmax."""
    top_action_share: float
    """Share of counted steps on which the most frequent action was taken."""
    key: str
    """The cell's content address: a hash of everything that can change an episode."""


@dataclass(frozen=True, repr=False)
class Evaluation(ReadableResult):
    """Policies under stated rules, and the floor on the same level draws: the rows of an analysis."""

    row_names = (
        "floor_comparisons", "gaps", "returns", "cells", "reference_comparisons", "normalised",
    )  # fmt: skip

    cells: tuple[CellRow, ...]
    """One row per cell: run or reference, rule, level set, draw."""
    returns: tuple[ReturnRow, ...]
    """One row per agent (or reference), rule and level set."""
    gaps: tuple[GapRow, ...]
    """One row per agent and rule."""
    floor_comparisons: tuple[ComparisonRow, ...]
    """One row per agent, rule and level set, compared with the floor."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""
    reference_comparisons: tuple[ComparisonRow, ...] = ()
    """One row per agent, rule, level set and stricter reference."""
    normalised: tuple[ScoreRow, ...] = ()
    """One row per agent, rule and level set, where an upper reference is stated."""

    def tables(self) -> list[Table]:
        """Against the floor, the gaps, then the stricter references and normalised scores if there are any."""
        stricter = functools.partial(comparison_table, title="Compared with stricter references")
        kinds: list[tuple[Callable[[Any], Table], Sequence[Row]]] = [
            (comparison_table, self.floor_comparisons),
            (gap_table, self.gaps),
            (stricter, self.reference_comparisons),
            (score_table, self.normalised),
        ]
        return [table_of_rows(rows) for table_of_rows, rows in kinds if rows]

    def sentences(self) -> list[str]:
        """The calls on held-out levels (on training levels where there are no others); the returns of one run."""
        rows = [row for row in self.floor_comparisons if row.level_set == "test"] or self.floor_comparisons
        if rows and all(row.n == 1 for row in rows) and len({row.agent for row in rows}) == 1:
            *returns, floor = (
                fixed(value, fine_decimals(value)).plain
                for value in (*(row.mean for row in rows), rows[0].floor)
            )
            scores = ", ".join(f"{mean} ({row.rule})" for mean, row in zip(returns, rows, strict=True))
            levels = "held-out" if rows[0].level_set == "test" else rows[0].level_set
            return [
                f"On {levels} levels this run of {rows[0].agent} scores {scores}; random play scores {floor}."
            ]
        calls: dict[tuple[str, str], list[str]] = {}
        for row in rows:
            calls.setdefault((row.agent or "", row.level_set), []).append(f"{row.rule} {row.decision.label}")
        return [
            f"{agent} compared with the floor on {level_set} levels: {', '.join(each)}."
            for (agent, level_set), each in calls.items()
        ]


@one_blas_thread()
def summarise_evaluation(
    *,
    floors: Sequence[StoredCell],
    cells: Sequence[StoredCell],
    references: Sequence[StoredCell] = (),
    notes: Sequence[str] = (),
    deterministic_rules: Collection[str],
    upper: tuple[float, str] | None = None,
) -> Evaluation:
    """Everything that `evaluate` returns.

    Args:
        floors: the cells of the uniform floor, on the same level draws.
        cells: the cells of the evaluated runs; rows follow their order.
        references: the cells of stricter references than the floor.
        notes: sentences that come before the notes made here.
        deterministic_rules: names of the rules under which an episode is a function of its level. In a census such
            a rule leaves no error of a mean over these levels.
        upper: an upper reference and its name, for normalised scores.
    """
    context, found = _gather([*floors, *references, *cells])
    returns = _return_rows(context, found, deterministic_rules)
    against_floor = called_rows(comparisons(context))
    played = [*found[: len(floors)], *found[len(floors) + len(references) :]]
    rows = tuple(_cell_row(cell, sample) for cell, _, sample in played)
    is_whole = any(cell.manifest.content["levels"] == "all" for cell, *_ in played)
    return Evaluation(
        cells=rows,
        returns=tuple(returns),
        gaps=called_rows(gap_comparisons(context)),
        floor_comparisons=against_floor,
        notes=(*notes, *_notes(context, rows, is_whole=is_whole)),
        reference_comparisons=stricter_rows(
            context, dict.fromkeys(cell.manifest.labels["reference"] for cell in references)
        ),
        normalised=tuple(_scores(returns, against_floor, *upper)) if upper else (),
    )


def reference_rows(*, cells: Sequence[StoredCell], deterministic_rules: Collection[str]) -> list[ReturnRow]:
    """One row per game, reference and level set, in the order of `cells`.

    Args:
        cells: the cells of references.
        deterministic_rules: as in `summarise_evaluation`.
    """
    # One game of two engines is two games: their episodes are never pooled.
    engines = families_of(cells, _engine)
    return [row for same in engines for row in _return_rows(*_gather(same), deterministic_rules)]


def _gather(cells: Sequence[StoredCell]) -> tuple[PlannedStudy, list[Gathered]]:
    # A cell may be named twice, e.g. as the floor and as a reference.
    study = group(inputs_of_cells(list({cell.path: cell for cell in cells}.values())), Plan.paper())
    found: list[Gathered] = []
    for cell in cells:
        labels = cell.manifest.labels
        game, mode, budget, agent, seed, reference, rule, level_set, _ = (
            "" if labels[name] is None else str(labels[name]) for name in LABELS
        )
        where = Condition(game, mode, budget, reference or rule, level_set)
        sample = study.references[where] if reference else study.policies[where][RunName(agent, seed)]
        found.append((cell, (where.place, agent, reference, rule, level_set), sample))
    return PlannedStudy(study, Plan.paper(), pools=study.agents), found


def _engine(cell: StoredCell) -> str:
    content = cell.manifest.content
    return f"{content.get('engine', 'procgen')} {content.get('engine_version', '')}".strip()


def _return_rows(
    context: PlannedStudy, cells: Sequence[Gathered], deterministic_rules: Collection[str]
) -> list[ReturnRow]:
    """One row per agent or reference, rule and level set, in the order of the cells."""
    rows: dict[tuple[Any, ...], ReturnRow] = {}
    for cell, key, sample in cells:
        place, agent, reference, rule, level_set = key
        if key in rows:
            continue
        samples, who = [sample], {"reference": reference}
        if not reference:
            samples = list(context.study.runs(place, rule, level_set, agent=agent).values())
            who = {"agent": agent, "rule": rule}
        more: dict[str, Any] = {"levels": cell.manifest.content["levels"], "engine": _engine(cell)}
        # In a census without chance within levels the mean over these levels is known.
        is_exact = sample.is_census and (sample.is_deterministic or rule in deterministic_rules)
        if is_exact and len(samples) == 1 and sample.network_means.size < 2:
            more["sem"] = 0.0
        rows[key] = return_row(context, samples, place, level_set, **who, **more)
    return list(rows.values())


def _scores(
    returns: Sequence[ReturnRow], rows: Sequence[ComparisonRow], upper: float, name: str
) -> Iterator[ScoreRow]:
    """(mean - floor)/(upper - floor) of every agent, rule and level set that has a floor."""
    errors = {(row.budget, row.agent, row.rule, row.level_set): row.sem for row in returns}
    for row in rows:
        error = errors[row.budget, row.agent, row.rule, row.level_set]
        yield ScoreRow(
            **{each.name: getattr(row, each.name) for each in dataclasses.fields(Row)},
            score=between(row.mean, row.floor, upper),
            sem=error / abs(upper - row.floor) if upper != row.floor else NAN,
            r_min=row.floor,
            r_max=upper,
            upper=name,
        )


def _cell_row(cell: StoredCell, sample: RunSample) -> CellRow:
    labels, record = cell.manifest.labels, cell.manifest.record
    returns = np.sort(sample.returns[sample.draw == sample.draws.index(str(labels["draw"]))])
    counts = np.asarray(record.get("action_counts", [1]) or [NAN])  # actions that are rows are not counted
    return CellRow(
        **{name: labels[name] for name in LABELS},
        mean=float(returns.mean()),
        sem=sem(returns),
        n_episodes=returns.size,
        n_steps=int(record.get("n_steps", 0)),
        entropy_raw=record.get("entropy_raw"),
        entropy_merged=record.get("merged_state"),
        disagreement=record.get("disagreement"),
        top_action_share=float(counts.max() / counts.sum()),
        key=cell.manifest.key,
    )


def _notes(context: PlannedStudy, rows: Sequence[CellRow], *, is_whole: bool) -> Iterator[str]:
    flagged = {
        (row.agent, row.seed, row.rule)
        for row in rows
        if not row.reference and row.top_action_share >= ONE_ACTION_SHARE
    }
    for agent, seed, rule in sorted(flagged, key=str):
        name = f"{agent}{'' if seed is None else f' seed {seed}'}"
        yield f"{name} under {rule} took one action in nearly every visited state."
    for copy in context.study.copies:
        yield f"{copy.episodes.capitalize()} of {copy.run} equals one of {copy.first}: they are one run, not two."
    runs = {(condition.budget, run) for condition, found in context.study.policies.items() for run in found}
    runs -= {(copy.place.budget, copy.run) for copy in context.study.copies}
    least = context.plan.least_runs
    if len(runs) < least:
        yield (
            f"{counted(len(runs), 'run')}: intervals are about "
            f"{'these checkpoints' if len(runs) > 1 else 'this checkpoint'} only, and nothing is tested. A call about "
            f"the agent needs at least {least} runs, and six or more to resolve moderate effects (gapfloor power)."
        )
    if is_whole:
        yield _WHOLE
