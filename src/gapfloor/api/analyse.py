"""Apply a plan's tests to a store, or to anyone's table of episodes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gapfloor.analysis import apply
from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.episodes import read_source
from gapfloor.analysis.mean_rows import results_of_means
from gapfloor.analysis.results import AnalysisResults, keep_results, results_digest, write_results
from gapfloor.analysis.summaries import Summaries
from gapfloor.api.keyword_settings import read_settings, takes
from gapfloor.api.progress import step_teller
from gapfloor.plan.lock import LockedPlan
from gapfloor.plan.model import Plan
from gapfloor.records.atomic import check_folder
from gapfloor.records.dataset import dataset_plan
from gapfloor.records.store import Store

#: Smaller files are read before anyone could look at a line.
_LARGE_FILE = 32 << 20


@takes(TableOptions)
def analyse(
    source: Any,
    plan: str | Path | Plan | LockedPlan | None = None,
    *,
    cells: Any = None,
    rule: str = "",
    out: str | Path | None = None,
    progress: Callable[[str], None] | bool | None = None,
    **settings: Any,
) -> AnalysisResults:
    """Apply a plan's tests to a store or to a file of episodes: comparisons with the floor, gaps and the rest.

    A table needs columns for game, agent, seed, rule, level_set and episode_return, under these or common other names
    (env, algo, split, score ...). Rows with the rule uniform are the floor. A column level_seed allows claims
    about new levels. A store keeps the results for `report`.

    A table of means works too: columns mean, std or sem, and n (runs), cells such as "4.0 ± 0.3", and a column per game
    or per agent. Its floor is rows named random or uniform, a number (floor="3.1±0.2"), or the one that ships with
    gapfloor for an environment of that name.

    Args:
        source: A store, a table (.csv, .tsv, .md, .tex, .parquet, .json, .jsonl, .npz), a log of inspect_ai (.eval),
            eval_info.json of LeRobot, or a folder of such files, e.g. of monitor files. In Python also a table in
            memory (pyarrow, pandas or polars).
        plan: The plan to follow; its lock is read from the same folder (default: the plan that is published with a
            dataset, otherwise the paper's plan with the recommended calls; without a lock every result is exploratory).
        cells: Cell records (a pyarrow table) for the entropy screen; a store brings its own.
        rule: The rule of every row, where the table has no such column, e.g. sampled.
        out: Folder for results.json and one CSV file per table.
        progress: Called with words when a large file is read. None: a line on a terminal or in a notebook; False:
            nothing.
        **settings: The fields of `TableOptions`.

    Returns:
        The rows of every table of the analysis; `print` shows comparisons and gaps, `to_pandas("gaps")` the rows of
        one table.

    Raises:
        UsageError: The source or the plan cannot be read, or an episode is not finite or occurs twice.
        CheckFailedError: The plan was changed after locking, or one of its stop conditions is met.

    Command line:
        gapfloor analyse gapfloor-store --plan plan.toml
        gapfloor analyse results.csv --rule greedy --floor random
        gapfloor analyse episodes.parquet --json --out results

    Examples:
        Three runs of one agent, and the floor, on held-out levels:

        >>> import gapfloor
        >>> import pyarrow as pa
        >>> returns = {"ppo": [7.0, 8.0, 9.0], "random": [2.0, 3.0, 2.5]}
        >>> rows = [
        ...     {"env": "heist", "algo": algo, "seed": seed, "split": "test", "score": score + 0.125 * episode}
        ...     for algo, scores in returns.items()
        ...     for seed, score in enumerate(scores)
        ...     for episode in range(20)
        ... ]
        >>> results = gapfloor.analyse(pa.Table.from_pylist(rows), rule="sampled", floor="random")
        >>> row = results.floor_comparisons[0]
        >>> row.game, row.n, row.call
        ('heist', 3, 'above')
        >>> results.to_arrow()["delta.value"].to_pylist()
        [5.5]
    """
    check_folder(out)
    options = read_settings(TableOptions, settings).with_rule(rule)
    path = Path(source) if isinstance(source, str | Path) else None
    if path is not None and path.is_file() and path.stat().st_size > _LARGE_FILE:
        step_teller(progress)(f"reading {source}")
    inputs = read_source(arrow_table(source), cells=cells, options=options)
    plan = plan if plan is not None else dataset_plan(source)
    if isinstance(inputs, Summaries):
        results = results_of_means(inputs, plan, options)
    else:
        results = apply.analyse(inputs, plan)
        # A store keeps the results for `report`; files, tables and datasets do not.
        folder = source.root if isinstance(source, Store) else path
        if folder is not None and (folder / "cells").is_dir():
            keep_results(results, folder, digest=results_digest(inputs, plan))
    if out is not None:
        write_results(results, Path(out))
    return results


def arrow_table(source: Any) -> Any:
    """A data frame of another library as a pyarrow table; anything else as it is."""
    import pyarrow as pa

    if isinstance(source, pa.Table) or not hasattr(source, "__arrow_c_stream__"):
        return source
    return pa.table(source)
