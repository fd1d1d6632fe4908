"""Everything a report is made from, read once: a store, an episode file, or results with nothing around them.

Needs neither engine nor torch: checkpoints are asked for their headers only, frames were written by
`gapfloor replay`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.episodes import read_source
from gapfloor.analysis.inputs import Inputs
from gapfloor.analysis.leaked import LeakedGap, gap_without
from gapfloor.analysis.mean_rows import results_of_means
from gapfloor.analysis.results import AnalysisResults, read_stored_results, results_digest
from gapfloor.analysis.summaries import Summaries
from gapfloor.levels.overlap import read_leakage
from gapfloor.records.dataset import dataset_plan, store_of
from gapfloor.records.run_identity import read_run_header, read_run_identity
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import read_run_log
from gapfloor.report.cka import CkaRecord, read_cka
from gapfloor.report.findings import Findings, steps_of
from gapfloor.report.provenance import (
    Provenance,
    floor_on_same_draws,
    provenance_of_cells,
    provenance_of_inputs,
)
from gapfloor.report.replays import Replay, read_replays

#: Points of a training curve; a run of 8M steps logs 1,953.
CURVE_POINTS = 200


@dataclass(frozen=True, kw_only=True)
class SeedCurve:
    """A quantity during the training of one agent, mean over its seeds."""

    game: str
    mode: str
    budget: str
    agent: str
    n: int
    steps: tuple[float, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...] = ()
    """One SEM below the mean; empty with one seed."""
    high: tuple[float, ...] = ()


_CURVE_COLUMNS = {name: pa.string() for name in ("game", "mode", "budget", "agent")} | {
    name: pa.float64() for name in ("steps", "entropy_nats")
}


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
    from gapfloor.analysis.apply import analyse

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
        game, agent = findings.order_of(curve.game, curve.agent)
        return game, steps_of(curve.budget), agent

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


def read_curves(store: Path) -> tuple[SeedCurve, ...]:
    """Entropy curves from the training logs of a store, one per game, budget and agent.

    The agent is the checkpoint's: logs of version 0.1 name the encoder, which blind and sighted runs share.
    """
    runs: dict[tuple[str, ...], list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]] = {}
    for path in sorted(store.glob("runs/*/log.parquet")):
        try:
            table = read_run_log(path, _CURVE_COLUMNS)
        except (pa.ArrowException, OSError, KeyError):
            continue
        if table.num_rows:
            identity = read_run_identity(path.parent)
            agent = identity.agent if identity else str(table["agent"][0].as_py())
            key = (*(str(table[name][0].as_py()) for name in ("game", "mode", "budget")), agent)
            runs.setdefault(key, []).append((table["steps"].to_numpy(), table["entropy_nats"].to_numpy()))
    return tuple(_curve(key, members) for key, members in runs.items())


def _curve(key: tuple[str, ...], members: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> SeedCurve:
    # Seeds log at the same steps; where one is still training, the curve ends where the shortest does.
    length = min(steps.size for steps, _ in members)
    keep = np.unique(np.linspace(0, length - 1, min(length, CURVE_POINTS)).astype(int))
    values = np.stack([entropy[keep] for _, entropy in members])
    n, mean = len(members), values.mean(axis=0)
    band = {}
    if n > 1:
        error = values.std(axis=0, ddof=1) / math.sqrt(n)
        band = {"low": tuple((mean - error).tolist()), "high": tuple((mean + error).tolist())}
    game, mode, budget, agent = key
    steps, means = tuple(members[0][0][keep].tolist()), tuple(mean.tolist())
    return SeedCurve(game=game, mode=mode, budget=budget, agent=agent, n=n, steps=steps, mean=means, **band)


def read_hyperparameters(store: Path) -> dict[str, dict[str, Any]]:
    """Budget -> hyperparameters, from the headers of a store's checkpoints; a field that runs disagree on lists all."""
    found: dict[str, dict[str, list[Any]]] = {}
    for folder in sorted(store.glob("runs/*")):
        header = read_run_header(folder)
        values = dict(header.get("hyperparameters") or {})
        if not values:
            continue
        if "clip" in values:
            # The trainer clips the change of the value by the same range, and its headers have no field of their own.
            values["value_clipping"] = True
        if "budget_steps" in header:
            values["budget_steps"] = header["budget_steps"]
        fields = found.setdefault(str(header.get("budget", "")), {})
        for name, value in values.items():
            known = fields.setdefault(name, [])
            if value not in known:
                known.append(value)
    return {
        budget: {
            name: known[0] if len(known) == 1 else " or ".join(map(str, known))
            for name, known in fields.items()
        }
        for budget, fields in found.items()
    }
