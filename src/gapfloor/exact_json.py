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
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, TypeVar

T = TypeVar("T")
#: Fields of the dataclasses that were written before: asking whether a value is one takes longer.
_FIELDS: dict[type, tuple[str, ...]] = {}
#: Types that JSON holds as they are, and those whose values can be told by their type.
_PLAIN = frozenset({str, int, bool, type(None)})
_READY = frozenset({str, int, bool, float})


class NotThisTypeError(ValueError):
    """Raised when a JSON value does not have the form of the type that is asked for."""


def to_exact(value: Any) -> Any:
    """A value as JSON can hold it, all of it.

    >>> to_exact((1.5, float("nan"), float("-inf")))
    [1.5, 'nan', '-inf']
    """
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if kind in _FIELDS:
        return {name: to_exact(getattr(value, name)) for name in _FIELDS[kind]}
    if isinstance(value, list | tuple):
        return [to_exact(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_exact(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        _FIELDS[kind] = _stored_fields(type(value))
        return to_exact(value)
    return value


@cache
def _stored_fields(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind) if field.init)


def from_exact(kind: type[T], value: Any) -> T:
    """The opposite of `to_exact`: a `kind` made of what it wrote.

    Raises:
        NotThisTypeError: a field is missing or unknown, or a value has another type.
    """
    hint: Any = kind
    return typing.cast(T, _reader(hint)(value))


#: Reads one JSON value as the type that it was made for.
_Reader = Callable[[Any], Any]


@cache
def _reader(hint: Any) -> _Reader:
    """The reader of a type, made once: a file holds a few dozen types and a million values."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _dataclass_reader(typing.cast(type, hint))
    if origin in (typing.Union, types.UnionType):
        return _union_reader(arguments)
    if origin is Literal:
        return lambda value: value if value in arguments else _refuse(hint, value)
    if origin is tuple:
        return _tuple_reader(arguments)
    if hint is float:
        return _read_float
    if hint is type(None):
        return lambda value: None if value is None else _refuse(hint, value)
    if hint in (int, str, bool):
        return lambda value: value if type(value) is hint else _refuse(hint, value)
    return lambda value: _refuse(hint, value)


def _dataclass_reader(kind: type) -> _Reader:
    hints = typing.get_type_hints(kind)
    readers = {name: _reader(hints[name]) for name in _stored_fields(kind)}
    # A value that has its type already needs no reader.
    fields = [(name, hints[name] if hints[name] in _READY else None, readers[name]) for name in readers]

    def read(value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() != readers.keys():
            return _refuse(kind, value)
        return kind(
            **{
                name: item if type(item := value[name]) is ready else reader(item)
                for name, ready, reader in fields
            }
        )

    return read


def _union_reader(arguments: tuple[Any, ...]) -> _Reader:
    readers = [_reader(argument) for argument in arguments]

    def read(value: Any) -> Any:
        for reader in readers:
            try:
                return reader(value)
            except NotThisTypeError:
                continue
        return _refuse(arguments, value)

    return read


def _tuple_reader(arguments: tuple[Any, ...]) -> _Reader:
    is_long = arguments[1:] == (Ellipsis,)
    readers = [_reader(argument) for argument in (arguments[:1] if is_long else arguments)]

    def read(value: Any) -> Any:
        if not isinstance(value, list) or not (is_long or len(value) == len(readers)):
            return _refuse(arguments, value)
        if is_long:
            return tuple(map(readers[0], value))
        return tuple(reader(item) for reader, item in zip(readers, value, strict=True))

    return read


def _read_float(value: Any) -> float:
    if isinstance(value, float) or (isinstance(value, str) and value in ("nan", "inf", "-inf")):
        return float(value)
    # A whole number stays one: 0 and 0.0 print differently.
    return value if type(value) is int else _refuse(float, value)


def _refuse(hint: Any, value: Any) -> Any:
    raise NotThisTypeError(f"{str(value)[:60]!r} is not {hint}.")
