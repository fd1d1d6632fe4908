"""The site is built without a broken link or anchor, and loads nothing from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("material", reason='the site needs: pip install "gapfloor[docs]"')

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    return folder


def test_every_page_is_in_the_site(site: Path):
    for path in (ROOT / "docs").rglob("*.md"):
        assert (site / path.relative_to(ROOT / "docs").with_suffix(".html")).exists()
    assert (site / "commands" / "evaluate.html").exists()


def test_no_page_loads_anything_from_elsewhere(site: Path):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r'<(?:script|img|iframe)[^>]*src="?(?:https?:)?//', text) == []
        assert (
            re.findall(r'<link[^>]*rel="?(?:stylesheet|preconnect|preload)[^>]*href="?(?:https?:)?//', text)
            == []
        )


@pytest.mark.parametrize("word", ["install", "notebook", "windows", "GPU", "macOS"])
def test_the_search_finds_a_section_about(site: Path, word: str):
    text = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    titles = [
        entry["title"] for entry in json.loads(text)["docs"] if entry["location"].startswith("install.html")
    ]
    assert any(word.lower() in title.lower() for title in titles)


def test_the_pages_of_columns_and_fields_are_made(site: Path):
    for name, word in (("columns", "episode_return"), ("columns", "floor_sem"), ("json", "floor_gap")):
        assert f"<code>{word}</code>" in (site / f"{name}.html").read_text(encoding="utf-8")
