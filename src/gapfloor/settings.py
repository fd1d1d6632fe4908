"""Documents in TOML and JSON: tables read into frozen dataclasses, and the files that ship with the package.

A key that no field has is refused with the nearest names, a value of the wrong type with what was expected,
and both say where in the file they stand (`plan.toml: [floor] alpha`).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from gapfloor.errors import GapfloorError, UsageError, shortened
from gapfloor.input_files import read_input_text
from gapfloor.json_values import TABLE, NotThisTypeError, read_value, without_repetition, written

T = TypeVar("T")

#: A settings file that is longer than this is not a settings file.
MOST_BYTES = 2_000_000

#: More dots than this are in no key of ours.
MOST_DOTS = 100
_NOT_IN_KEYS = re.compile(r"""[^\w\-."' \t]+""")


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


def from_table(kind: type[T], table: Mapping[str, Any], *, source: str) -> T:
    """A `kind` (a dataclass) made of a TOML table.

    Args:
        kind: a dataclass of strings, numbers, booleans, literals, tuples, mappings, optional values and
            further dataclasses.
        table: the parsed table.
        source: the file's name, for errors.
    """
    try:
        found: T = read_value(kind, table, is_exact=False)
    except NotThisTypeError as error:
        place = f"{source}: {error.where}" if error.where else source
        raise UsageError(f"{place} {error.words}") from None
    return found


def to_table(value: Any) -> Any:
    """The opposite of `from_table`: nested dictionaries and lists, without values that are None."""
    return written(value, TABLE)


def shipped_text(path: str) -> str:
    """The text of a file of the package."""
    return resources.files("gapfloor").joinpath(path).read_text(encoding="utf-8")


@cache
def shipped(path: str) -> dict[str, Any]:
    """The document in a JSON or TOML file of the package."""
    text = shipped_text(path)
    document: dict[str, Any] = tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
    return document
