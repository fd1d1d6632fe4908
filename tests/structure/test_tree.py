"""The shape of the package: one class name for each thing, and tests where one looks for them."""

import ast
from collections import defaultdict

import pytest

from source_tree import ROOT, folder_of, modules, reachable, tree_of

pytestmark = pytest.mark.fast

TESTS = ROOT / "tests"
#: Folders of tests that do not mirror a folder of the package.
OTHER_TESTS = {"compatibility", "data", "docs", "fuzz", "packaging", "structure"}
#: Class names that may be used twice: none.
USED_TWICE: set[str] = set()
#: Names that say nothing about what a file holds.
EMPTY_NAMES = {"utils", "util", "common", "helpers", "misc", "base", "core", "tools"}


def test_no_class_name_is_used_twice() -> None:
    homes = defaultdict(list)
    for name, path in modules().items():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    twice = {name: where for name, where in homes.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in USED_TWICE} == {}


def test_files_are_named_after_what_they_hold() -> None:
    assert [name for name in modules() if name.rsplit(".", 1)[-1] in EMPTY_NAMES] == []


def test_tests_mirror_the_folders_of_the_package() -> None:
    source = {folder_of(name) for name, path in modules().items() if path.parent.name != "gapfloor"}
    tests = {path.name for path in TESTS.iterdir() if path.is_dir() and any(path.rglob("test_*.py"))}
    assert tests - OTHER_TESTS - source == set()
    assert source - tests == set()


def _folders() -> list[str]:
    return sorted({folder_of(name) for name, path in modules().items() if path.parent.name != "gapfloor"})


@pytest.mark.parametrize("folder", _folders())
def test_every_file_is_reached_from_the_tests_of_its_folder(folder: str) -> None:
    tests = list((TESTS / folder).rglob("*.py"))
    reached = reachable(tests)
    wanted = {
        name for name, path in modules().items() if folder_of(name) == folder and path.name != "__init__.py"
    }
    assert wanted - reached == set()
