"""One page per public name of `import gapfloor`, made from its docstring, so that page and program cannot differ."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from typing import Any

import gapfloor

#: Public name -> the command that does the same.
COMMANDS = {
    "Plan": "plan", "Store": "", "Study": "study", "analyse": "analyse", "audit_scan": "audit",
    "calibrate": "calibrate", "check_levels": "levels", "compare": "compare", "evaluate": "evaluate",
    "load_policy": "", "measure_floor": "floor", "plan_next": "plan", "plot": "", "power": "power",
    "probe_rule": "", "replay": "replay", "sweep": "sweep", "train": "train", "training_curve": "training-curve",
    "verify_store": "verify", "write_report": "report",
    "audit_ledger": "audit", "audit_registry": "audit", "audit_trace": "audit", "audit_verify": "audit",
    "card_check": "card", "card_compare": "card", "card_export": "card", "cka": "cka", "doctor": "doctor",
    "engines_check": "engines", "engines_list": "engines", "levels_gap": "levels", "plan_addendum": "plan",
    "plan_check": "plan", "plan_init": "plan", "plan_lock": "plan",
    "calibrate_box": "calibrate", "known_floor": "floor", "known_floors": "floor",
}  # fmt: skip
_SECTIONS = ("Args", "Returns", "Raises", "Examples")
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


def sections_of(text: str) -> dict[str, str]:
    r"""The parts of a Google-style docstring; what stands before the first heading is under the empty name.

    >>> sections_of("Does it.\n\nArgs:\n    a: One.")
    {'': 'Does it.', 'Args': 'a: One.'}
    """
    found, name = {"": ""}, ""
    for line in inspect.cleandoc(text).splitlines():
        if line.rstrip(":") in _SECTIONS and line.endswith(":"):
            name = line[:-1]
            found[name] = ""
        else:
            found[name] += f"{line}\n"
    return {name: textwrap.dedent(part).strip() for name, part in found.items()}


def _first_line(item: Any) -> str:
    return sections_of(item.__doc__)[""].split("\n\n")[0].replace("\n", " ")


def _page(name: str, item: Any) -> str:
    parts = sections_of(item.__doc__)
    command = COMMANDS.get(name, "")
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
    """`name: words` entries, whose words may continue on indented lines, as a list."""
    entries = re.split(r"\n(?=\S)", text)
    found = []
    for entry in entries:
        name, _, words = entry.partition(":")
        found.append(f"- `{name}`: {' '.join(words.split())}")
    return found


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
