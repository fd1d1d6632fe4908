"""The notebook as a page of the site: its text, its code and its outputs, with a link to the notebook itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def notebook_page(path: Path) -> dict[str, str | bytes]:
    """Path below `docs` -> contents: the page, and a file for each of its pictures."""
    parts: list[str] = []
    pictures: dict[str, str | bytes] = {}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for data in _shown(cell):
            if "image/png" in data:
                name = f"images/{path.stem}-{len(pictures) + 1}.png"
                pictures[name] = base64.b64decode("".join(data["image/png"]))
                parts.append(f"![figure]({name})")
            elif "text/html" in data:
                parts.append(f'<div class="output">{"".join(data["text/html"])}</div>')
            elif "text/plain" in data:
                parts.append(f"```text\n{''.join(data['text/plain'])}\n```")
    title, *others = parts
    page = "\n\n".join([title, f"[Download the notebook]({path.name})", *others]) + "\n"
    return {f"{path.stem}.md": page, **pictures}


def _shown(cell: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The data of a cell's outputs; progress, which is replaced while the cell runs, is left out."""
    for output in cell.get("outputs", ()):
        if output["output_type"] == "execute_result" or "image/png" in output.get("data", {}):
            yield output["data"]
