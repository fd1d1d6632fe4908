"""Frozen dataclasses as JSON and back without loss, for files that only gapfloor reads.

`json_values` writes documents for people: it puts the fields of a statistical result into its row and writes null for
NaN and infinity alike, which cannot be undone. Here every field keeps its place, and a float that is not finite becomes
the text "nan", "inf" or "-inf".
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeVar

T = TypeVar("T")


class NotThisTypeError(ValueError):
    """Raised when a JSON value does not have the form of the type that is asked for."""


def to_exact(value: Any) -> Any:
    """A value as JSON can hold it, all of it.

    >>> to_exact((1.5, float("nan"), float("-inf")))
    [1.5, 'nan', '-inf']
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: to_exact(getattr(value, field.name))
            for field in dataclasses.fields(value)
            if field.init
        }
    if isinstance(value, Mapping):
        return {str(key): to_exact(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_exact(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    return value


def from_exact(kind: type[T], value: Any) -> T:
    """The opposite of `to_exact`: a `kind` made of what it wrote.

    Raises:
        NotThisTypeError: a field is missing or unknown, or a value has another type.
    """
    return typing.cast(T, _read(kind, value))


def _read(hint: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _read_dataclass(typing.cast(type, hint), value)
    if origin in (typing.Union, types.UnionType):
        return _read_union(arguments, value)
    if origin is Literal:
        return value if value in arguments else _refuse(hint, value)
    if origin is tuple:
        return _read_tuple(arguments, value)
    if hint is float:
        return _read_float(value)
    if hint is type(None):
        return None if value is None else _refuse(hint, value)
    if hint in (int, str, bool) and type(value) is hint:
        return value
    return _refuse(hint, value)


def _read_dataclass(kind: type, value: Any) -> Any:
    hints = _hints(kind)
    if not isinstance(value, Mapping) or set(value) != set(hints):
        return _refuse(kind, value)
    return kind(**{name: _read(hint, value[name]) for name, hint in hints.items()})


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def _read_union(arguments: tuple[Any, ...], value: Any) -> Any:
    for argument in arguments:
        try:
            return _read(argument, value)
        except NotThisTypeError:
            continue
    return _refuse(arguments, value)


def _read_tuple(arguments: tuple[Any, ...], value: Any) -> Any:
    if not isinstance(value, list):
        return _refuse(arguments, value)
    kinds = (arguments[0],) * len(value) if arguments[1:] == (Ellipsis,) else arguments
    if len(kinds) != len(value):
        return _refuse(arguments, value)
    return tuple(_read(kind, item) for kind, item in zip(kinds, value, strict=True))


def _read_float(value: Any) -> float:
    if isinstance(value, float) or (isinstance(value, str) and value in ("nan", "inf", "-inf")):
        return float(value)
    # A whole number stays one: 0 and 0.0 print differently.
    return value if type(value) is int else _refuse(float, value)


def _refuse(hint: Any, value: Any) -> Any:
    raise NotThisTypeError(f"{str(value)[:60]!r} is not {hint}.")
