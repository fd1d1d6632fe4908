"""Reading episodes: from a gapfloor store, from anyone's CSV or Parquet file, or from a table in memory.

Every source becomes one `Inputs`: an episode table with the columns of contract 6 and, from a store, a cell
table. Whatever is wrong with a row is named with its place; no row is dropped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gapfloor.analysis.column_names import (
    ALIASES,
    FLOOR_RULE,
    TableOptions,
    name_columns,
    normal_level_set,
    normal_rule,
    refuse_mixed_seeds,
)
from gapfloor.analysis.known_floors import is_stated_floor
from gapfloor.analysis.labels import (
    Label,
    combined_codes,
    is_named,
    label_codes,
    label_text,
    marked,
    relabelled,
)
from gapfloor.analysis.summaries import Summaries, Summary, over_runs, read_summaries
from gapfloor.analysis.table_files import read_table
from gapfloor.disk_errors import shortened
from gapfloor.errors import UsageError
from gapfloor.records.cell_times import times_of_cells
from gapfloor.records.dataset import is_dataset, store_of
from gapfloor.records.store import Store, StoredCell, cell_table, labelled_episodes
from gapfloor.statistics.conventions import LARGEST, SMALLEST, Floats, Ints

#: Labels that tell rows apart, in the order in which rows are sorted.
LABELS = ("game", "mode", "budget", "agent", "seed", "reference", "rule", "level_set", "draw")
#: Rows named one by one in an error before the rest is counted.
_SHOWN = 20


@dataclass(frozen=True)
class Inputs:
    """What an analysis reads."""

    labels: dict[str, Label]
    """Label -> codes per row and the names that they stand for."""
    returns: Floats
    level_seed: Ints
    """-1 where unknown."""
    slot: Ints
    index: Ints
    """-1 where the source has none."""
    first: int
    """Place of the first row in its source, counted as `unit` says."""
    unit: str
    cells: pa.Table | None
    extra_columns: tuple[str, ...]
    assumed: tuple[str, ...]
    """What was filled in because the source does not say."""
    damaged: tuple[str, ...] = ()
    """Cells of a store that were cut or altered, and count as missing."""
    replay_failures: tuple[str, ...] = ()
    """Episodes of a store whose replay did not give the recorded return (`replays/*.failed`)."""
    agent_order: tuple[str, ...] = ()
    """Agents in the order of appearance."""
    stored_at: tuple[str, ...] = ()
    """When the cells of a store were written, as far as its `log/` knows, in order."""
    changed_at: tuple[str, ...] = ()
    """When files of data without such a note were last changed."""
    census: frozenset[tuple[str, str, str]] = frozenset()
    """Game, mode and level set of cells in which every level was played equally often by design."""

    @property
    def times(self) -> tuple[str, ...]:
        """Every known time of the data, by which a lock can be found to be later than them."""
        return (*self.stored_at, *self.changed_at)

    @property
    def n_rows(self) -> int:
        """Number of episodes."""
        return int(self.returns.size)


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
    inputs = _tidy_file(tables.pop(), source=named, cells=cells, unit=unit, first=first, options=known)
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


def _tidy_file(table: pa.Table, *, source: str, **settings: Any) -> Inputs:
    try:
        return tidy(table, source=source, **settings)
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise UsageError(
            f"{source} has a column of a type that cannot be used ({shortened(str(error))}): labels are text in UTF-8 "
            "or whole numbers, and returns are numbers."
        ) from error


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


def inputs_of_cells(cells: Sequence[StoredCell], *, source: str = "the store") -> Inputs:
    """The episodes and records of stored cells."""
    records = cell_table(cells)
    table = labelled_episodes(cells, labels=LABELS, columns=("slot", "index", "level_seed", "episode_return"))
    inputs = tidy(table, cells=records, source=source, unit="row", first=1)
    census = frozenset(
        tuple(cell.manifest.labels[name] for name in ("game", "mode", "level_set"))
        for cell in cells
        if cell.manifest.content.get("repeats")
    )
    return dataclasses.replace(inputs, census=census)


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
    options = options or TableOptions()
    table, assumed = name_columns(table, options, source=source)
    if table.num_rows == 0:
        raise UsageError(f"{source} holds no episodes.")
    if "step" in table.column_names and table["step"].null_count < table.num_rows:
        table = _one_step(table, options, source=source)
    extra = tuple(name for name in table.column_names if name not in ALIASES)
    labels = {}
    for name in LABELS:
        labels[name] = label_codes(table[name])
        table = table.drop_columns([name])
    place = _Places(first, unit)
    for name in ("game", "rule", "level_set", "draw"):
        _refuse_empty(labels[name], name, place, source=source)
    labels["rule"] = relabelled(labels["rule"], lambda name: normal_rule(name, source=source))
    labels["level_set"] = relabelled(labels["level_set"], lambda name: normal_level_set(name, source=source))
    refuse_mixed_seeds(labels["seed"][1], source=source)
    _mark_floors(labels)
    returns = _numbers(table["episode_return"], "episode_return", place, source=source)
    returns = _computable(returns, labels["game"], place, source=source)
    is_float32 = pa.types.is_float32(table["episode_return"].type)
    assumed += _rounded_games(returns, labels["game"], is_float32=is_float32)
    if np.abs(returns).max() > 2.0**53:
        assumed.append("returns above 2^53 are 64-bit numbers: two that differ by 1 cannot be told apart")
    whole = {name: _whole(table, name, source=source) for name in ("level_seed", "slot", "index")}
    unknown = whole["level_seed"] < 0
    if unknown.any() and not unknown.all():
        assumed.append(
            f"level_seed is missing in {place.listed(unknown)}: samples with such episodes count as if no level were "
            "known, so that their gaps are not tested"
        )
    assumed += _unnamed_runs(labels, place)
    inputs = Inputs(
        labels=labels,
        returns=returns,
        level_seed=whole["level_seed"],
        slot=whole["slot"],
        index=whole["index"],
        first=first,
        unit=unit,
        cells=cells if cells is not None and cells.num_rows else None,
        extra_columns=extra,
        assumed=tuple(assumed),
        agent_order=_order_of_appearance(labels),
    )
    del table
    pa.default_memory_pool().release_unused()
    _refuse_duplicates(inputs, source)
    return inputs


def _one_step(table: pa.Table, options: TableOptions, *, source: str) -> pa.Table:
    """The rows of the last training step of each run; several steps are refused unless the user asks for the last."""
    who = ("game", "budget", "agent", "seed", "reference", "rule")
    run = combined_codes([label_codes(table[name]) for name in who])
    steps = _numbers(table["step"], "step", _Places(1, "row"), source=source)
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


@dataclass(frozen=True)
class _Places:
    """How rows are named in messages."""

    first: int
    unit: str

    def listed(self, rows: npt.NDArray[np.bool_]) -> str:
        """Rows in words: "line 7", "lines 7, 9 and 3 more"."""
        at = np.flatnonzero(rows) + self.first
        shown = ", ".join(str(int(place)) for place in at[:_SHOWN])
        more = f" and {at.size - _SHOWN} more" if at.size > _SHOWN else ""
        return f"{self.unit}{'s' if at.size > 1 else ''} {shown}{more}"


def _numbers(column: pa.ChunkedArray, name: str, place: _Places, *, source: str) -> Floats:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        values = [text for chunk in column.chunks for text in label_text(_plain(chunk)).to_pylist()]
        bad = np.array([not _is_number(value) for value in values])
        if bad.any():
            where = place.listed(bad)
            first = values[int(np.flatnonzero(bad)[0])]
            is_comma = _is_number(first.replace(",", "."))
            remedy = (
                "Write a decimal point, or in Python analyse(..., decimal=',')"
                if is_comma
                else "Correct the file"
            )
            raise UsageError(f"{source}: {name} is not a number in {where} (first: {first!r}). {remedy}.")
        return np.array([float(value) for value in values])
    try:
        numbers = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    except pa.ArrowInvalid as error:
        raise UsageError(
            f"{source}: {name} holds whole numbers above 2^53, which 64-bit floating-point numbers cannot tell apart. "
            "Subtract a constant from all of them, or divide them."
        ) from error
    bad = ~np.isfinite(numbers)
    if bad.any():
        where = place.listed(bad)
        raise UsageError(
            f"{source}: {name} is missing or not finite in {where}. Nothing was analysed; correct or complete "
            "these episodes."
        )
    return numbers


def _computable(returns: Floats, games: Label, place: _Places, *, source: str) -> Floats:
    """Returns whose powers are finite; one too small for that is 0 next to the others of its game."""
    bad = (returns > LARGEST) | (returns < -LARGEST)
    if bad.any():
        first = returns[int(np.flatnonzero(bad)[0])]
        raise UsageError(
            f"{source}: the size of episode_return is above {LARGEST:g} in {place.listed(bad)} (first: {first:g}). "
            "Divide all returns, or the environment's rewards, by one constant."
        )
    tiny = (returns < SMALLEST) & (returns > -SMALLEST) & (returns != 0)
    codes, names = games
    for code in np.unique(codes[tiny]):
        largest = np.abs(returns[codes == code]).max()
        if largest < SMALLEST * 1e20:
            raise UsageError(
                f"{source}: no episode_return of {names[code]} is larger than {largest:g}, which is too small to "
                "compute with. Multiply all returns, or the environment's rewards, by one constant."
            )
    return np.where(tiny, 0.0, returns) if tiny.any() else returns


def _rounded_games(returns: Floats, games: Label, *, is_float32: bool) -> list[str]:
    """Sentences about games whose returns differ by little more than 32-bit numbers of their size can tell apart."""
    codes, names = games
    found = []
    for code in np.unique(codes):
        some = returns[codes == code]
        largest, spread = max(float(some.max()), -float(some.min())), float(some.std())
        step = float(np.spacing(np.float32(min(largest, 1e38))))
        if not 0 < spread < 10 * step:
            continue
        # Numbers of 64 bits may have been 32-bit numbers before; whole ones may be what they are.
        if is_float32 or ((some == some.astype(np.float32)).all() and (some % 1 > 0).any()):
            found.append(
                f"{names[code]}: near {largest:g}, 32-bit numbers are {step:g} apart, and the returns vary by only "
                f"{spread:.2g}: every p may be wrong. Record 64-bit numbers, or subtract a constant first"
            )
    return found


def _plain(values: pa.Array) -> pa.Array:
    return values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _whole(table: pa.Table, name: str, *, source: str) -> Ints:
    if name not in table.column_names or table[name].null_count == table.num_rows:
        # One number that looks like a column: a large table has no room for what it does not have.
        return np.broadcast_to(np.int32(-1), (table.num_rows,))
    column = table[name]
    try:
        kept = column if column.type == pa.int32() else _narrowest(column.cast(pa.int64()))
        return np.asarray(pc.fill_null(kept, -1).to_numpy())
    except pa.ArrowException:
        raise UsageError(f"{source}: {name} must hold whole numbers, but is {column.type}.") from None


def _narrowest(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whole numbers in four bytes where they fit."""
    ends = pc.min_max(column).as_py()
    fits = all(abs(end) < 1 << 31 for end in ends.values() if end is not None)
    return column.cast(pa.int32()) if fits else column


