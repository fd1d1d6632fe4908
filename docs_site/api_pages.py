"""One page per public name of `import gapfloor`, made from its docstring, so that page and program cannot differ."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import gapfloor
from gapfloor.cli.docstrings import entries_of, sections_of

#: Public name -> the command, where they have different names.
OTHER = {"Plan": "plan", "Store": "verify", "Study": "study", "TrainOnLevels": ""}
_INTRODUCTION = """# Python

Whatever a command does, a function of `gapfloor` does, with the same names and defaults. Every page is made from the
function's docstring, and the tests run its example. `import gapfloor` loads neither torch nor an engine: each name is
imported on first use. Functions work in plain scripts without a `__main__` guard, in notebooks and on standard input.

Every result prints as the command would print it and shows itself as HTML in a notebook. Further methods:

| method | gives |
|---|---|
| `result.to_dict()` | JSON values: the document of `--json` |
| `result.to_pandas()`, `result.to_arrow()` | one table of rows, e.g. `to_pandas("gap")`; `row_names` lists the tables |
| `result.plot()` | a matplotlib figure, where there is one |

A function that takes a while shows a bar on a terminal and one line in a notebook, with the running mean, the floor and
the time left. `progress=False` turns it off; in a log file nothing is written.

| name | |
|---|---|
"""


def api_pages() -> dict[str, str]:
    """Path below `docs` -> Markdown: an index and one page per public name."""
    names = sorted(set(gapfloor.__all__) - {"__version__"}, key=str.lower)
    items = {name: getattr(gapfloor, name) for name in names}
    rows = "\n".join(f"| [`{name}`]({name}.md) | {_first_line(item)} |" for name, item in items.items())
    pages = {f"api/{name}.md": _page(name, item) for name, item in items.items()}
    return {"api/index.md": f"{_INTRODUCTION}{rows}\n", **pages}


def command_of(name: str) -> str:
    """The command that does the same as a public name; empty if there is none."""
    return OTHER.get(name, name.replace("_", "-"))


def _first_line(item: Any) -> str:
    return sections_of(item.__doc__)[""].split("\n\n")[0].replace("\n", " ")


def _page(name: str, item: Any) -> str:
    parts = sections_of(item.__doc__)
    command = command_of(name)
    lines = [f"# gapfloor.{name}", "", parts[""], ""]
    if command:
        lines += [f"On the command line: [`gapfloor {command}`](../commands/{command}.md).", ""]
    if inspect.isclass(item):
        lines += _class_part(item)
    else:
        lines += ["```python", f"gapfloor.{name}{_signature(item)}", "```", "", *_arguments(parts, item)]
    if "Returns" in parts:
        lines += ["## Returns", "", parts["Returns"].replace("\n", " "), ""]
    if "Raises" in parts:
        lines += ["## Raises", "", *_entries(parts["Raises"]), ""]
    if "Examples" in parts:
        lines += ["## Example", "", *_example(parts["Examples"])]
    return "\n".join(lines) + "\n"


def _signature(item: Any) -> str:
    """The signature with one argument per line."""
    parameters = inspect.signature(item).parameters.values()
    lines, is_keyword_only = [], False
    for parameter in parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword_only:
            lines.append("*")
            is_keyword_only = True
        default = "" if parameter.default is parameter.empty else f" = {_value(parameter.default)}"
        stars = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        lines.append(f"{stars}{parameter.name}{default}")
    return "(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def _value(value: Any) -> str:
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}(...)"
    return repr(value)


def _arguments(parts: dict[str, str], item: Any) -> list[str]:
    if "Args" not in parts:
        return []
    return ["## Arguments", "", *_entries(parts["Args"]), ""]


def _entries(text: str) -> list[str]:
    """`name: words` entries as a list."""
    return [f"- `{name}`: {words}" for name, words in entries_of(text).items()]


def _class_part(item: type) -> list[str]:
    lines = ["## Methods", ""]
    for name, member in inspect.getmembers(item):
        if name.startswith("_") or isinstance(inspect.getattr_static(item, name), property):
            continue
        if callable(member) and member.__doc__:
            given = [each for each in inspect.signature(member).parameters if each != "self"]
            lines.append(f"- `{name}({', '.join(given)})`: {_first_line(member)}")
    return [*lines, ""]


def _example(text: str) -> list[str]:
    """Words of an example as text, its code as blocks."""
    lines: list[str] = []
    for block in re.split(r"\n\n", text):
        if block.lstrip().startswith(">>>"):
            lines += ["```pycon", block, "```", ""]
        else:
            lines += [block, ""]
    return lines
