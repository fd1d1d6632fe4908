"""The page of columns: every column of a registry with its names, its heading and its meaning."""

import pytest

from column_page import column_page
from gapfloor.tables.cells import estimate, text_cell
from gapfloor.tables.table import Column

pytestmark = pytest.mark.fast


def test_every_column_of_a_registry_is_explained() -> None:
    columns = (
        Column("game", "game", "The game.", text_cell),
        Column(
            "delta",
            "delta [interval]",
            "Return minus floor | reference.",
            lambda row: estimate(*row),
            csv=("delta", "delta_low", "delta_high"),
            is_wide=True,
        ),
    )
    page = column_page("Columns", "What they mean.", {"Floor comparisons": columns})
    assert page.splitlines()[4:] == [
        "### Floor comparisons",
        "",
        "| name | printed as | meaning |",
        "| --- | --- | --- |",
        "| `game` | game | The game. |",
        "| `delta`, `delta_low`, `delta_high` | delta \\[interval\\] (with `--wide`) | "
        "Return minus floor \\| reference. |",
    ]
