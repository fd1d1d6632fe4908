"""From stored cells to what `floor` and `evaluate` print: returns, gaps, and the comparison with the floor.

The episodes are gathered as `analyse` gathers them, and means, standard errors and tests come from the same
functions, so that an evaluation and an analysis of the same cells cannot disagree. Several runs of an agent give the
recommended call and the paper's. One or two checkpoints give only a comparison of their episodes with the floor's, and
the row says so; copies of a checkpoint count once.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.copies import copied_runs
from gapfloor.analysis.episodes import inputs_of_cells
from gapfloor.analysis.evaluation_results import (
    CellRow,
    Evaluation,
    EvaluationComparison,
    EvaluationGap,
    FloorNormalisedScore,
    FloorRow,
    ReturnRow,
    StricterReference,
)
from gapfloor.analysis.grouping import ReferencePlace, RunName, RunSample, StudyEpisodes, group
from gapfloor.machine import one_blas_thread
from gapfloor.plan.model import LEAST_RUNS, paper_plan
from gapfloor.records.episode_sample import ONE_ACTION_SHARE
from gapfloor.records.store import StoredCell
from gapfloor.statistics.conventions import NAN, sem
from gapfloor.statistics.families import call_family
from gapfloor.statistics.floor import compare_to_floor
from gapfloor.statistics.normalised import between
from gapfloor.statistics.reference_calls import call_reference_family, compare_to_reference
from gapfloor.text_tables import counted

#: Seed of the bootstrap that `compare_to_floor` draws; the call does not depend on it.
_SEED = 0


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
    """Everything that `evaluate` prints.

    Args:
        floors: the cells of the uniform floor, on the same level draws.
        cells: the cells of the evaluated runs; rows follow their order.
        references: the cells of stricter references than the floor.
        notes: sentences that come before the notes made here.
        deterministic_rules: names of the rules under which an episode is a function of its level. In a census such
            a rule leaves no error of a mean over these levels.
        upper: an upper reference and its name, for normalised scores.
    """
    study = _study([*floors, *cells, *references])
    summary = [_returns(study, same, deterministic_rules) for same in _grouped([*floors, *cells], _label)]
    gaps = [_gap(study, same) for same in _grouped(cells, lambda cell: _label(cell)[:-1])]
    comparisons = [_comparison(study, same) for same in _grouped(cells, _label)]
    rows = tuple(_cell_row(study, cell) for cell in [*floors, *cells])
    remarks = [*notes, *_one_action_notes(rows), *_copy_notes(study), *_scope_note(study, cells)]
    if any(cell.manifest.content["levels"] == "all" for cell in [*floors, *cells]):
        remarks.append(
            "The level set 'all' is the whole distribution: no other level set is disjoint from it."
        )
    stricter = [
        StricterReference(floor=row, above=_above(row, summary))
        for row in _reference_rows(study, references, deterministic_rules)
    ]
    return Evaluation(
        cells=rows,
        summary=tuple(summary),
        gap=tuple(gap for gap in gaps if gap is not None),
        comparisons=tuple(row for row in comparisons if row is not None),
        notes=tuple(remarks),
        references=tuple(stricter),
        normalised=tuple(_normalised(summary, *upper)) if upper else (),
    )


def _normalised(summary: Sequence[ReturnRow], upper: float, name: str) -> Iterator[FloorNormalisedScore]:
    floors = {(row.game, row.level_set): row for row in summary if row.rule == FLOOR_RULE}
    for row in summary:
        floor = floors.get((row.game, row.level_set))
        if row.rule == FLOOR_RULE or floor is None:
            continue
        yield FloorNormalisedScore(
            row.game, row.agent, row.rule, row.level_set, between(row.mean, floor.mean, upper),
            row.sem / abs(upper - floor.mean) if upper != floor.mean else NAN, floor.mean, upper, name,
        )  # fmt: skip


def reference_rows(*, cells: Sequence[StoredCell], deterministic_rules: Collection[str]) -> list[FloorRow]:
    """One row per game, reference and level set, in the order of `cells`.

    Args:
        cells: the cells of references.
        deterministic_rules: as in `summarise_evaluation`.
    """
    # One game of two engines is two games: their episodes are never pooled.
    by_engine = _grouped(cells, lambda cell: cell.manifest.content.get("engine", "procgen"))
    return [row for same in by_engine for row in _reference_rows(_study(same), same, deterministic_rules)]


def _study(cells: Sequence[StoredCell]) -> StudyEpisodes:
    # A cell may be named twice, e.g. as the floor and as a reference.
    distinct = list({cell.path: cell for cell in cells}.values())
    return group(inputs_of_cells(distinct), paper_plan())


def _reference_rows(
    study: StudyEpisodes, cells: Sequence[StoredCell], deterministic_rules: Collection[str]
) -> list[FloorRow]:
    rows = []
    for same in _grouped(cells, lambda cell: _named(cell, "game", "mode", "reference", "level_set")):
        labels, content = same[0].manifest.labels, same[0].manifest.content
        sample = study.references[_reference_place(same[0])]
        rows.append(
            FloorRow(
                game=labels["game"],
                mode=labels["mode"],
                level_set=labels["level_set"],
                levels=content["levels"],
                reference=labels["reference"],
                mean=sample.mean,
                sem=_error(sample, labels["rule"], deterministic_rules),
                n_episodes=sample.returns.size,
                draws=tuple(dict.fromkeys(cell.manifest.labels["draw"] for cell in same)),
                engine=content.get("engine", "procgen"),
                engine_version=content.get("engine_version", ""),
                n_networks=max(1, sample.network_means.size),
            )
        )
    return rows


def _above(row: FloorRow, summary: Sequence[ReturnRow]) -> dict[str, float]:
    return {
        f"{mine.agent} {mine.rule}": mine.mean - row.mean
        for mine in summary
        if mine.agent and mine.level_set == row.level_set
    }


def _cell_row(study: StudyEpisodes, cell: StoredCell) -> CellRow:
    labels, record = cell.manifest.labels, cell.manifest.record
    sample = _sample(study, cell)
    returns = np.sort(sample.returns[sample.draw == sample.draws.index(str(labels["draw"]))])
    counts = np.asarray(record.get("action_counts", [1]) or [NAN])  # actions that are rows are not counted
    return CellRow(
        **{name: labels[name] for name in ("game", "mode", "agent", "seed", "budget", "reference", "rule")},
        level_set=labels["level_set"],
        draw=labels["draw"],
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


def _returns(
    study: StudyEpisodes, cells: Sequence[StoredCell], deterministic_rules: Collection[str]
) -> ReturnRow:
    samples = list(_runs(study, cells).values())
    labels = cells[0].manifest.labels
    values = np.array([sample.mean for sample in samples])
    several = len(samples) > 1
    return ReturnRow(
        game=labels["game"],
        agent=labels["agent"],
        rule=labels["rule"],
        level_set=labels["level_set"],
        mean=float(values.mean()),
        sem=sem(values) if several else _error(samples[0], labels["rule"], deterministic_rules),
        n_episodes=sum(sample.returns.size for sample in samples),
        n_runs=len(samples),
    )


def _gap(study: StudyEpisodes, cells: Sequence[StoredCell]) -> EvaluationGap | None:
    train, test = (
        _runs(study, [cell for cell in cells if cell.manifest.labels["level_set"] == role])
        for role in ("train", "test")
    )
    both = [(train[name], test[name]) for name in train if name in test]
    if not both:
        return None
    gaps = np.array([first.mean - second.mean for first, second in both])
    labels = cells[0].manifest.labels
    floors = [study.floor(labels["game"], labels["mode"], "", role) for role in ("train", "test")]
    return EvaluationGap(
        game=labels["game"],
        agent=labels["agent"],
        rule=labels["rule"],
        gap=float(gaps.mean()),
        sem=sem(gaps)
        if len(both) > 1
        else float(np.hypot(sem(both[0][0].level_units), sem(both[0][1].level_units))),
        floor_gap=floors[0].mean - floors[1].mean if floors[0] and floors[1] else NAN,
        n_runs=len(both),
    )


def _comparison(study: StudyEpisodes, cells: Sequence[StoredCell]) -> EvaluationComparison | None:
    labels = cells[0].manifest.labels
    floor = study.floor(labels["game"], labels["mode"], "", labels["level_set"])
    if floor is None or floor.units.size < 2:  # one episode has no spread to compare with
        return None
    copies = {(copy.budget, copy.run) for copy in copied_runs(study) if copy.game == labels["game"]}
    samples = [sample for run, sample in _runs(study, cells).items() if run not in copies]
    recommended = None
    if len(samples) >= LEAST_RUNS:
        scope, values = "runs", np.array([sample.mean for sample in samples])
        recommended = call_reference_family([compare_to_reference(values, floor.units)])[0]
    else:
        scope = "this checkpoint only" if len(samples) == 1 else "these runs only"
        values = _pooled(samples).units
    test = compare_to_floor(values, floor.units, rng=np.random.default_rng(_SEED))
    return EvaluationComparison(
        game=labels["game"],
        agent=labels["agent"],
        rule=labels["rule"],
        level_set=labels["level_set"],
        scope=scope,
        test=test,
        decision=call_family([test])[0],
        recommended=recommended,
    )


def _pooled(samples: Sequence[RunSample]) -> RunSample:
    """The episodes of several runs as one sample."""
    first = samples[0]
    return dataclasses.replace(
        first,
        returns=np.concatenate([sample.returns for sample in samples]),
        draw=np.concatenate([sample.draw for sample in samples]),
        levels=np.concatenate([sample.levels for sample in samples]),
    )


def _error(sample: RunSample, rule: str, deterministic_rules: Collection[str]) -> float:
    """The standard error of a sample's mean on these levels: over networks, within levels, or over episodes."""
    is_exact = sample.is_census and (sample.is_deterministic or rule in deterministic_rules)
    return 0.0 if is_exact and sample.network_means.size < 2 else sem(sample.units)


