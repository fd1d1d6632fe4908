"""Reading episodes: from a gapfloor store, from anyone's CSV or Parquet file, or from a table in memory.

Every source becomes one `Inputs`: an episode table with the columns of contract 6 and, from a store, a cell
table. Whatever is wrong with a row is named with its place; no row is dropped.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gapfloor.analysis.column_names import (
    ALIASES,
    TableOptions,
    name_columns,
    normal_level_set,
    normal_rule,
    refuse_mixed_seeds,
)
from gapfloor.analysis.inputs import (
    FLOOR_RULE,
    SHOWN_ROWS,
    Inputs,
    Label,
    Places,
    combined_codes,
    gather,
    inputs_of_cells,
    is_named,
    label_codes,
    marked,
    numbers,
    relabelled,
    whole_numbers,
)
from gapfloor.analysis.known_floors import is_stated_floor
from gapfloor.analysis.summaries import Summaries, Summary, over_runs, read_summaries
from gapfloor.analysis.table_files import read_table
from gapfloor.errors import UsageError, shortened
from gapfloor.records.dataset import is_dataset, store_of
from gapfloor.records.store import Store, times_of_cells
from gapfloor.records.stored_cell import LABELS
from gapfloor.statistics.conventions import Ints

#: A store's folder, a file or folder of results, a `Store`, a pyarrow table, or what was read already.
Source = Any


def read_source(
    source: Source,
    *,
    cells: pa.Table | None = None,
    options: TableOptions | None = None,
) -> Inputs | Summaries:
    """Episodes (and cell records) from a store or a table, or the means that a table holds instead.

    A table is in memory, or a file or folder of anyone's tool; `options` says what it does not say itself. A floor
    that is stated as a number can be compared with run means only, so episodes become those.
    """
    options = options or TableOptions()
    if isinstance(source, Inputs):
        return source
    if isinstance(source, Store):
        return _read_store(source)
    path = Path() if isinstance(source, pa.Table) else Path(source)
    if not isinstance(source, pa.Table) and ((path / "cells").is_dir() or is_dataset(path)):
        return _read_store(Store(store_of(path)))
    raw = read_table(source, options)
    means = read_summaries(raw, options)
    if means is not None:
        return means
    is_stated = is_stated_floor(options.floor)
    named = "the table" if isinstance(source, pa.Table) else str(source)
    unit, first, notes, tables = raw.unit, raw.first, raw.notes, [raw.table]
    # A large table is given away, so that `tidy` can free it before it needs the memory.
    del raw
    known = dataclasses.replace(options, floor="") if is_stated else options
    try:
        inputs = tidy(tables.pop(), source=named, cells=cells, unit=unit, first=first, options=known)
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise UsageError(
            f"{named} has a column of a type that cannot be used ({shortened(str(error))}): labels are text in UTF-8 "
            "or whole numbers, and returns are numbers."
        ) from error
    changed = () if isinstance(source, pa.Table) else (_changed_at(path),)
    inputs = dataclasses.replace(inputs, assumed=(*notes, *inputs.assumed), changed_at=changed)
    return run_means(inputs) if is_stated else inputs


def read_inputs(source: Source, **settings: Any) -> Inputs:
    """The episodes that `read_source` finds in a source; a table of means is refused."""
    found = read_source(source, **settings)
    if isinstance(found, Summaries):
        raise UsageError(
            f"{source} holds means, and this needs episodes: give a store or a table of episodes."
        )
    return found


def run_means(inputs: Inputs) -> Summaries:
    """The mean of every run, for a floor that has no episodes."""
    names = ("game", "agent", "rule", "level_set", "budget", "seed")
    codes = combined_codes([inputs.labels[name] for name in names])
    sums, counts = np.bincount(codes, inputs.returns), np.bincount(codes)
    rows = []
    for at in np.unique(codes, return_index=True)[1]:
        game, agent, rule, level_set, budget, _ = (
            inputs.labels[name][1][int(inputs.labels[name][0][at])] for name in names
        )
        mean = float(sums[codes[at]] / counts[codes[at]])
        who = agent if len(inputs.labels["budget"][1]) == 1 else f"{agent}, {budget}"
        rows.append(Summary(game, who or rule, rule, level_set, mean, np.nan, 1))
    return Summaries(tuple(over_runs(rows)), inputs.assumed)


def _read_store(store: Store) -> Inputs:
    store.check_readable()
    cells = store.comparable_cells()
    if not cells:
        raise UsageError(f"The store {store.root} holds no cells. Run gapfloor floor or evaluate first.")
    inputs = inputs_of_cells(cells, source=str(store.root))
    damaged = tuple(path.stem for path in store.damaged)
    failed = tuple(sorted(path.stem for path in (store.root / "replays").glob("*.failed")))
    known = times_of_cells(store.root)
    noted = sorted(known[cell.path.stem] for cell in cells if cell.path.stem in known)
    changed = [_changed_at(cell.path) for cell in cells if cell.path.stem not in known]
    return dataclasses.replace(
        inputs, damaged=damaged, replay_failures=failed, stored_at=tuple(noted), changed_at=tuple(changed)
    )


def _changed_at(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def tidy(
    table: pa.Table,
    *,
    source: str,
    unit: str,
    first: int,
    cells: pa.Table | None = None,
    options: TableOptions | None = None,
) -> Inputs:
    """A table of episodes with its columns checked, named and filled in."""
    options, place = options or TableOptions(), Places(first, unit)
    table, assumed = name_columns(table, options, source=source)
    if table.num_rows == 0:
        raise UsageError(f"{source} holds no episodes.")
    if "step" in table.column_names and table["step"].null_count < table.num_rows:
        table = _one_step(table, options, source=source)
    extra = tuple(name for name in table.column_names if name not in ALIASES)
    labels = {}
    for name in LABELS:
        labels[name] = label_codes(table[name])
        # A large table has no room for a second copy of its labels.
        table = table.drop_columns([name])
    for name in ("game", "rule", "level_set", "draw"):
        if "" in labels[name][1]:
            empty = place.listed(is_named(labels[name], ""))
            raise UsageError(f"{source}: {name} is empty in {empty}. Fill it in.")
    labels["rule"] = relabelled(labels["rule"], lambda name: normal_rule(name, source=source))
    labels["level_set"] = relabelled(labels["level_set"], lambda name: normal_level_set(name, source=source))
    refuse_mixed_seeds(labels["seed"][1], source=source)
    # A uniform rule is the floor even where the reference column was left empty.
    unmarked = is_named(labels["rule"], FLOOR_RULE) & is_named(labels["reference"], "")
    if unmarked.any():
        labels["reference"] = marked(labels["reference"], unmarked, FLOOR_RULE)
    inputs = gather(table, labels, place, source=source, cells=cells, assumed=assumed, extra=extra)
    slot, index = (whole_numbers(table, name, source=source) for name in ("slot", "index"))
    del table
    pa.default_memory_pool().release_unused()
    _refuse_duplicates(labels, slot, index, place, source=source)
    return inputs


def _one_step(table: pa.Table, options: TableOptions, *, source: str) -> pa.Table:
    """The rows of the last training step of each run; several steps are refused unless the user asks for the last."""
    who = ("game", "budget", "agent", "seed", "reference", "rule")
    run = combined_codes([label_codes(table[name]) for name in who])
    steps = numbers(table["step"], "step", Places(1, "row"), source=source)
    last = np.full(int(run.max()) + 1, -np.inf)
    np.maximum.at(last, run, steps)
    is_last = steps == last[run]
    if is_last.all():
        return table
    if options.step != "last":
        raise UsageError(
            f"{source} has several training steps per run: it is a learning curve, whose episodes belong to different "
            "policies. --step last reads the last step of each run; --columns budget=NAME makes every step a budget."
        )
    return table.filter(pa.array(is_last))


def _refuse_duplicates(
    labels: dict[str, Label], slot: Ints, index: Ints, place: Places, *, source: str
) -> None:
    """Refuse an episode that occurs twice: cell, slot and index in one number each, sorted in one go where they fit."""
    # Without slot and index two equal rows can be two equal episodes.
    placed = (slot >= 0) & (index >= 0)
    if not placed.any():
        return
    key = combined_codes([labels[name] for name in LABELS]).astype(np.int64)
    for column in (slot, index):
        bound = int(column.max()) + 1
        if (int(key.max()) + 1) * bound >= 1 << 62:
            key = np.unique(key, return_inverse=True)[1]
        # In place: a large table has no room for copies.
        key *= bound
        key += column
    ordered = np.sort(key if placed.all() else key[placed])
    if not (ordered[1:] == ordered[:-1]).any():
        return
    rows = np.flatnonzero(placed)
    order = rows[np.argsort(key[rows], kind="stable")]
    at = np.flatnonzero(np.diff(key[order]) == 0)
    pairs = [sorted(int(row) + place.first for row in order[i : i + 2]) for i in at[:SHOWN_ROWS]]
    shown = ", ".join(f"{low} and {high}" for low, high in pairs)
    more = f" and {at.size - SHOWN_ROWS} more pairs" if at.size > SHOWN_ROWS else ""
    raise UsageError(
        f"{source}: the same episode (run, rule, level_set, draw, slot, index) stands in {place.unit}s "
        f"{shown}{more}. Remove the copies."
    )
