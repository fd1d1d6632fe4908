"""The code of a Jupyter notebook as one Python source, cell by cell in the order of the file.

Line numbers count the lines of the code cells, one after the other. Shell and magic lines become comments; a cell that
is not Python (`%%bash`) becomes comments as a whole.
"""

from __future__ import annotations

import json

from gapfloor.audit.reading.parsing import parse_source

#: Magic words whose cells are Python; those of others (`%%bash`) are not.
_OF_PYTHON = ("%%time", "%%capture", "%%prun")


def notebook_source(data: bytes) -> str | None:
    r"""The Python source of a notebook's code cells, or None when the file is not a notebook in Python.

    >>> notebook_source(b'{"cells": [{"cell_type": "code", "source": ["!ls\\n", "x = 1"]}]}')
    '#!ls\nx = 1\n'
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    cells = document.get("cells")
    if not isinstance(cells, list):
        return None
    parts = [_cell_source(cell) for cell in cells if isinstance(cell, dict)]
    return "".join(part + "\n" for part in parts if part is not None)


def _cell_source(cell: dict[str, object]) -> str | None:
    if cell.get("cell_type") != "code":
        return None
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(str(line) for line in source)
    if not isinstance(source, str) or "\0" in source:
        return None
    lines = source.splitlines()
    if source.lstrip().startswith("%%") and not source.lstrip().startswith(_OF_PYTHON):
        return "\n".join("#" + line for line in lines)
    text = "\n".join(_python_line(line) for line in lines)
    # One broken cell (a fragment, a question mark) must not hide the others.
    is_broken = isinstance(parse_source(text), str)
    return "\n".join("#" + line for line in lines) if is_broken else text


def _python_line(line: str) -> str:
    stripped = line.lstrip()
    if stripped.startswith(("!", "%", "?")) or (stripped.endswith("?") and stripped[:-1].isidentifier()):
        indent = line[: len(line) - len(stripped)]
        return f"{indent}pass  # {stripped}" if indent else "#" + stripped
    return line
