"""Results as values that JSON can hold: NaN and infinities become null.

A row of an analysis holds the statistical result it came from. The fields of such a result are written into the
object of the row where its field is declared with `field(metadata=inlined())`: a document has `delta` where Python
has `row.test.delta`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

_INLINED = "inlined"
_ONLY_IF_SET = "only if set"


def inlined(**renamed: str) -> dict[str, dict[str, str]]:
    """The metadata of a field whose own fields appear in the JSON object of its row, some under another name.

    The row's other fields take precedence over fields of the same name.
    """
    return {_INLINED: renamed}


def only_if_set() -> dict[str, bool]:
    """The metadata of a field that most rows do not have: it is left out of their JSON where it is None."""
    return {_ONLY_IF_SET: True}


def jsonable(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists, keys as text, and null for a float that is not finite.

    >>> jsonable({1: (float("nan"), 2.0)})
    {'1': [None, 2.0]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dict(_members(value))
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        # float() also turns a numpy scalar, whose repr differs, into a plain one.
        return float(value) if math.isfinite(value) else None
    return value


def _members(value: Any) -> Iterator[tuple[str, Any]]:
    fields = dataclasses.fields(value)
    own = {field.name for field in fields if _INLINED not in field.metadata}
    for field in fields:
        item = jsonable(getattr(value, field.name))
        if item is None and _ONLY_IF_SET in field.metadata:
            continue
        renamed: Mapping[str, str] | None = field.metadata.get(_INLINED)
        if renamed is None:
            yield field.name, item
        else:
            named = ((renamed.get(name, name), inner) for name, inner in item.items())
            yield from ((name, inner) for name, inner in named if name not in own)
