"""The command a paper used, as text: which script it starts, which settings and configuration files it names.

Nothing is run. `python train.py --config configs/ppo.yaml --seed 3 env.num_levels=200` names the script `train.py`, one
configuration file and two settings.
"""

from __future__ import annotations

import ast
import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from gapfloor.audit.reading.sources import SETTINGS_ENDINGS
from gapfloor.errors import UsageError

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
