"""TOML tables read into frozen dataclasses: one reader for every file a user writes.

A key that no field has is refused with the nearest names, a value of the wrong type with what was expected,
and both say where in the file they stand (`plan.toml: [floor] alpha`).
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from gapfloor.disk_errors import shortened
from gapfloor.errors import GapfloorError, UsageError, nearest_names
from gapfloor.input_files import read_input_text
from gapfloor.json_values import without_repetition

T = TypeVar("T")

#: A settings file that is longer than this is not a settings file.
MOST_BYTES = 2_000_000

#: More dots than this are in no key of ours.
MOST_DOTS = 100
_NOT_IN_KEYS = re.compile(r"""[^\w\-."' \t]+""")

#: TOML's whole numbers have 64 bits; Python reads longer ones and cannot always print them again.
LARGEST_NUMBER = 2**63 - 1

_QUOTES = "'"
_NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file; a missing or unreadable file is a `UsageError`."""
    return parse_toml(read_text(path), source=str(path))


def read_text(path: Path) -> str:
    """The text of a settings file; a missing or unreadable file is a `UsageError`."""
    return read_input_text(path, most_bytes=MOST_BYTES)


def parse_toml(text: str, *, source: str) -> dict[str, Any]:
    """The tables of a TOML text; `source` names it in errors."""
    # The parser takes time that grows with the square of a key's length.
    if any(part.count(".") > MOST_DOTS for part in _NOT_IN_KEYS.split(text)):
        raise UsageError(
            f"{source} has a key with more than {MOST_DOTS} dots: no setting is nested that deeply."
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not valid TOML: {shortened(str(error))}.") from None
    except RecursionError:
        raise UsageError(f"{source} is nested too deeply: settings have a few levels.") from None
    except ValueError as error:  # a number of more digits than Python converts
        raise UsageError(f"{source} cannot be read: {error}.") from None


def parse_json(text: str | bytes, *, source: str, error: type[GapfloorError] = UsageError) -> Any:
    """The value of a JSON text; `source` names it in errors."""
    try:
        return json.loads(text, object_pairs_hook=without_repetition)
    except RecursionError:
        raise error(f"{source} is nested too deeply to be read.") from None
    except ValueError as failure:  # also invalid UTF-8, and a number of more digits than Python converts
        raise error(f"{source} is not valid JSON: {shortened(str(failure))}.") from None


def from_table(kind: type[T], table: Mapping[str, Any], *, source: str, where: str = "") -> T:
    """A `kind` (a dataclass) made of a TOML table.

    Args:
        kind: a dataclass of strings, numbers, booleans, literals, tuples, mappings, optional values and
            further dataclasses.
        table: the parsed table.
        source: the file's name, for errors.
        where: the table's name within the file, for errors.
    """
    if not isinstance(table, Mapping):
        raise UsageError(f"{_at(source, where)} must be a table, but is {_shown(table)}.")
    fields = {field.name: field for field in dataclasses.fields(kind) if field.init}  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    for key in table:
        if key not in fields:
            unknown = shortened(key)
            raise UsageError(
                f"{_at(source, where)} has no setting '{unknown}': {nearest_names(unknown, fields)}"
            )
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in table:
            values[name] = _convert(hints[name], table[name], source=source, where=_join(where, name))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise UsageError(f"{_at(source, where)} needs the setting '{name}'.")
    return kind(**values)


def to_table(value: Any) -> Any:
    """The opposite of `from_table`: nested dictionaries and lists, without values that are None."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value) if f.init)
        return {name: to_table(item) for name, item in pairs if item is not None}
    if isinstance(value, Mapping):
        return {str(key): to_table(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_table(item) for item in value]
    return value


def _convert(hint: Any, value: Any, *, source: str, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return from_table(typing.cast(type, hint), value, source=source, where=where)
    if origin is Literal:
        if value not in arguments:
            known = [str(argument) for argument in arguments]
            seen = _shown(value)
            raise UsageError(f"{_at(source, where)} is {seen}: {nearest_names(seen.strip(_QUOTES), known)}")
        return value
    if origin in (typing.Union, types.UnionType):
        return _convert_union(arguments, value, source=source, where=where)
    if origin is Sequence:
        return _convert_tuple((*arguments, Ellipsis), value, source=source, where=where)
    if origin is tuple:
        return _convert_tuple(arguments, value, source=source, where=where)
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        if not isinstance(value, Mapping):
            raise UsageError(f"{_at(source, where)} must be a table, but is {_shown(value)}.")
        return {
            key: _convert(arguments[1], item, source=source, where=_join(where, key))
            for key, item in value.items()
        }
    if hint is Any:
        return value
    return _convert_scalar(hint, value, source=source, where=where)


def _convert_scalar(hint: type, value: Any, *, source: str, where: str) -> Any:
    # In TOML 2 and 2.0 are different types; a setting of kind float takes both. true is not a number.
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:
        raise UsageError(f"{_at(source, where)} has more than 64 bits: use a number between -2^63 and 2^63.")
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, hint) and (hint is bool or not isinstance(value, bool)):
        return value
    expected = _NAMES.get(hint, getattr(hint, "__name__", str(hint)))
    raise UsageError(f"{_at(source, where)} must be {expected}, but is {_shown(value)}.")


def _convert_union(arguments: tuple[Any, ...], value: Any, *, source: str, where: str) -> Any:
    failures = []
    for argument in arguments:
        if argument is type(None):
            continue
        try:
            return _convert(argument, value, source=source, where=where)
        except UsageError as error:
            failures.append(error)
    raise failures[0]


def _convert_tuple(arguments: tuple[Any, ...], value: Any, *, source: str, where: str) -> Any:
    if not isinstance(value, list | tuple):
        raise UsageError(f"{_at(source, where)} must be a list, but is {_shown(value)}.")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        kinds: tuple[Any, ...] = (arguments[0],) * len(value)
    elif len(arguments) != len(value):
        raise UsageError(f"{_at(source, where)} must hold {len(arguments)} values, but holds {len(value)}.")
    else:
        kinds = arguments
    return tuple(
        _convert(kind, item, source=source, where=f"{where}[{i}]")
        for i, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _shown(value: Any) -> str:
    try:
        return shortened(repr(value))
    except ValueError:  # a number of more digits than Python converts
        return "a number of many digits"
    except RecursionError:
        return "a deeply nested value"


def _join(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name


def _at(source: str, where: str) -> str:
    return f"{source}: {where}" if where else source
