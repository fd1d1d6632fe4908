"""The notebook tutorial as a page of the site: its text and its code, with a link to the notebook itself."""

from __future__ import annotations

import json
from pathlib import Path


def notebook_page(path: Path) -> str:
    """The notebook's cells as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    title, *others = parts
    return "\n\n".join([title, f"[Download the notebook]({path.name})", *others]) + "\n"
