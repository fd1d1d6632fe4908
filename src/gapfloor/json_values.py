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

from gapfloor.disk_errors import shortened
from gapfloor.errors import nearest_names

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
    return read_value(kind, value, is_exact=True)


def read_value(kind: type[T], value: Any, *, is_exact: bool) -> T:
    """A `kind` made of plain values.

    With `is_exact` every field must be there. Otherwise fields have their defaults, and a whole number is read as a
    float where one is asked for.
    """
    hint: Any = kind
    return typing.cast(T, _reader(hint, is_exact)(value))


#: Reads one plain value as the type that it was made for.
_Reader = Callable[[Any], Any]


@cache
def _reader(hint: Any, is_exact: bool) -> _Reader:
    """The reader of a type, made once: a file holds a few dozen types and a million values."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _dataclass_reader(typing.cast(type, hint), is_exact)
    if origin in (typing.Union, types.UnionType):
        return _union_reader([_reader(each, is_exact) for each in arguments])
    if origin is Literal:
        return lambda value: value if value in arguments else _refuse_word(value, arguments)
    if origin in (tuple, Sequence):
        is_long = origin is Sequence or arguments[1:] == (Ellipsis,)
        items = arguments[:1] if is_long else arguments
        return _list_reader([_reader(each, is_exact) for each in items], is_long=is_long)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping_reader(_reader(arguments[1], is_exact))
    if hint is Any:
        return lambda value: value
    return _scalar_reader(hint, is_exact)


def _scalar_reader(hint: Any, is_exact: bool) -> _Reader:
    expected = _NAMES.get(hint, getattr(hint, "__name__", str(hint)))

    def read(value: Any) -> Any:
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
        return _refuse(expected, value)

    return read


def _dataclass_reader(kind: type, is_exact: bool) -> _Reader:
    hints = typing.get_type_hints(kind)
    declared = {field.name: field for field in dataclasses.fields(kind) if field.init}
    ready = {str, bool, float, int} if is_exact else {str, bool, float}
    # A value that has its type already needs no reader.
    fields = [
        (name, hints[name] if hints[name] in ready else None, _reader(hints[name], is_exact))
        for name in declared
    ]
    needed = [
        name
        for name, field in declared.items()
        if is_exact or field.default is field.default_factory is dataclasses.MISSING
    ]

    def read(value: Any) -> Any:
        if not isinstance(value, Mapping):
            return _refuse("a table", value)
        for key in value:
            if key not in declared:
                unknown = shortened(str(key))
                raise NotThisTypeError(f"has no setting '{unknown}': {nearest_names(unknown, declared)}")
        for name in needed:
            if name not in value:
                raise NotThisTypeError(f"needs the setting '{name}'.")
        values: dict[str, Any] = {}
        name = ""
        try:
            for name, already, reader in fields:
                if name in value:
                    item = value[name]
                    values[name] = item if type(item) is already else reader(item)
        except NotThisTypeError as error:
            raise error.within(name) from None
        return kind(**values)

    return read


def _union_reader(readers: Sequence[_Reader]) -> _Reader:
    def read(value: Any) -> Any:
        first: NotThisTypeError | None = None
        for reader in readers:
            try:
                return reader(value)
            except NotThisTypeError as error:
                first = first or error
        assert first is not None
        raise first

    return read


def _list_reader(readers: Sequence[_Reader], *, is_long: bool) -> _Reader:
    """The reader of a list: of any length with one reader, or with a reader for each item."""

    def read(value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return _refuse("a list", value)
        if not is_long and len(value) != len(readers):
            raise NotThisTypeError(f"must hold {len(readers)} values, but holds {len(value)}.")
        items: list[Any] = []
        try:
            for reader, item in zip(itertools.cycle(readers) if is_long else readers, value, strict=False):
                items.append(reader(item))
        except NotThisTypeError as error:
            raise error.within(f"[{len(items)}]") from None
        return tuple(items)

    return read


def _mapping_reader(reader: _Reader) -> _Reader:
    def read(value: Any) -> Any:
        found = {}
        if not isinstance(value, Mapping):
            return _refuse("a table", value)
        for key, item in value.items():
            try:
                found[key] = reader(item)
            except NotThisTypeError as error:
                raise error.within(key) from None
        return found

    return read


def _refuse(expected: str, value: Any) -> Any:
    raise NotThisTypeError(f"must be {expected}, but is {_shown(value)}.")


def _refuse_word(value: Any, known: Sequence[Any]) -> Any:
    seen = _shown(value)
    raise NotThisTypeError(f"is {seen}: {nearest_names(seen.strip(_QUOTE), list(map(str, known)))}")


def _shown(value: Any) -> str:
    try:
        return shortened(repr(value))
    except ValueError:  # a number of more digits than Python converts
        return "a number of many digits"
    except RecursionError:
        return "a deeply nested value"
