"""What MkDocs does beyond rendering `docs/`: pages of commands, functions, columns and fields, the changelog.

Generated pages exist only in the site; their sources are the commands' help and the definitions of columns and results.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from api_pages import api_pages
from command_pages import command_pages
from notebook_page import notebook_page
from number_pages import number_pages
from registry_page import registry_page

ROOT = Path(__file__).parents[1]


def on_config(config: Any) -> Any:
    """Put every command and function into the navigation, and pages that nobody has put there behind their like."""
    docs = Path(config.docs_dir)
    for section, pages in (("Commands", command_pages(docs)), ("Python", api_pages())):
        index = f"{'commands' if section == 'Commands' else 'api'}/index.md"
        entry = next(entry for entry in config.nav if section in entry)
        entry[section] = [index, *(page for page in pages if page != index)]
    named = set(re.findall(r"[\w./-]+\.md", str(config.nav)))
    unnamed = sorted(
        str(path.relative_to(docs)) for path in docs.rglob("*.md") if str(path.relative_to(docs)) not in named
    )
    for page in unnamed:
        section = "Tutorials" if page.startswith("tutorial-") else "Reference"
        next(entry for entry in config.nav if section in entry)[section].append(page)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    pages = command_pages(Path(config.docs_dir)) | number_pages() | api_pages() | registry_page()
    pages["changelog.md"] = _from_root("CHANGELOG.md")
    pages["tutorial-notebook.md"] = notebook_page(Path(config.docs_dir) / "tutorial-notebook.ipynb")
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Give pages with wide output the room of the column that they need least."""
    name = page.file.src_uri
    if name == "index.md":
        page.meta["hide"] = ["navigation"]
    elif name == "registry-table.md":
        page.meta["hide"] = ["navigation", "toc"]
    elif name.startswith("tutorial-"):
        page.meta["hide"] = ["toc"]
    return markdown


def _from_root(name: str) -> str:
    """A page of the repository's root, its links seen from `docs`."""
    return (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
