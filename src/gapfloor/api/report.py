"""Write tables, numbers, figures, the page and the gap card of a store or an episode file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis import apply
from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.results import AnalysisResults
from gapfloor.api.analyse import arrow_table
from gapfloor.api.keyword_settings import names_of, read_settings, takes
from gapfloor.api.progress import step_teller
from gapfloor.plan.lock import LockedPlan
from gapfloor.plan.model import Plan
from gapfloor.records.atomic import check_folder
from gapfloor.records.store import Store
from gapfloor.report import write
from gapfloor.report.source import ReportSource, load_report_source, source_of_results
from gapfloor.report.write import FORMATS, WrittenReport


@takes(TableOptions)
def report(
    source: Any,
    out: str | Path = "gapfloor-report",
    *,
    formats: str | Sequence[str] = FORMATS,
    plan: str | Path | Plan | LockedPlan | None = None,
    tables: str | Sequence[str] = (),
    rule: str = "",
    progress: Callable[[str], None] | bool | None = None,
    **settings: Any,
) -> WrittenReport:
    """Write tables, numbers, figures, the page, the gap card and a methods paragraph.

    Needs neither engine nor torch. Results that `analyse` left in a store are used if they belong to its data and plan.

    Args:
        source: A store or a file of episodes, in any form that `analyse` reads. In Python also what `analyse` returned.
        out: Folder to write to.
        formats: What to write: tex, md, csv, html, card (also as a block for a model card), methods, figures.
        plan: The analysis plan (default: the one that is published with a dataset, otherwise the paper's; without a
            lock every result is exploratory).
        tables: Further tables: audit and commits (the audit of released code), hyper (hyperparameters of the
            checkpoints).
        rule: The rule of every row, where the table has no such column, e.g. sampled.
        progress: Called with the name of each step. None: a line per step on a terminal or in a notebook; False:
            nothing.
        **settings: The fields of `TableOptions`.

    Returns:
        The files, the tables and the numbers; `print` shows the headline and a verdict per game.

    Command line:
        gapfloor report gapfloor-store --out my-report
        gapfloor report gapfloor-store --plan plan.toml
        gapfloor report episodes.csv --formats html,card

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
        >>> report = gapfloor.report(table, folder / "report", formats="md,card", progress=False)
        >>> sorted(path.name for path in report.files)
        ['card.json', 'card.md', 'model-card.md', 'numbers.json', 'tables.md']
    """
    chosen, further = names_of(formats), names_of(tables)
    write.check_names(chosen, further)
    check_folder(out)
    tell = step_teller(progress)
    if not isinstance(source, ReportSource):
        tell("analysing")
        options = read_settings(TableOptions, settings).with_rule(rule)
        source = source.root if isinstance(source, Store) else source
        if isinstance(source, AnalysisResults):
            source = source_of_results(source)
        elif isinstance(source, str | Path):
            source = load_report_source(source, plan=plan, options=options)
        else:
            inputs = read_inputs(arrow_table(source), options=options)
            source = source_of_results(apply.analyse(inputs, plan), inputs=inputs)
    return write.write_report(source, out, formats=chosen, tables=further, progress=tell)
