"""What MkDocs does beyond rendering `docs/`: pages of commands, functions, columns and fields, notebook, changelog.

Generated pages exist only in the site; their sources are the commands' help and the definitions of columns and results.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from api_pages import api_pages
from audit_registry_page import audit_registry_page
from command_pages import command_pages
from notebook_page import notebook_page
from number_pages import generated_columns, number_pages
from registry_page import registry_page

ROOT = Path(__file__).parents[1]


def on_config(config: Any) -> Any:
    """Put every command and function into the navigation, and pages that nobody has put there behind the methods."""
    docs = Path(config.docs_dir)
    reference = next(entry for entry in config.nav if "Reference" in entry)["Reference"]
    for title, pages in (("Commands", command_pages(docs)), ("Python", api_pages())):
        index = next(page for page in pages if page.endswith("/index.md"))
        entry = next(entry for entry in reference if title in entry)
        entry[title] = [index, *(page for page in pages if page != index)]
    named = set(re.findall(r"[\w./-]+\.md", str(config.nav)))
    unnamed = sorted(path.name for path in docs.glob("*.md") if path.name not in named)
    next(entry for entry in config.nav if "Trust" in entry)["Trust"] += unnamed
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    docs = Path(config.docs_dir)
    pages = command_pages(docs) | number_pages() | api_pages() | registry_page()
    pages["changelog.md"] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")
    pages |= notebook_page(docs / "notebook.ipynb") | audit_registry_page()
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Append generated tables, and give pages with wide output the room of the column that they need least."""
    name = page.file.src_uri
    if name == "index.md":
        page.meta["hide"] = ["navigation"]
    elif name in ("registry-table.md", "audit-registry.md"):
        page.meta["hide"] = ["navigation", "toc"]
    elif name in ("quickstart.md", "replication.md"):
        page.meta["hide"] = ["toc"]
    elif name == "columns.md":
        return f"{markdown}\n{generated_columns()}"
    return markdown
