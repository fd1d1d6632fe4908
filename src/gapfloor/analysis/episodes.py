"""Reading episodes: from a gapfloor store, from anyone's CSV or Parquet file, or from a table in memory.

Every source becomes one `Inputs`: an episode table with the columns of contract 6 and, from a store, a cell
table. Whatever is wrong with a row is named with its place; no row is dropped.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapfloor.analysis.column_names import (
    FLOOR_RULE,
    name_columns,
    normal_level_set,
    normal_rule,
    refuse_mixed_seeds,
)
from gapfloor.analysis.table_files import read_table_file
from gapfloor.analysis.table_options import TableOptions
from gapfloor.errors import UsageError
from gapfloor.records.store import Store, StoredCell, cell_table, episode_table
from gapfloor.statistics.conventions import Floats, Ints

#: A label: a code per row, and the names that the codes stand for.
Label = tuple[Ints, tuple[str, ...]]
#: Labels that tell rows apart, in the order in which rows are sorted.
LABELS = ("game", "mode", "budget", "agent", "seed", "reference", "rule", "level_set", "draw")
_REQUIRED = ("game", "budget", "agent", "seed", "rule", "level_set", "draw", "episode_return")
_OPTIONAL = ("mode", "reference", "slot", "index", "level_seed", "length")
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
    row: Ints
    """Place of each row in its source, counted as `unit` says."""
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
    census: frozenset[tuple[str, str, str]] = frozenset()
    """Game, mode and level set of cells in which every level was played equally often by design."""

    @property
    def n_rows(self) -> int:
        """Number of episodes."""
        return int(self.returns.size)


#: A store's folder, a file of episodes, a `Store`, a pyarrow table, or what was read already.
Source = Any


def read_inputs(
    source: Source, *, cells: pa.Table | None = None, options: TableOptions | None = None
) -> Inputs:
    """Episodes (and cell records) from a store's folder, a file, a `Store` or a table.

    A file is a .csv, .tsv, .parquet, .jsonl or .npz file of anyone's tool; `options` says what it does not say itself.
    """
    options = options or TableOptions()
    if isinstance(source, Inputs):
        return source
    if isinstance(source, pa.Table):
        return tidy(source, cells=cells, source="the table", unit="row", first=1, options=options)
    if isinstance(source, Store):
        return _read_store(source)
    path = Path(source)
    if path.is_dir():
        return _read_store(Store(path))
    if not path.exists():
        raise UsageError(f"There is no store or file at {path}. Check the path.")
    raw = read_table_file(path, options)
    inputs = tidy(raw.table, cells=cells, source=str(path), unit=raw.unit, first=raw.first, options=options)
    return dataclasses.replace(inputs, assumed=(*raw.notes, *inputs.assumed))


def _read_store(store: Store) -> Inputs:
    store.check_readable()
    cells = store.comparable_cells()
    if not cells:
        raise UsageError(f"The store {store.root} holds no cells. Run gapfloor floor or evaluate first.")
    inputs = inputs_of_cells(cells, source=str(store.root))
    damaged = tuple(path.stem for path in store.damaged)
    failed = tuple(sorted(path.stem for path in (store.root / "replays").glob("*.failed")))
    return dataclasses.replace(inputs, damaged=damaged, replay_failures=failed)


def inputs_of_cells(cells: Sequence[StoredCell], *, source: str = "the store") -> Inputs:
    """The episodes and records of stored cells."""
    records = cell_table(cells)
    inputs = tidy(episode_table(cells), cells=records, source=source, unit="row", first=1)
    census = frozenset(
        (row["game"], row["mode"], row["level_set"]) for row in records.to_pylist() if row["repeats"]
    )
    return dataclasses.replace(inputs, census=census)


def tidy(
    table: pa.Table,
    *,
    source: str,
    unit: str,
    first: int,
    cells: pa.Table | None = None,
    damaged: tuple[str, ...] = (),
    options: TableOptions | None = None,
) -> Inputs:
    """A table of episodes with its columns checked, named and filled in."""
    table, assumed = name_columns(table, options or TableOptions(), source=source)
    if table.num_rows == 0:
        raise UsageError(f"{source} holds no episodes.")
    if "mode" not in table.column_names:
        table = table.append_column("mode", pa.array(["easy"] * table.num_rows))
        assumed.append("no column 'mode': easy mode is assumed (it matters for normalised scores only)")
    if "reference" not in table.column_names:
        reference = pc.if_else(pc.equal(_text(table["rule"]), FLOOR_RULE), FLOOR_RULE, "")
        table = table.append_column("reference", reference)
    place = np.arange(table.num_rows) + first
    labels = {name: _codes(table[name]) for name in LABELS}
    for name in ("game", "rule", "level_set", "draw"):
        _refuse_empty(labels[name], name, place, source=source, unit=unit)
    labels["rule"] = _relabelled(labels["rule"], lambda name: normal_rule(name, source=source))
    labels["level_set"] = _relabelled(labels["level_set"], lambda name: normal_level_set(name, source=source))
    refuse_mixed_seeds(labels["seed"][1], source=source)
    _mark_floors(labels)
    returns = _numbers(table["episode_return"], "episode_return", place, source=source, unit=unit)
    whole = {name: _whole(table, name, source=source) for name in ("level_seed", "slot", "index")}
    assumed += _unnamed_runs(labels, place, unit)
    known = set(LABELS) | set(_REQUIRED) | set(_OPTIONAL)
    inputs = Inputs(
        labels=labels,
        returns=returns,
        level_seed=whole["level_seed"],
        slot=whole["slot"],
        index=whole["index"],
        row=place,
        unit=unit,
        cells=cells if cells is not None and cells.num_rows else None,
        extra_columns=tuple(name for name in table.column_names if name not in known),
        assumed=tuple(assumed),
        damaged=damaged,
        agent_order=_order_of_appearance(labels),
    )
    _refuse_duplicates(inputs, source)
    return inputs


def _text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Labels as strings: 3 and 3.0 are both "3", null is empty."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_floating(kind):
        whole = pc.all(pc.or_kleene(pc.is_nan(column), pc.equal(pc.floor(column), column))).as_py()
        if whole is not False:
            column = pc.if_else(pc.is_nan(column), None, column).cast(pa.int64())
    return pc.utf8_trim_whitespace(pc.fill_null(column.cast(pa.string()), ""))


def _codes(column: pa.ChunkedArray) -> Label:
    encoded = _text(column).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    names = encoded.dictionary.to_pylist()
    # Sorted names, so that codes do not depend on the order of rows.
    order = sorted(range(len(names)), key=lambda i: natural_key(names[i]))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return rank[encoded.indices.to_numpy(zero_copy_only=False)], tuple(names[i] for i in order)


def _relabelled(label: Label, rename: Callable[[str], str]) -> Label:
    """A label with its names rewritten; names that become equal share a code."""
    codes, names = label
    renamed = [rename(name) for name in names]
    kept = sorted(set(renamed), key=natural_key)
    place = np.array([kept.index(name) for name in renamed], dtype=np.int64)
    return place[codes], tuple(kept)


def natural_key(text: str) -> tuple[Any, ...]:
    """Sorts 8M before 25M and draw 2 before draw 10.

    >>> sorted(["25M", "8M", "10", "2"], key=natural_key)
    ['2', '8M', '10', '25M']
    """
    digits = ""
    for character in text:
        if not character.isdigit():
            break
        digits += character
    return (0, int(digits), text) if digits else (1, 0, text)


def _numbers(column: pa.ChunkedArray, name: str, place: Ints, *, source: str, unit: str) -> Floats:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        values = _text(column).to_pylist()
        bad = np.array([not _is_number(value) for value in values])
        if bad.any():
            where = _list_places(place[bad], unit)
            first = values[int(np.flatnonzero(bad)[0])]
            comma = " --decimal , reads a decimal comma." if _is_number(first.replace(",", ".")) else ""
            raise UsageError(
                f"{source}: {name} is not a number in {where} (first: {first!r}). Correct the file.{comma}"
            )
        return np.array([float(value) for value in values])
    numbers = np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    bad = ~np.isfinite(numbers)
    if bad.any():
        where = _list_places(place[bad], unit)
        raise UsageError(
            f"{source}: {name} is missing or not finite in {where}. Nothing was analysed; correct or complete "
            "these episodes."
        )
    return numbers


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _whole(table: pa.Table, name: str, *, source: str) -> Ints:
    if name not in table.column_names or table[name].null_count == table.num_rows:
        return np.full(table.num_rows, -1, dtype=np.int64)
    column = table[name]
    try:
        return np.asarray(pc.fill_null(column.cast(pa.int64()), -1).to_numpy(), dtype=np.int64)
    except pa.ArrowException:
        raise UsageError(f"{source}: {name} must hold whole numbers, but is {column.type}.") from None


def _refuse_empty(label: Label, name: str, place: Ints, *, source: str, unit: str) -> None:
    codes, names = label
    if "" in names:
        where = _list_places(place[codes == names.index("")], unit)
        raise UsageError(f"{source}: {name} is empty in {where}. Fill it in.")


def _mark_floors(labels: dict[str, Label]) -> None:
    """A uniform rule is the floor even where the reference column was left empty."""
    codes, names = labels["reference"]
    rule_codes, rules = labels["rule"]
    if FLOOR_RULE not in rules or "" not in names:
        return
    unmarked = (rule_codes == rules.index(FLOOR_RULE)) & (codes == names.index(""))
    if unmarked.any():
        text = np.array(names, dtype=object)[codes]
        text[unmarked] = FLOOR_RULE
        labels["reference"] = _codes(pa.chunked_array([pa.array(text, pa.string())]))


def _unnamed_runs(labels: dict[str, Label], place: Ints, unit: str) -> list[str]:
    is_policy = np.array(labels["reference"][1], dtype=object)[labels["reference"][0]] == ""
    found = []
    for name in ("agent", "seed"):
        codes, names = labels[name]
        if "" in names:
            bad = is_policy & (codes == names.index(""))
            if bad.any():
                where = _list_places(place[bad], unit)
                found.append(f"{name} is empty in {where}: these episodes are taken as one run's")
    return found


def _order_of_appearance(labels: dict[str, Label]) -> tuple[str, ...]:
    codes, names = labels["agent"]
    is_policy = np.array(labels["reference"][1], dtype=object)[labels["reference"][0]] == ""
    codes = codes[is_policy]
    if not codes.size:
        return ()
    found, first = np.unique(codes, return_index=True)
    return tuple(names[code] for code in found[np.argsort(first)])


def _refuse_duplicates(inputs: Inputs, source: str) -> None:
    # Without slot and index two equal rows can be two equal episodes.
    placed = np.flatnonzero((inputs.slot >= 0) & (inputs.index >= 0))
    if not placed.size:
        return
    key = combined_codes([*(inputs.labels[name] for name in LABELS)])
    order = placed[np.lexsort((inputs.index[placed], inputs.slot[placed], key[placed]))]
    same = np.ones(order.size - 1, dtype=bool)
    for column in (key, inputs.slot, inputs.index):
        same &= np.diff(column[order]) == 0
    if same.any():
        at = np.flatnonzero(same)
        pairs = [(int(inputs.row[order[i]]), int(inputs.row[order[i + 1]])) for i in at[:_SHOWN]]
        shown = ", ".join(f"{min(pair)} and {max(pair)}" for pair in pairs)
        more = f" and {at.size - _SHOWN} more pairs" if at.size > _SHOWN else ""
        raise UsageError(
            f"{source}: the same episode (run, rule, level_set, draw, slot, index) stands in {inputs.unit}s "
            f"{shown}{more}. Remove the copies."
        )


def combined_codes(labels: Sequence[Label]) -> Ints:
    """One integer per row for a combination of labels, ordered as the labels are."""
    key = np.zeros(labels[0][0].size, dtype=np.int64)
    for codes, names in labels:
        key = key * max(1, len(names)) + codes
        if key.size and key.max() > 1 << 40:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return key


def _list_places(places: Ints, unit: str) -> str:
    """Rows in words: "line 7", "lines 7, 9 and 3 more"."""
    shown = ", ".join(str(int(place)) for place in places[:_SHOWN])
    more = f" and {places.size - _SHOWN} more" if places.size > _SHOWN else ""
    return f"{unit}{'s' if places.size > 1 else ''} {shown}{more}"