def _refuse_empty(label: Label, name: str, place: _Places, *, source: str) -> None:
    if "" in label[1]:
        raise UsageError(f"{source}: {name} is empty in {place.listed(is_named(label, ''))}. Fill it in.")


def _mark_floors(labels: dict[str, Label]) -> None:
    """A uniform rule is the floor even where the reference column was left empty."""
    unmarked = is_named(labels["rule"], FLOOR_RULE) & is_named(labels["reference"], "")
    if unmarked.any():
        labels["reference"] = marked(labels["reference"], unmarked, FLOOR_RULE)


def _unnamed_runs(labels: dict[str, Label], place: _Places) -> list[str]:
    is_policy = is_named(labels["reference"], "")
    found = []
    for name in ("agent", "seed"):
        if "" in labels[name][1]:
            bad = is_policy & is_named(labels[name], "")
            if bad.any():
                found.append(f"{name} is empty in {place.listed(bad)}: these episodes are taken as one run's")
    return found


def _order_of_appearance(labels: dict[str, Label]) -> tuple[str, ...]:
    """The agents in the order of their first rows."""
    codes, names = labels["agent"]
    codes = codes[is_named(labels["reference"], "")]
    first = np.full(len(names), codes.size)
    first[codes[::-1]] = np.arange(codes.size - 1, -1, -1)
    return tuple(names[code] for code in np.argsort(first, kind="stable") if first[code] < codes.size)


def _refuse_duplicates(inputs: Inputs, source: str) -> None:
    """Refuse an episode that occurs twice: cell, slot and index in one number each, sorted in one go where they fit."""
    # Without slot and index two equal rows can be two equal episodes.
    placed = (inputs.slot >= 0) & (inputs.index >= 0)
    if not placed.any():
        return
    key = combined_codes([inputs.labels[name] for name in LABELS]).astype(np.int64)
    for column in (inputs.slot, inputs.index):
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
    pairs = [sorted(int(row) + inputs.first for row in order[i : i + 2]) for i in at[:_SHOWN]]
    shown = ", ".join(f"{low} and {high}" for low, high in pairs)
    more = f" and {at.size - _SHOWN} more pairs" if at.size > _SHOWN else ""
    raise UsageError(
        f"{source}: the same episode (run, rule, level_set, draw, slot, index) stands in {inputs.unit}s "
        f"{shown}{more}. Remove the copies."
    )