def _runs(study: StudyEpisodes, cells: Sequence[StoredCell]) -> dict[tuple[str, RunName], RunSample]:
    """The samples that cells belong to, by budget and run, in the order of the cells."""
    found: dict[tuple[str, RunName], RunSample] = {}
    for cell in cells:
        found.setdefault((cell.manifest.labels["budget"], _run_name(cell)), _sample(study, cell))
    return found


def _sample(study: StudyEpisodes, cell: StoredCell) -> RunSample:
    labels = cell.manifest.labels
    if labels["reference"]:
        return study.references[_reference_place(cell)]
    where = _named(cell, "game", "mode", "budget", "rule", "level_set")
    return study.runs(*where)[_run_name(cell)]


def _reference_place(cell: StoredCell) -> ReferencePlace:
    return ReferencePlace(*_named(cell, "game", "mode", "budget", "reference", "level_set"))


def _run_name(cell: StoredCell) -> RunName:
    return RunName(*_named(cell, "agent", "seed"))


def _named(cell: StoredCell, *names: str) -> tuple[str, ...]:
    """Labels of a cell as the analysis writes them: text, empty where there is none."""
    labels = cell.manifest.labels
    return tuple("" if labels[name] is None else str(labels[name]) for name in names)


def _label(cell: StoredCell) -> tuple[str, ...]:
    """What one row is about: game, agent or reference, rule and level set."""
    game, agent, reference, rule, level_set = _named(cell, "game", "agent", "reference", "rule", "level_set")
    return game, reference or agent, rule, level_set


