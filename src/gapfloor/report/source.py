"""Everything a report is made from, read once: a store, an episode file, or results with nothing around them.

Needs neither engine nor torch: checkpoints are asked for their headers only, frames were written by
`gapfloor replay`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.episodes import read_source
from gapfloor.analysis.inputs import Inputs
from gapfloor.analysis.leaked import LeakedGap, gap_without
from gapfloor.analysis.mean_rows import results_of_means
from gapfloor.analysis.results import AnalysisResults, read_stored_results, results_digest
from gapfloor.analysis.summaries import Summaries
from gapfloor.levels.overlap import read_leakage
from gapfloor.records.dataset import dataset_plan, store_of
from gapfloor.records.store import Store
from gapfloor.report.cka_input import CkaRecord, read_cka
from gapfloor.report.entropy_curves import SeedCurve, read_curves
from gapfloor.report.findings import Findings, steps_of
from gapfloor.report.provenance import (
    Provenance,
    floor_on_same_draws,
    provenance_of_cells,
    provenance_of_inputs,
    read_hyperparameters,
)
from gapfloor.report.replays import Replay, read_replays


@dataclass(frozen=True, kw_only=True)
class ReportSource:
    """What was read; whatever the data lack is empty."""

    name: str
    """Of the store's folder or the file, without its path."""
    findings: Findings
    provenance: Provenance
    curves: tuple[SeedCurve, ...] = ()
    """Entropy during training, from the logs of a store."""
    cka: tuple[CkaRecord, ...] = ()
    leaked: tuple[LeakedGap, ...] = ()
    """Gaps without leaked levels, where the store holds `leakage/*.json`."""
    hyperparameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    replays: tuple[Replay, ...] = ()


def load_report_source(
    source: str | Path,
    *,
    plan: Any = None,
    options: TableOptions | None = None,
) -> ReportSource:
    """Read a store's folder or an episode file with its results under `plan` (default: the paper's).

    The results that `analyse` left in a store are used if they belong to these data and this plan; otherwise, and for
    an episode file, the analysis is made here. `options` says about a file what it does not say itself.
    """
    from gapfloor.analysis import analyse

    plan = plan if plan is not None else dataset_plan(source)
    path = store_of(Path(source))
    store = Store(path) if (path / "cells").is_dir() else None
    inputs = read_source(path if store is None else store, options=options)
    if isinstance(inputs, Summaries):
        means = results_of_means(inputs, plan, options or TableOptions())
        return source_of_results(means, name=Path(source).name)
    results = read_stored_results(path, digest=results_digest(inputs, plan)) if store is not None else None
    results = results or analyse(inputs, plan=plan)
    return source_of_results(results, inputs=inputs, store=store, name=Path(source).name)


def source_of_results(
    results: AnalysisResults,
    *,
    inputs: Inputs | None = None,
    store: Store | None = None,
    name: str = "results",
) -> ReportSource:
    """A report's source from results that exist, with what lies around them where that is known.

    `store` is the one that `inputs` were read from: its cells are not read again.
    """
    findings = Findings(results, same_draws=floor_on_same_draws(inputs) if inputs is not None else None)
    if inputs is None:
        provenance = Provenance(levels={}, draws=results.source.draws)
    elif store is None or not store.found:
        provenance = provenance_of_inputs(inputs)
    else:
        provenance = provenance_of_cells(store.found, root=store.root)
    if inputs is None or store is None:
        return ReportSource(name=name, findings=findings, provenance=provenance)
    leaks = sorted(store.root.glob("leakage/*.json"))

    def order(curve: SeedCurve) -> tuple[Any, ...]:
        place, agent = findings.game_place(curve.game), findings.agent_place(curve.agent)
        return place, steps_of(curve.budget), agent

    return ReportSource(
        name=name,
        findings=findings,
        provenance=provenance,
        curves=tuple(sorted(read_curves(store.root), key=order)),
        cka=read_cka(store.root / "results" / "cka"),
        hyperparameters=read_hyperparameters(store.root),
        replays=read_replays(store.root / "replays"),
        leaked=gap_without(inputs, read_leakage(leaks)) if leaks else (),
    )
