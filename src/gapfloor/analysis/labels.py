"""Labels of episodes as small integers: a code per row, and the names that the codes stand for.

A table of millions of episodes has a few dozen different labels, so text is looked at once per name, never per row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapfloor.statistics.conventions import Ints

#: A label: a code per row, and the names that the codes stand for.
Label = tuple[Ints, tuple[str, ...]]
#: A table that numbers combinations of labels may have this many places, or two per row, instead of a sort.
_SMALL_TABLE = 1 << 16
_LEADING_DIGITS = re.compile(r"[0-9]+")


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