def _grouped(cells: Sequence[StoredCell], key: Callable[[StoredCell], Any]) -> list[list[StoredCell]]:
    groups: dict[Any, list[StoredCell]] = {}
    for cell in cells:
        groups.setdefault(key(cell), []).append(cell)
    return list(groups.values())


def _one_action_notes(rows: Sequence[CellRow]) -> list[str]:
    flagged = {
        (row.agent, row.seed, row.rule)
        for row in rows
        if not row.reference and row.top_action_share >= ONE_ACTION_SHARE
    }
    return [
        f"{agent}{'' if seed is None else f' seed {seed}'} under {rule} took one action in nearly every visited state."
        for agent, seed, rule in sorted(flagged, key=str)
    ]


def _copy_notes(study: StudyEpisodes) -> list[str]:
    return [
        f"Every episode of {copy.run} equals one of {copy.first}: they are one run, not two."
        for copy in copied_runs(study)
    ]


def _scope_note(study: StudyEpisodes, cells: Sequence[StoredCell]) -> list[str]:
    repeated = {(copy.budget, *copy.run) for copy in copied_runs(study)}
    n = len({_named(cell, "budget", "agent", "seed") for cell in cells} - repeated)
    if n >= LEAST_RUNS:
        return []
    return [
        f"{counted(n, 'run')}: the comparison with the floor is about "
        f"{'these checkpoints' if n > 1 else 'this checkpoint'} only. A call about the agent needs at least "
        f"{LEAST_RUNS} runs, and six or more to resolve moderate effects (gapfloor power)."
    ]
