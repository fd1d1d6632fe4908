"""Dataclasses as values that JSON and TOML can hold, and back: the one place that knows how.

| form | written by | read by | a float that is not finite |
|---|---|---|---|
| a document for people | `jsonable` | nobody | null |
| a file that only gapfloor reads, without loss | `to_exact` | `from_exact` | the text "nan", "inf" or "-inf" |
| a file that a user writes | `settings.to_table` | `settings.from_table` | as it is |
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, TypeVar

from gapfloor.errors import nearest_names, shortened

T = TypeVar("T")

#: The metadata of a field that a JSON object leaves out where it is None.
ABSENT_IF_NONE = {"absent_if_none": True}

#: What reading a document that another program may have written or cut can raise.
DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)

#: TOML's whole numbers have 64 bits; Python reads longer ones and cannot always print them again.
LARGEST_NUMBER = 2**63 - 1

_PLAIN = frozenset({str, int, bool, type(None)})
_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}
_NOT_FINITE = ("nan", "inf", "-inf")
_QUOTE = "'"


def without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON (`object_pairs_hook`) in which no name occurs twice: readers differ in which one they take."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found


class Form(NamedTuple):
    """How values are written."""

    not_finite: Callable[[float], Any]
    drops_none: bool = False


_DOCUMENT = Form(lambda value: None)
_EXACT = Form(str)
TABLE = Form(float, drops_none=True)


def jsonable(value: Any) -> Any:
    """Dataclasses as objects, tuples as lists, keys and paths as text, and null for a float that is not finite.

    >>> jsonable({1: (float("nan"), 2.0)})
    {'1': [None, 2.0]}
    """
    return written(value, _DOCUMENT)


def to_exact(value: Any) -> Any:
    """A value as JSON can hold it, all of it.

    >>> to_exact((1.5, float("nan"), float("-inf")))
    [1.5, 'nan', '-inf']
    """
    return written(value, _EXACT)


def written(value: Any, form: Form) -> Any:
    """A value in one of the forms of this module."""
    kind: Any = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, float):
        # float() also turns a numpy scalar, whose repr differs, into a plain one.
        return float(value) if math.isfinite(value) else form.not_finite(float(value))
    names = _written_fields(kind, form)
    if names is not None:
        pairs = ((name, may_be_absent, getattr(value, name)) for name, may_be_absent in names)
        return {
            name: written(item, form)
            for name, may_be_absent, item in pairs
            if item is not None or not may_be_absent
        }
    if isinstance(value, Mapping):
        return {str(key): written(item, form) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [written(item, form) for item in value]
    return str(value) if isinstance(value, PurePath) else value


@cache
def _written_fields(kind: Any, form: Form) -> tuple[tuple[str, bool], ...] | None:
    """The given fields of a dataclass, each with whether it is left out where it is None; None for any other type."""
    if not dataclasses.is_dataclass(kind):
        return None
    return tuple(
        (field.name, form.drops_none or (form is _DOCUMENT and "absent_if_none" in field.metadata))
        for field in dataclasses.fields(kind)
        if field.init
    )


class NotThisTypeError(ValueError):
    """Raised when a value does not have the form of the type that is asked for."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words, self.where = words, ""

    def within(self, step: str) -> NotThisTypeError:
        """The same error, seen from the value that holds this one."""
        self.where = f"{step}{self.where}" if self.where[:1] in ("", "[") else f"{step}.{self.where}"
        return self


def from_exact(kind: type[T], value: Any) -> T:
    """The opposite of `to_exact`: a `kind` made of what it wrote.

    Raises:
        NotThisTypeError: a field is missing or unknown, or a value has another type.
    """
    return typing.cast(T, read_value(kind, value, is_exact=True))


