"""The registry of columns: every entry can be read, is explained, and is used by a table or a result."""

import tomllib
from importlib import resources

import pytest

from gapfloor.analysis.columns import REGISTRIES
from gapfloor.report.tables.columns import REPORT_REGISTRIES, columns_named
from gapfloor.tables.table import read_registry

pytestmark = pytest.mark.fast

LAYOUTS = tomllib.loads(
    (resources.files("gapfloor.report") / "templates/tables.toml").read_text(encoding="utf-8")
)


def names_in(entries: object) -> set[str]:
    """Every column that a part of a table names."""
    if isinstance(entries, dict):
        if "column" in entries:
            return {entries["column"]}
        return set().union(
            *(names_in(entry) for key, entry in entries.items() if key not in ("rule", "title", "tex"))
        )
    return {entries} if isinstance(entries, str) else set().union(*map(names_in, entries))  # type: ignore[arg-type]


def test_every_column_has_a_title_and_a_meaning_that_is_a_sentence() -> None:
    for registry in (*REGISTRIES.values(), *REPORT_REGISTRIES.values()):
        for column in registry.values():
            assert column.title
            assert column.meaning.endswith((".", "?", "..."))


def test_a_key_of_a_report_is_used_once() -> None:
    keys = [key for registry in REPORT_REGISTRIES.values() for key in registry]
    assert len(keys) == len(set(keys))


def test_tables_name_columns_that_exist_and_use_them_all() -> None:
    named = set().union(*(names_in(layout["columns"]) for layout in LAYOUTS.values()))
    assert all(columns_named(name) for name in named)
    # The table replaces "k" by this one where runs differ in number.
    assert {key for registry in REPORT_REGISTRIES.values() for key in registry} == {
        name for name in named if "." not in name
    } | {"k_of_n"}


def test_a_column_from_nowhere_is_refused() -> None:
    with pytest.raises(KeyError, match="env"):
        read_registry("report", {})
