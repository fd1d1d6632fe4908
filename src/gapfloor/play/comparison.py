"""From filed cells to what `evaluate` prints: means, gaps, and the comparison with the floor.

Several runs of an agent give the paper's call; one checkpoint gives only a comparison of its episodes with
the floor's, and is named as such.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gapfloor.play.cell import CellSpec, Run
from gapfloor.play.results import CellRow, ComparisonRow, Evaluation, GapRow, ReferenceRow, SummaryRow
from gapfloor.play.summary import (
    Floats,
    gap_error,
    read_cells,
    summarise,
    summarise_cells,
    summarise_reference,
    units_of,
)
from gapfloor.records.manifest import read_manifest
from gapfloor.records.store import Store

#: A policy that takes one action this often in every visited state is hardly looking.
ONE_ACTION_SHARE = 0.99
#: Fewer runs than this cannot reach p < .05 after correction in any realistic family.
RUNS_FOR_A_CALL = 3
#: Seed of the bootstrap that `compare_to_floor` draws; the call does not depend on it.
_SEED = 0


def summarise_evaluation(
    store: Store,
    *,
    floors: Sequence[CellSpec],
    cells: Sequence[CellSpec],
    notes: Sequence[str],
    references: Sequence[CellSpec] = (),
) -> Evaluation:
    """Everything that `evaluate` prints."""
    returns = read_cells(store, [*floors, *cells, *references])
    rows = tuple(_cell_row(store, cell, returns[cell.key]) for cell in [*floors, *cells])
    summary = [_summary(cells_of, returns) for cells_of in _by_label([*floors, *cells])]
    gaps = [gap for cells_of in _by_agent(cells) for gap in _gap(cells_of, floors, returns)]
    comparisons = _compare(cells, floors, returns)
    remarks = [*notes, *_one_action(rows), *_scope_note(cells)]
    if any(cell.levels.is_everything for cell in [*floors, *cells]):
        remarks.append("The level set 'all' is the whole distribution: it is disjoint from nothing.")
    stricter = _reference_rows(references, summary, returns)
    return Evaluation(rows, tuple(summary), tuple(gaps), tuple(comparisons), tuple(remarks), tuple(stricter))


def _reference_rows(
    cells: Sequence[CellSpec], summary: Sequence[SummaryRow], returns: dict[str, Floats]
) -> list[ReferenceRow]:
    rows = []
    groups: dict[tuple[str, str, str], list[CellSpec]] = {}
    for cell in cells:
        groups.setdefault((cell.engine.game, cell.run.reference, cell.level_set), []).append(cell)
    for (game, reference, level_set), mine in groups.items():
        mean, sem, n, networks = summarise_reference(mine, returns)
        above = {
            f"{row.agent} {row.rule}": row.mean - mean
            for row in summary
            if row.agent and row.level_set == level_set
        }
        rows.append(ReferenceRow(game, reference, level_set, mean, sem, n, networks, above))
    return rows


def _cell_row(store: Store, cell: CellSpec, returns: Floats) -> CellRow:
    manifest = read_manifest(store.cells_folder / f"{cell.file_name}.json")
    record = manifest.record if manifest is not None else {}
    mean, sem, n = summarise([returns])
    counts = np.asarray(record.get("action_counts", [1]))
    return CellRow(
        game=cell.engine.game,
        mode=cell.engine.mode,
        agent=cell.run.agent,
        seed=cell.run.seed,
        budget=cell.run.budget,
        reference=cell.run.reference,
        rule=cell.rule,
        level_set=cell.level_set,
        draw=cell.draw,
        mean=mean,
        sem=sem,
        n_episodes=n,
        n_steps=int(record.get("n_steps", 0)),
        entropy_raw=record.get("entropy_raw"),
        disagreement=record.get("disagreement"),
        top_action_share=float(counts.max() / counts.sum()),
        key=cell.key,
    )


def _by_label(cells: Sequence[CellSpec]) -> list[list[CellSpec]]:
    groups: dict[tuple[str, ...], list[CellSpec]] = {}
    for cell in cells:
        who = cell.run.reference or cell.run.agent
        groups.setdefault((cell.engine.game, who, cell.rule, cell.level_set), []).append(cell)
    return list(groups.values())


def _by_agent(cells: Sequence[CellSpec]) -> list[list[CellSpec]]:
    groups: dict[tuple[str, ...], list[CellSpec]] = {}
    for cell in cells:
        groups.setdefault((cell.engine.game, cell.run.agent, cell.rule), []).append(cell)
    return list(groups.values())


def run_values(cells: Sequence[CellSpec], returns: dict[str, Floats]) -> dict[Run, float]:
    """Each run's value: its mean over draws and episodes."""
    runs: dict[Run, list[Floats]] = {}
    for cell in cells:
        runs.setdefault(cell.run, []).append(returns[cell.key])
    return {run: float(np.concatenate(values).mean()) for run, values in runs.items()}


