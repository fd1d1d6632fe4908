"""Settings in configuration files: YAML, JSON and TOML, as keys with their value, file and line.

Files are parsed, never executed: YAML by its plain loader without objects. A file that cannot be parsed gives no
settings, so that what it would have said stays unknown.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped]

from gapfloor.audit.reading.sources import SourceFile

#: A YAML file with more nodes than this is data.
MOST_NODES = 4_000


@dataclass(frozen=True)
class FileSetting:
    """One scalar of a configuration file: the keys that lead to it, its value and its place."""

    path: tuple[str, ...]
    value: Any
    file: str
    line: int


def read_settings(file: SourceFile) -> list[FileSetting]:
    """The scalars of one configuration file; none if it cannot be parsed."""
    try:
        if file.path.endswith((".yaml", ".yml")):
            return list(_yaml_settings(file))
        if file.path.endswith(".json"):
            return list(_plain_settings(json.loads(file.text), file, ()))
        if file.path.endswith(".toml"):
            return list(_plain_settings(tomllib.loads(file.text), file, ()))
        return []
    except (ValueError, RecursionError, yaml.YAMLError):
        return []


def _yaml_settings(file: SourceFile) -> Iterator[FileSetting]:
    loader = yaml.SafeLoader(file.text)
    try:
        root = loader.get_single_node()
        waiting: list[tuple[Any, tuple[str, ...]]] = [(root, ())]
        seen = 0
        while waiting and seen < MOST_NODES:
            node, path = waiting.pop()
            seen += 1
            if isinstance(node, yaml.MappingNode):
                waiting.extend((value, (*path, str(key.value))) for key, value in node.value)
            elif isinstance(node, yaml.SequenceNode):
                waiting.extend((value, (*path, str(number))) for number, value in enumerate(node.value[:50]))
            elif isinstance(node, yaml.ScalarNode) and path:
                yield FileSetting(path, _scalar(loader, node), file.path, node.start_mark.line + 1)
    finally:
        loader.dispose()


def _scalar(loader: Any, node: Any) -> Any:
    try:
        value = loader.construct_object(node)
    except Exception:  # a tag that the plain loader does not know
        return None
    # `explore: True,` is a string that was meant as a truth value; nobody reads it as false.
    if isinstance(value, str) and value.rstrip(",").lower() in ("true", "false"):
        return value.rstrip(",").lower() == "true" or value
    return value


def _plain_settings(document: Any, file: SourceFile, path: tuple[str, ...]) -> Iterator[FileSetting]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield from _plain_settings(value, file, (*path, str(key)))
    elif isinstance(document, list):
        for number, value in enumerate(document[:50]):
            yield from _plain_settings(value, file, (*path, str(number)))
    elif path:
        yield FileSetting(path, document, file.path, _line_of(file.text, path[-1]))


def _line_of(text: str, key: str) -> int:
    """The line of the first mention of a key; parsers of JSON and TOML do not tell it."""
    position = text.find(key)
    return text.count("\n", 0, position) + 1 if position >= 0 else 1
