"""`constraints.txt` pins every package that an installation with all extras brings, and contains versions only."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from source_tree import ROOT

pytestmark = pytest.mark.fast

LINES = [
    line
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
PINNED = {canonicalize_name(line.split("==")[0]) for line in LINES}


def _declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    return [
        Requirement(text)
        for text in [*project["dependencies"], *(text for extra in extras for text in extra)]
    ]


def _needed(requirement: Requirement, seen: set[str]) -> None:
    """Add the names of a requirement's installed distribution and of everything that it needs here."""
    key = f"{canonicalize_name(requirement.name)}[{','.join(sorted(requirement.extras))}]"
    if key in seen or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
        return
    try:
        distribution = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError:
        return
    seen.add(key)
    for text in distribution.requires or ():
        further = Requirement(text)
        environments = [{"extra": extra} for extra in ("", *requirement.extras)]
        if further.marker is None or any(further.marker.evaluate(each) for each in environments):
            further.marker = None
            _needed(further, seen)


def test_every_package_that_is_needed_is_pinned() -> None:
    seen: set[str] = set()
    for requirement in _declared():
        _needed(requirement, seen)
    needed = {key.split("[")[0] for key in seen}
    assert len(needed) > 20
    assert sorted(needed - PINNED) == []


def test_constraints_are_names_with_versions_in_order() -> None:
    assert [line for line in LINES if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    names = [canonicalize_name(line.split("==")[0]) for line in LINES]
    assert names == sorted(set(names))


def test_what_is_declared_is_pinned_to_a_version_that_is_allowed() -> None:
    versions = {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in LINES}
    wrong = [
        str(requirement)
        for requirement in _declared()
        if versions.get(canonicalize_name(requirement.name), "") not in requirement.specifier
    ]
    assert wrong == []
