"""What an analysis reads: episodes as labels, returns and levels, and the cell records of a store.

Whatever is wrong with a row is named with its place; no row is dropped. Stored cells are taken as they are; a
stranger's table is named and filled in first (`episodes`).

A label is a code per row, and the names that the codes stand for: a table of millions of episodes has a few dozen
different labels, so text is looked at once per name, never per row.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gapfloor.errors import UsageError
from gapfloor.records.stored_cell import LABELS, StoredCell, cell_table, read_episodes
from gapfloor.statistics.conventions import LARGEST, SMALLEST, Floats, Ints

#: A label: a code per row, and the names that the codes stand for.
Label = tuple[Ints, tuple[str, ...]]
#: A table that numbers combinations of labels may have this many places, or two per row, instead of a sort.
_SMALL_TABLE = 1 << 16
_LEADING_DIGITS = re.compile(r"[0-9]+")
#: The rule that marks the floor.
FLOOR_RULE = "uniform"
#: Rows named one by one in an error before the rest is counted.
SHOWN_ROWS = 20


@dataclass(frozen=True)
class Inputs:
    """What an analysis reads."""

    labels: dict[str, Label]
    """Label -> codes per row and the names that they stand for."""
    returns: Floats
    level_seed: Ints
    """-1 where unknown."""
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


def inputs_of_cells(cells: Sequence[StoredCell], *, source: str = "the store") -> Inputs:
    """The episodes and records of stored cells."""
    tables = [read_episodes(cell.path, columns=("level_seed", "episode_return")) for cell in cells]
    rows = np.repeat(np.arange(len(cells)), [table.num_rows for table in tables])
    texts = [
        {name: "" if it is None else str(it).strip() for name, it in cell.manifest.labels.items()}
        for cell in cells
    ]
    labels = {name: _labelled(rows, [text[name] for text in texts]) for name in LABELS}
    table = pa.concat_tables(tables).combine_chunks()
    inputs = gather(table, labels, Places(1, "row"), source=source, cells=cell_table(cells))
    census = frozenset(
        tuple(cell.manifest.labels[name] for name in ("game", "mode", "level_set"))
        for cell in cells
        if cell.manifest.content.get("repeats")
    )
    return dataclasses.replace(inputs, census=census)


def gather(
    table: pa.Table,
    labels: dict[str, Label],
    place: Places,
    *,
    source: str,
    cells: pa.Table | None = None,
    assumed: Sequence[str] = (),
    extra: Sequence[str] = (),
) -> Inputs:
    """Episodes with their returns and levels checked; `assumed` was filled in before, `extra` columns are not used."""
    returns = numbers(table["episode_return"], "episode_return", place, source=source)
    returns = _computable(returns, labels["game"], place, source=source)
    is_float32 = pa.types.is_float32(table["episode_return"].type)
    notes = [*assumed, *_rounded_games(returns, labels["game"], is_float32=is_float32)]
    if np.abs(returns).max() > 2.0**53:
        notes.append("returns above 2^53 are 64-bit numbers: two that differ by 1 cannot be told apart")
    level_seed = whole_numbers(table, "level_seed", source=source)
    unknown = level_seed < 0
    if unknown.any() and not unknown.all():
        notes.append(
            f"level_seed is missing in {place.listed(unknown)}: samples with such episodes count as if no level were "
            "known, so that their gaps are not tested"
        )
    is_policy = is_named(labels["reference"], "")
    for name in ("agent", "seed"):
        if "" in labels[name][1] and (bad := is_policy & is_named(labels[name], "")).any():
            notes.append(f"{name} is empty in {place.listed(bad)}: these episodes are taken as one run's")
    codes, names = labels["agent"]
    agents, first = np.unique(codes[is_policy], return_index=True)
    return Inputs(
        labels=labels,
        returns=returns,
        level_seed=level_seed,
        cells=cells if cells is not None and cells.num_rows else None,
        extra_columns=tuple(extra),
        assumed=tuple(notes),
        agent_order=tuple(names[agent] for agent in agents[np.argsort(first)]),
    )


@dataclass(frozen=True)
class Places:
    """How rows are named in messages."""

    first: int
    unit: str

    def listed(self, rows: npt.NDArray[np.bool_]) -> str:
        """Rows in words: "line 7", "lines 7, 9 and 3 more"."""
        at = np.flatnonzero(rows) + self.first
        shown = ", ".join(str(int(place)) for place in at[:SHOWN_ROWS])
        more = f" and {at.size - SHOWN_ROWS} more" if at.size > SHOWN_ROWS else ""
        return f"{self.unit}{'s' if at.size > 1 else ''} {shown}{more}"


def numbers(column: pa.ChunkedArray, name: str, place: Places, *, source: str) -> Floats:
    """A column as finite numbers."""
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        values = [text for chunk in plain.chunks for text in label_text(chunk).to_pylist()]
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


def _computable(returns: Floats, games: Label, place: Places, *, source: str) -> Floats:
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


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def whole_numbers(table: pa.Table, name: str, *, source: str) -> Ints:
    """A column as whole numbers; -1 where it says nothing."""
    if name not in table.column_names or table[name].null_count == table.num_rows:
        # One number that looks like a column: a large table has no room for what it does not have.
        return np.broadcast_to(np.int32(-1), (table.num_rows,))
    column = table[name]
    try:
        if column.type != pa.int32():
            column = column.cast(pa.int64())
            # In four bytes where they fit.
            if all(abs(end) < 1 << 31 for end in pc.min_max(column).as_py().values() if end is not None):
                column = column.cast(pa.int32())
        return np.asarray(pc.fill_null(column, -1).to_numpy())
    except pa.ArrowException:
        raise UsageError(f"{source}: {name} must hold whole numbers, but is {table[name].type}.") from None


def label_codes(column: pa.ChunkedArray) -> Label:
    """The codes of a column; names are sorted, so that codes do not depend on the order of rows."""
    if not pa.types.is_dictionary(column.type):
        kind = column.type
        is_plain = pa.types.is_string(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
        column = (column if is_plain else column.cast(pa.string())).dictionary_encode()
    encoded = column.unify_dictionaries().combine_chunks()
    names = [*label_text(encoded.dictionary).to_pylist(), ""]
    indices = encoded.indices
    if indices.null_count:
        indices = pc.fill_null(indices.cast(pa.int32()), len(names) - 1)
    return _labelled(np.asarray(indices), names)


def label_text(values: pa.Array) -> pa.Array:
    """Labels as strings: 3 and 3.0 are both "3", null is empty."""
    if pa.types.is_floating(values.type):
        whole = pc.all(pc.or_kleene(pc.is_nan(values), pc.equal(pc.floor(values), values))).as_py()
        if whole is not False:
            values = pc.if_else(pc.is_nan(values), None, values).cast(pa.int64())
    return pc.utf8_trim_whitespace(pc.fill_null(values.cast(pa.string()), ""))


def relabelled(label: Label, rename: Callable[[str], str]) -> Label:
    """A label with its names rewritten; names that become equal share a code."""
    codes, names = label
    return _labelled(codes, [rename(name) for name in names])


def marked(label: Label, rows: np.ndarray[Any, np.dtype[np.bool_]], name: str) -> Label:
    """A label with `name` in some rows."""
    codes, names = label
    return _labelled(np.where(rows, len(names), codes), [*names, name])


def is_named(label: Label, name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which rows have this name."""
    codes, names = label
    return codes == names.index(name) if name in names else np.zeros(codes.size, dtype=bool)