def read_value(kind: Any, value: Any, *, is_exact: bool) -> Any:
    """A `kind` made of plain values.

    With `is_exact` every field must be there. Otherwise fields have their defaults, and a whole number is read as a
    float where one is asked for.
    """
    if type(value) is kind and (is_exact or kind is not int):
        return value
    origin, arguments = _parts(kind)
    if origin is dataclasses.dataclass:
        return _read_fields(kind, value, is_exact)
    if origin is types.UnionType:
        return _read_union(arguments, value, is_exact)
    if origin is Literal and value not in arguments:
        seen = _shown(value)
        raise NotThisTypeError(f"is {seen}: {nearest_names(seen.strip(_QUOTE), list(map(str, arguments)))}")
    if origin is Literal or origin is Any:
        return value
    if origin is tuple:
        return _read_list(arguments, value, is_exact)
    if origin is not Mapping:
        return _read_scalar(kind, value, is_exact)
    if not isinstance(value, Mapping):
        raise _other_type("a table", value)
    found: dict[Any, Any] = {}
    for key, item in value.items():
        try:
            found[key] = read_value(arguments[1], item, is_exact=is_exact)
        except NotThisTypeError as error:
            raise error.within(key) from None
    return found


@cache
def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """What kind of type a hint is, and its arguments; found once, as a file holds few types and a million values."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return dataclasses.dataclass, ()
    if origin is typing.Union:
        return types.UnionType, arguments
    if origin is Sequence:
        return tuple, (*arguments, ...)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return Mapping, arguments
    return (Any if hint is Any else origin), arguments


def _read_scalar(hint: Any, value: Any, is_exact: bool) -> Any:
    if type(value) is int and abs(value) > LARGEST_NUMBER and not is_exact:
        raise NotThisTypeError("has more than 64 bits: use a number between -2^63 and 2^63.")
    if hint is float and is_exact and isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    # In TOML 2 and 2.0 are different types; a setting of kind float takes both. true is not a number. In an exact
    # file a whole number stays one: 0 and 0.0 print differently.
    if hint is float and type(value) is int:
        return value if is_exact else float(value)
    if isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    raise _other_type(_NAMES.get(hint, getattr(hint, "__name__", str(hint))), value)


@cache
def _fields(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """The given fields of a dataclass: name, type, and whether it has no default."""
    hints = typing.get_type_hints(kind)
    return tuple(
        (field.name, hints[field.name], field.default is field.default_factory is dataclasses.MISSING)
        for field in dataclasses.fields(kind)
        if field.init
    )


def _read_fields(kind: Any, value: Any, is_exact: bool) -> Any:
    fields = _fields(kind)
    if not isinstance(value, Mapping):
        raise _other_type("a table", value)
    names = [name for name, _, _ in fields]
    for key in value:
        if key not in names:
            unknown = shortened(str(key))
            raise NotThisTypeError(f"has no setting '{unknown}': {nearest_names(unknown, names)}")
    for name, _, has_no_default in fields:
        if name not in value and (is_exact or has_no_default):
            raise NotThisTypeError(f"needs the setting '{name}'.")
    values: dict[str, Any] = {}
    for name, hint, _ in fields:
        if name in value:
            try:
                values[name] = read_value(hint, value[name], is_exact=is_exact)
            except NotThisTypeError as error:
                raise error.within(name) from None
    return kind(**values)


def _read_union(hints: Sequence[Any], value: Any, is_exact: bool) -> Any:
    errors = []
    for hint in hints:
        try:
            return read_value(hint, value, is_exact=is_exact)
        except NotThisTypeError as error:
            errors.append(error)
    raise errors[0]


def _read_list(hints: Sequence[Any], value: Any, is_exact: bool) -> tuple[Any, ...]:
    """A list of any length (`...` is its second hint), or with a type for each item."""
    if not isinstance(value, list | tuple):
        raise _other_type("a list", value)
    is_long = hints[1:] == (...,)
    if not is_long and len(value) != len(hints):
        raise NotThisTypeError(f"must hold {len(hints)} values, but holds {len(value)}.")
    items: list[Any] = []
    try:
        for hint, item in zip(itertools.repeat(hints[0]) if is_long else hints, value, strict=False):
            items.append(read_value(hint, item, is_exact=is_exact))
    except NotThisTypeError as error:
        raise error.within(f"[{len(items)}]") from None
    return tuple(items)


def _other_type(expected: str, value: Any) -> NotThisTypeError:
    return NotThisTypeError(f"must be {expected}, but is {_shown(value)}.")


def _shown(value: Any) -> str:
    try:
        return shortened(repr(value))
    except ValueError:  # a number of more digits than Python converts
        return "a number of many digits"
    except RecursionError:
        return "a deeply nested value"
