"""The pages of `docs/` are few, short and all in the navigation; measured numbers stand in generated parts."""

from __future__ import annotations

import json
import re
from collections import Counter
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
MEASURED = re.compile(r"([-−]?\d+(?:\.\d+)?) ± (\d+(?:\.\d+)?)")
#: A decimal number that is not part of a version or a name.
DECIMAL = re.compile(r"(?<![\w.:/@-])\d*\.\d+(?!\w|\.\d)")
#: A count such as 101,376, unless it is a round one; a share such as 32%, unless it is the level of an interval.
COUNT = re.compile(r"(?<![\w.:/@,-])\d{1,3}(?:,\d{3})*,(?!000)\d{3}(?![\d,])")
SHARE = re.compile(r"(?<![\w.])(?!95%)\d+(?:\.\d+)?\d%")
GENERATED = re.compile(r"<!-- begin: .*?<!-- end: [^>]*-->", flags=re.S)
PYTHONS = {"3.11", "3.12", "3.13", "3.14"}


def outside_of_generated_parts(path: Path) -> str:
    """A page without its generated parts and without its code; the tests run its blocks."""
    text = GENERATED.sub("", path.read_text(encoding="utf-8"))
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


def figures(text: str) -> set[str]:
    """Numbers of which two measurements rarely have the same: decimals of three digits, errors, counts and shares."""
    decimals = {each for each in DECIMAL.findall(text) if len(each.replace(".", "").lstrip("0")) > 2}
    errors = {" ± ".join(pair) for pair in MEASURED.findall(text)}
    return (decimals | errors | set(COUNT.findall(text)) | set(SHARE.findall(text))) - PYTHONS


def test_figures_of_every_kind_are_found() -> None:
    text = "In 3.11, 7.9 ± 1.0 of 101,376 episodes, 32% and 95% of 1,000 and 0.352."
    assert figures(text) == {"7.9 ± 1.0", "101,376", "32%", "0.352"}


def test_a_figure_of_a_generated_part_is_not_repeated_by_hand() -> None:
    pages = [ROOT / "README.md", *DOCS]
    generated = figures("\n".join(GENERATED.findall("\n".join(path.read_text("utf-8") for path in pages))))
    assert generated
    for path in pages:
        sentences = re.sub(r"^\|.*$", "", outside_of_generated_parts(path), flags=re.M)
        assert figures(sentences) & generated == set(), path.name


def test_a_figure_that_was_written_by_hand_is_on_one_page() -> None:
    pages = [figures(outside_of_generated_parts(path)) for path in [ROOT / "README.md", *DOCS]]
    assert [
        each for each, count in Counter(each for page in pages for each in page).items() if count > 1
    ] == []


def test_a_floor_on_the_page_of_floors_is_one_of_the_registry() -> None:
    held = json.loads((ROOT / "src" / "gapfloor" / "data" / "registry.json").read_text(encoding="utf-8"))
    floors = [floor for entry in held["environments"] for floor in entry["floors"]]
    stated = MEASURED.findall((ROOT / "docs" / "registry.md").read_text(encoding="utf-8"))
    assert stated
    for mean, sem in stated:
        digits = [len(number.partition(".")[2]) for number in (mean, sem)]
        shown = {(f"{floor['mean']:.{digits[0]}f}", f"{floor['sem']:.{digits[1]}f}") for floor in floors}
        assert (mean, sem) in shown


def test_a_measurement_of_the_readme_is_in_one_generated_part_of_the_tool() -> None:
    assert set(replication_page.PAGES) == {
        "README.md",
        "docs/replication.md",
        "research-notes/replication-tables.md",
    }
    parts = [part for held in replication_page.PAGES.values() for part in held]
    assert len(parts) == len(set(parts))


def test_the_pages_can_be_read_in_an_afternoon() -> None:
    assert sum(len(path.read_text(encoding="utf-8").split()) for path in DOCS) < 20_000
