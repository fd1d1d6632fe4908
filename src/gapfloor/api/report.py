"""Write tables, numbers, figures, the page and the gap card of a store or an episode file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gapfloor.analysis import apply
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.results import AnalysisResults
from gapfloor.analysis.table_options import TableOptions, parse_table_options
from gapfloor.analysis.table_pieces import ReadingProgress
from gapfloor.api.analyse import arrow_table
from gapfloor.api.progress import step_teller
from gapfloor.api.rare_collections import rare_collections
from gapfloor.api.reading_progress import reading_progress
from gapfloor.plan.lock import LockedPlan
from gapfloor.plan.model import Plan
from gapfloor.records.store import Store
from gapfloor.report import write
from gapfloor.report.learning_curves import read_learning_curves
from gapfloor.report.source import ReportSource, load_report_source, source_of_results
from gapfloor.report.write import FORMATS, WrittenReport


@rare_collections()
def write_report(
    source: Any,
    out: str | Path = "gapfloor-report",
    *,
    formats: str | Sequence[str] = FORMATS,
    plan: str | Path | Plan | LockedPlan | None = None,
    tables: str | Sequence[str] = (),
    columns: str | Mapping[str, str] = "",
    labels: Sequence[str] | Mapping[str, str] = (),
    rule: str = "",
    floor: str = "",
    decimal: str = ".",
    curves: Sequence[str] = (),
    curve_tag: str | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> WrittenReport:
    """The report of a store or an episode file, written to a folder.

    It needs neither engine nor torch. Results that `analyse` left in a store are used if they belong to its data and
    plan.

    Args:
        source: What `analyse` takes (a store or its folder, a file of episodes, or a table in memory), or what it
            returned.
        out: The folder to write to.
        formats: What to write: tex, md, csv, html, card, methods, figures.
        plan: The analysis plan; None: the one that is published with a dataset, otherwise the paper's, by which every
            result is exploratory.
        tables: Further tables: audit and commits (the audit of released code), hyper (hyperparameters of the
            checkpoints).
        columns: Columns of the file that have other names; see `analyse`.
        labels: Labels of every episode that the file does not state; see `analyse`.
        rule: Short for the label `rule`.
        floor: The agent or rule whose rows are the floor.
        decimal: Decimal mark of the numbers in a text file.
        curves: Learning curves of an experiment tracker, drawn with the floor, e.g. `coinrun,ppo=logs`: a folder of
            TensorBoard event files or CSV exports, one per seed.
        curve_tag: Scalar or column of `curves`; None: the usual names of the return.
        progress: Called with the name of each step. None: a line per step on a terminal or in a notebook; False:
            nothing.

    Returns:
        The files, the tables and the numbers; `print` shows the headline and a verdict per game.

    Examples:
        >>> import gapfloor, pathlib, tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> table = folder / "episodes.csv"
        >>> with table.open("w") as file:
        ...     print("game,agent,seed,rule,level_set,episode_return", file=file)
        ...     for seed in range(3):
        ...         for episode in range(8):
        ...             print(f"heist,ppo,{seed},sampled,test,{6 + seed + 0.1 * episode}", file=file)
        ...             print(f"heist,random,{seed},uniform,test,{2 + 0.1 * seed * episode}", file=file)
        >>> report = gapfloor.write_report(table, folder / "report", formats="md,card", progress=False)
        >>> sorted(path.name for path in report.files)
        ['card.json', 'card.md', 'numbers.json', 'tables.md']
    """
    chosen, further = _names(formats), _names(tables)
    write.check_names(chosen, further)
    learning = read_learning_curves(curves, tag=curve_tag)
    tell = step_teller(progress)
    if not isinstance(source, ReportSource):
        tell("analysing")
        options = parse_table_options(columns=columns, labels=labels, rule=rule, floor=floor, decimal=decimal)
        with reading_progress(quiet=progress is False) as told:
            source = _report_source(source, plan, options, told)
    if learning:
        source = replace(source, learning=learning)
    return write.write_report(source, out, formats=chosen, tables=further, progress=tell)


def _report_source(
    source: Any,
    plan: str | Path | Plan | LockedPlan | None,
    options: TableOptions,
    progress: ReadingProgress | None,
) -> ReportSource:
    if isinstance(source, AnalysisResults):
        return source_of_results(source)
    if isinstance(source, Store):
        source = source.root
    if isinstance(source, str | Path):
        return load_report_source(source, plan=plan, options=options, progress=progress)
    inputs = read_inputs(arrow_table(source), options=options)
    return source_of_results(apply.analyse(inputs, plan), inputs=inputs)


def _names(names: str | Sequence[str]) -> list[str]:
    """A list of names, or its text with commas."""
    texts: Sequence[Any] = names.split(",") if isinstance(names, str) else names
    return [str(text).strip() for text in texts if str(text).strip()]
