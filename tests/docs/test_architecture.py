"""The page about the architecture names files that exist and every folder of the package."""

from __future__ import annotations

import re

import pytest

from source_tree import ROOT, SOURCE, folder_of, modules

pytestmark = pytest.mark.fast

PAGE = (ROOT / "research-notes" / "architecture.md").read_text(encoding="utf-8")


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w./-]+(?:\.py|/))`", PAGE)
    assert len(named) > 50
    places = (SOURCE / "gapfloor", ROOT)
    assert [name for name in named if not any((place / name).exists() for place in places)] == []


def test_every_folder_is_described() -> None:
    folders = {folder_of(name) for name, path in modules().items() if path.parent.name != "gapfloor"}
    assert [folder for folder in sorted(folders) if f"| `{folder}/` |" not in PAGE] == []