def combined_codes(labels: Sequence[Label]) -> Ints:
    """One integer per row for a combination of labels, ordered as the labels are."""
    key = np.zeros(labels[0][0].size, dtype=np.int64)
    bound = 1
    for codes, names in labels:
        key *= max(1, len(names))
        key += codes
        bound *= max(1, len(names))
        if bound > 1 << 40:
            key = numbered(key, bound).astype(np.int64)
            bound = int(key.max(initial=0)) + 1
    return numbered(key, bound)


def numbered(key: Ints, bound: int) -> Ints:
    """The rank of each value among the different ones; `bound` is larger than all of them."""
    if bound > max(_SMALL_TABLE, 2 * key.size):
        return np.unique(key, return_inverse=True)[1].astype(np.int64)
    present = np.zeros(bound, dtype=bool)
    present[key] = True
    ranks = np.cumsum(present, dtype=np.int64) - 1
    if bound < 1 << 31:
        ranks = ranks.astype(np.int32)
    return np.asarray(ranks[key])


def stable_order(key: Ints) -> Ints:
    """The rows in order of a key of small numbers; rows with the same key stay in their order."""
    if key.size and int(key.max()) < 1 << 16:
        # numpy sorts two-byte numbers by radix, in linear time.
        key = key.astype(np.uint16)
    return np.argsort(key, kind="stable")


def natural_key(text: str) -> tuple[Any, ...]:
    """Sorts 8M before 25M and draw 2 before draw 10.

    >>> sorted(["25M", "8M", "10", "2"], key=natural_key)
    ['2', '8M', '10', '25M']
    """
    found = _LEADING_DIGITS.match(text)
    if found is None:
        return (1, 0, "", text)
    # Compared by length, then digit by digit, as numbers are: Python converts no more than 4,300 digits.
    digits = found.group().lstrip("0")
    return (0, len(digits), digits, text)


def _labelled(codes: Ints, names: Sequence[str]) -> Label:
    """A label of codes and their names: names that no row has are dropped, equal ones share a code."""
    present = np.bincount(codes, minlength=len(names)) > 0
    kept = sorted({name for name, there in zip(names, present, strict=True) if there}, key=natural_key)
    place = {name: at for at, name in enumerate(kept)}
    small = np.int8 if len(kept) <= 1 << 7 else np.int16 if len(kept) <= 1 << 15 else np.int32
    rank: Ints = np.array([place.get(name, 0) for name in names], dtype=small)
    return rank[codes], tuple(kept)
