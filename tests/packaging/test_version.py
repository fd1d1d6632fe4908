"""The version is the same wherever it is written."""

import tomllib
from pathlib import Path

import pytest

import gapfloor

pytestmark = pytest.mark.fast
ROOT = Path(__file__).parents[2]


def test_package_citation_and_changelog_name_the_same_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == gapfloor.__version__
    assert f"\nversion: {gapfloor.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    headings = [line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")]
    newest = next(line for line in headings if not line.endswith("(unreleased)"))
    assert newest.startswith(f"## {gapfloor.__version__} ")
