"""The parts of a Google-style docstring, from which help texts and pages are made."""

from __future__ import annotations

import importlib.util
import inspect
import re
import textwrap
from pathlib import Path

_SECTIONS = ("Args", "Returns", "Raises", "Command line", "Examples")


def sections_of(text: str) -> dict[str, str]:
    r"""The parts of a docstring; what stands before the first heading is under the empty name.

    >>> sections_of("Does it.\n\nArgs:\n    a: One.")
    {'': 'Does it.', 'Args': 'a: One.'}
    """
    found, name = {"": ""}, ""
    for line in inspect.cleandoc(text).splitlines():
        if line.endswith(":") and line[:-1] in _SECTIONS:
            name = line[:-1]
            found[name] = ""
        else:
            found[name] += f"{line}\n"
    return {name: textwrap.dedent(part).strip() for name, part in found.items()}


def entries_of(text: str) -> dict[str, str]:
    r"""`name: words` entries, whose words may continue on indented lines.

    >>> entries_of("a: One\n    thing.\nb: Two.")
    {'a': 'One thing.', 'b': 'Two.'}
    """
    parts = (entry.partition(":") for entry in re.split(r"\n(?=\S)", text) if entry)
    return {name: " ".join(words.split()) for name, _, words in parts}


def summary_in(home: str) -> str:
    """The first paragraph of the docstring of `module:function`."""
    return " ".join(_docstring_in(home).partition("\n\n")[0].split())


def examples_in(home: str) -> list[str]:
    """The examples of the command that is made from `module:function`."""
    return sections_of(_docstring_in(home)).get("Command line", "").splitlines()


def with_examples(text: str, examples: str) -> str:
    """A help text, and one line per example."""
    lines = "\n".join(f"  {line.strip()}" for line in examples.splitlines())
    return f"{text}\n\n\b\nExamples:\n{lines}" if lines else text


def _docstring_in(home: str) -> str:
    """The docstring of `module:function`, read from its file: importing it may load an engine."""
    module, _, name = home.partition(":")
    found = importlib.util.find_spec(module)
    assert found is not None
    text = Path(str(found.origin)).read_text(encoding="utf-8")
    docstring = re.search(rf'^ *(?:def|class) {name}\b.*?"""(.+?)"""', text, re.M | re.S)
    return docstring.group(1) if docstring else ""
