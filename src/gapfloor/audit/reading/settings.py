"""Settings that a user states: in configuration files, and in the command that a paper used.

Nothing is run. YAML, JSON and TOML become keys with their value, file and line, YAML by its plain loader without
objects; a file that cannot be parsed gives no settings, so that what it would have said stays unknown.
`python train.py --config configs/ppo.yaml --seed 3 env.num_levels=200` names the script `train.py`, one configuration
file and two settings.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml  # type: ignore[import-untyped]

from gapfloor.audit.reading.sources import SETTINGS_ENDINGS, SourceFile
from gapfloor.errors import UsageError

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


_LAUNCHERS = frozenset(
    {"python", "python3", "torchrun", "accelerate", "mpiexec", "mpirun", "poetry", "uv", "pipenv", "run"}
)


@dataclass(frozen=True)
class Entry:
    """One command, taken apart."""

    script: str
    """Path of the script, or the dotted name after `-m`, as the command gives it."""
    given: dict[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def parse_entry(command: str) -> Entry:
    """Take a command apart.

    >>> parse_entry("python -m pkg.train --lr 0.1 --greedy env.levels=200").given
    {'lr': 0.1, 'greedy': True, 'env.levels': 200, 'levels': 200}
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(
            f"--entry '{command}' is not a command ({error}). Quote it like a shell command."
        ) from error
    script, rest = _script_of(words)
    if script is None:
        raise UsageError(
            f"--entry '{command}' names no Python script. Write for example --entry 'python train.py --seed 1'."
        )
    given: dict[str, Any] = {}
    files = [word.partition("=")[2] or word for word in rest if word.endswith(SETTINGS_ENDINGS)]
    for word, following in zip(rest, [*rest[1:], "--"], strict=False):
        name, equals, value = word.partition("=")
        if equals or word.startswith("--"):
            # `--name value`, unless an option or a setting follows: then it is a switch.
            is_switch = not equals and re.match(r"--|[\w.]+=", following)
            name = name.lstrip("-+~")
            read = True if is_switch else _value(value if equals else following)
            given[name] = given[name.rsplit(".", 1)[-1]] = read
    return Entry(script=script, given=given, files=tuple(files))


def _script_of(words: list[str]) -> tuple[str | None, list[str]]:
    for position, word in enumerate(words):
        if word == "-m" and position + 1 < len(words) and words[position + 1] not in _LAUNCHERS:
            return words[position + 1], words[position + 2 :]
        if word.endswith((".py", ".ipynb")):
            return word, words[position + 1 :]
    return None, []


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def find_script(entry: Entry, paths: list[str]) -> str:
    """The file of a repository that an entry starts."""
    is_path = entry.script.endswith((".py", ".ipynb"))
    wanted = (entry.script if is_path else entry.script.replace(".", "/") + ".py").removeprefix("./")
    main = wanted.removesuffix(".py") + "/__main__.py"
    fitting = [path for path in paths if path == wanted]
    fitting = fitting or [
        path for path in paths if path.endswith("/" + wanted) or wanted.endswith("/" + path)
    ]
    fitting = fitting or [path for path in paths if path == main or path.endswith("/" + main)]
    if not fitting:
        raise UsageError(
            f"--entry names the script '{entry.script}', which is not in the scanned files. Check the path."
        )
    return min(fitting, key=len)
