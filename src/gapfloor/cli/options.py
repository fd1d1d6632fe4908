"""What is written after an option, read into the value of an argument; and the JSON document on standard output."""

from __future__ import annotations

import contextlib
import decimal
import json
from collections.abc import Mapping
from typing import Any, ClassVar

import click

from gapfloor.cli.say import say
from gapfloor.engines.engine import Option
from gapfloor.errors import UsageError
from gapfloor.records.store import store_folder

#: Raised when a field of a document on standard output goes or changes its meaning; new fields do not raise it.
JSON_SCHEMA = "gapfloor/1"


class StoreFolder(click.ParamType[Any]):
    """The folder of a store: `~` is filled in, an address is refused before anything is done."""

    name = "folder"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(store_folder(value))


class Count(click.ParamType[Any]):
    """A whole number, also as people write large ones: `8M`, `100k`, `8_000_000`, `1e6`."""

    name = "integer"
    _UNITS: ClassVar = {"k": 10**3, "m": 10**6, "g": 10**9, "b": 10**9}

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        unit = self._UNITS.get(value[-1:].lower(), 1)
        with contextlib.suppress(decimal.InvalidOperation):
            number = decimal.Decimal(value[:-1] if unit > 1 else value) * unit
            if number.is_finite() and abs(number) < 10**30 and number == int(number):
                return int(number)
        self.fail(f"'{value}' is not a whole number: write e.g. 8000000, 8M or 100k.", param, ctx)


class Numbers(click.ParamType[Any]):
    """Numbers with commas, e.g. `0,1,2`."""

    def __init__(self, kind: type[int] | type[float], what: str) -> None:
        self.kind, self.what = kind, what
        self.name = "numbers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return [self.kind(part) for part in value.split(",")]
        except ValueError:
            kind, example = ("whole numbers", "0,1,2") if self.kind is int else ("numbers", "0,0.25,0.5,1")
            raise UsageError(
                f"'{value}' is not a list of {self.what}: write {kind} with commas, e.g. {example}."
            ) from None


def parse_engine_options(pairs: tuple[str, ...]) -> dict[str, Option]:
    """Read `NAME=true`, `NAME=false` and, for engines that take them, `NAME=3` or `NAME=word`."""
    words = {"true": True, "false": False}
    options: dict[str, Option] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name or not value:
            raise UsageError(f"'{pair}' is not an engine option: write NAME=true or NAME=false.")
        options[name] = words[value.lower()] if value.lower() in words else _scalar(value)
    return options


def _scalar(text: str) -> Option:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def print_json(document: Mapping[str, Any]) -> None:
    """One JSON document on standard output, with the version of its schema."""
    say(json.dumps({"schema": JSON_SCHEMA, **document}, indent=1, allow_nan=False))
