"""Results as values that JSON can hold, where NaN and infinities become null; and objects read without repetition."""

from __future__ import annotations

import dataclasses
import math
from pathlib import PurePath
from typing import Any

#: The metadata of a field that a JSON object leaves out where it is None.
ABSENT_IF_NONE = {"absent_if_none": True}


def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON (`object_pairs_hook`) in which no name occurs twice: readers differ in which one they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found


def jsonable(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists, keys and paths as text, and null for a float that is not finite.

    >>> jsonable({1: (float("nan"), 2.0)})
    {'1': [None, 2.0]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: jsonable(item)
            for field in dataclasses.fields(value)
            if (item := getattr(value, field.name)) is not None or "absent_if_none" not in field.metadata
        }
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        # float() also turns a numpy scalar, whose repr differs, into a plain one.
        return float(value) if math.isfinite(value) else None
    return str(value) if isinstance(value, PurePath) else value
