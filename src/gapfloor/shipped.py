"""Files that ship with the package, e.g. `data/columns.toml`: documents are read once."""

from __future__ import annotations

import json
import tomllib
from functools import cache
from importlib import resources
from typing import Any


def shipped_text(path: str) -> str:
    """The text of a file of the package."""
    return resources.files("gapfloor").joinpath(path).read_text(encoding="utf-8")


@cache
def shipped(path: str) -> dict[str, Any]:
    """The document in a JSON or TOML file of the package."""
    text = shipped_text(path)
    document: dict[str, Any] = tomllib.loads(text) if path.endswith(".toml") else json.loads(text)
    return document
