"""The pages of `docs/` are few, short and all in the navigation; measured numbers stand in generated parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import replication_page
from source_tree import ROOT

pytestmark = pytest.mark.fast

DOCS = sorted((ROOT / "docs").rglob("*.md"))
NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").split("\nnav:\n")[1]
GUIDES = ["README.md"] + [
    f"docs/{name}.md"
    for name in (
        "index", "quickstart", "concepts", "my-policy", "my-table", "my-environment", "compare", "plan", "studies",
        "during-training",
    )
]  # fmt: skip
#: A mean with its error, e.g. 7.15 ± 0.21.
MEASURED = re.compile(r"[-−]?\d+\.\d+ ± \d+\.\d+")


def outside_of_generated_parts(path: Path) -> str:
    """A page without its generated parts and without its code; the tests run its blocks."""
    text = re.sub(r"<!-- begin: .*?<!-- end: [^>]*-->", "", path.read_text(encoding="utf-8"), flags=re.S)
    return re.sub(r"`[^`]*`", "", re.sub(r"^\s*```.*?^\s*```", "", text, flags=re.S | re.M))


def test_the_navigation_has_every_page_and_nothing_else() -> None:
    generated = {
        "commands/index.md",
        "api/index.md",
        "json.md",
        "registry-table.md",
        "audit-registry.md",
        "notebook.md",
        "changelog.md",
    }
    named = set(re.findall(r"[\w/-]+\.md", NAVIGATION))
    assert named - generated == {path.relative_to(ROOT / "docs").as_posix() for path in DOCS}


@pytest.mark.parametrize("page", GUIDES)
def test_a_guide_states_no_measurement_in_its_own_words(page: str) -> None:
    assert MEASURED.findall(outside_of_generated_parts(ROOT / page)) == []


def test_a_measurement_of_the_readme_is_in_one_generated_part_of_the_tool() -> None:
    assert set(replication_page.PAGES) == {
        "README.md",
        "docs/replication.md",
        "research-notes/replication-tables.md",
    }
    parts = [part for held in replication_page.PAGES.values() for part in held]
    assert len(parts) == len(set(parts))


def test_the_pages_can_be_read_in_an_afternoon() -> None:
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in DOCS) < 22_000