def _summary(cells: Sequence[CellSpec], returns: dict[str, Floats]) -> SummaryRow:
    mean, sem, n = summarise_cells(cells, returns)
    values = list(run_values(cells, returns).values())
    if len(values) > 1:
        mean, sem = float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
    first = cells[0]
    return SummaryRow(
        first.engine.game, first.run.agent, first.rule, first.level_set, mean, sem, n, len(values)
    )


def _gap(cells: Sequence[CellSpec], floors: Sequence[CellSpec], returns: dict[str, Floats]) -> list[GapRow]:
    halves = {
        role: run_values([cell for cell in cells if cell.level_set == role], returns)
        for role in ("train", "test")
    }
    runs = [run for run in halves["train"] if run in halves["test"]]
    if not runs:
        return []
    gaps = np.array([halves["train"][run] - halves["test"][run] for run in runs])
    if len(gaps) > 1:
        sem = float(gaps.std(ddof=1) / np.sqrt(len(gaps)))
    else:
        errors = [gap_error([c for c in cells if c.level_set == role], returns) for role in ("train", "test")]
        sem = float(np.hypot(errors[0], errors[1]))
    floor = [
        summarise([returns[c.key] for c in floors if c.level_set == role])[0] for role in ("train", "test")
    ]
    first = cells[0]
    return [
        GapRow(
            first.engine.game,
            first.run.agent,
            first.rule,
            float(gaps.mean()),
            sem,
            floor[0] - floor[1],
            len(runs),
        )
    ]


def _compare(
    cells: Sequence[CellSpec], floors: Sequence[CellSpec], returns: dict[str, Floats]
) -> list[ComparisonRow]:
    from gapfloor.statistics import call_family, compare_to_floor

    rows = []
    for group in _by_label(cells):
        first = group[0]
        floor = units_of([cell for cell in floors if cell.level_set == first.level_set], returns)
        if floor.size < 2:  # one episode has no spread to compare with
            continue
        values = np.array(list(run_values(group, returns).values()))
        over_runs = len(values) >= RUNS_FOR_A_CALL
        sample = values if over_runs else units_of(group, returns)
        comparison = compare_to_floor(sample, floor, rng=np.random.default_rng(_SEED))
        called = call_family([comparison])[0]
        rows.append(
            ComparisonRow(
                game=first.engine.game,
                agent=first.run.agent,
                rule=first.rule,
                level_set=first.level_set,
                scope="runs"
                if over_runs
                else "this checkpoint only"
                if len(values) == 1
                else "these runs only",
                delta=comparison.delta,
                p=comparison.p,
                p_holm=called.p_holm,
                call=called.call,
            )
        )
    return rows


def _one_action(rows: Sequence[CellRow]) -> list[str]:
    flagged = {
        (row.agent, row.seed, row.rule)
        for row in rows
        if not row.reference and row.top_action_share >= ONE_ACTION_SHARE
    }
    return [
        f"{agent}{'' if seed is None else f' seed {seed}'} under {rule} took one action in nearly every visited state."
        for agent, seed, rule in sorted(flagged, key=str)
    ]


def _scope_note(cells: Sequence[CellSpec]) -> list[str]:
    runs = {cell.run for cell in cells}
    if len(runs) >= RUNS_FOR_A_CALL:
        return []
    return [
        f"{len(runs)} run{'s' if len(runs) > 1 else ''}: the comparison with the floor is about "
        f"{'these checkpoints' if len(runs) > 1 else 'this checkpoint'} only. A call about the agent needs at least "
        f"{RUNS_FOR_A_CALL} runs, and six or more to resolve moderate effects (gapfloor power)."
    ]
