"""One description of a table, and what its writers make of it."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass

import pytest

from gapfloor.tables.cells import estimate, fixed, p_value, text_cell
from gapfloor.tables.formats import html_rows, to_csv, to_float, to_html, to_markdown, to_tabular
from gapfloor.tables.table import Column, RuleLine, Table
from gapfloor.tables.terminal import to_terminal

pytestmark = pytest.mark.fast


@dataclass(frozen=True)
class Measured:
    game: str
    delta: float
    interval: tuple[float, float]
    p: float


COLUMNS = {
    column.key: column
    for column in (
        Column("game", "Game", "The game.", lambda row: text_cell(row.game)),
        Column(
            "delta",
            "Δ [interval]",
            "Return minus floor.",
            lambda row: estimate(row.delta, row.interval),
            align="r",
            tex=r"$\Delta$ [interval]",
            csv=("delta", "delta_low", "delta_high"),
        ),
        Column("p", "p", "Its p value.", lambda row: p_value(row.p), align="r", tex="$p$", is_wide=True),
    )
}
ROWS = (
    Measured("maze", -1.23456, (-2.5, 0.03), 4.5e-7),
    Measured("a_b <b>", 2.0, (math.nan, math.nan), math.nan),
)


@pytest.fixture
def table() -> Table:
    return Table(
        name="delta",
        title="Against the floor",
        caption=text_cell("Differences."),
        columns=tuple(COLUMNS.values()),
        rows=(ROWS[0], RuleLine("midrule"), ROWS[1]),
        notes=("maze has one run.",),
        status="exploratory",
    )


def csv_rows(table: Table) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(table))))


def test_columns_make_the_cells_of_row_objects(table: Table) -> None:
    assert [cell.plain for cell in table.body[0]] == ["maze", "−1.23 [−2.50, 0.03]", "4.5×10⁻⁷"]
    assert [cell.plain for cell in table.body[1]] == ["a_b <b>", "+2.00", "–"]


def test_prepared_cells_are_taken_as_they_are() -> None:
    prepared = (text_cell("", raw="maze"), estimate(1.0, (0.0, 2.0)), fixed(0.5))
    table = Table(name="delta", columns=tuple(COLUMNS.values()), rows=(ROWS[0], prepared))
    assert table.body[1] == prepared
    assert csv_rows(table)[1]["game"] == "maze"


def test_a_row_with_another_number_of_cells_or_values_is_refused() -> None:
    columns = tuple(COLUMNS.values())
    with pytest.raises(AssertionError):
        Table(name="delta", columns=columns, rows=((text_cell("maze"),),))
    with pytest.raises(AssertionError):
        Table(name="delta", columns=columns, rows=((text_cell("maze"), fixed(1.0), fixed(0.5)),))


def test_latex_has_the_lines_and_headers_of_the_layout(table: Table) -> None:
    assert to_tabular(table).splitlines() == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"Game & $\Delta$ [interval] & $p$ \\",
        r"\midrule",
        r"maze & $-1.23$ $[-2.50, 0.03]$ & $4.5\times10^{-7}$ \\",
        r"\midrule",
        r"a\_b \textless{}b\textgreater{} & $+2.00$ & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert r"\caption{Exploratory: Differences. maze has one run.}" in to_float(table)


def test_markdown_escapes_names_and_has_the_notes(table: Table) -> None:
    assert to_markdown(table).splitlines()[2:] == [
        r"| Game | Δ \[interval\] | p |",
        "| :-- | --: | --: |",
        r"| maze | −1.23 \[−2.50, 0.03\] | 4.5×10⁻⁷ |",
        r"| a_b \<b\> | +2.00 | – |",
        "",
        "Note: maze has one run.",
    ]


def test_csv_holds_the_unrounded_values(table: Table) -> None:
    assert csv_rows(table) == [
        {"game": "maze", "delta": "-1.23456", "delta_low": "-2.5", "delta_high": "0.03", "p": "4.5e-07"},
        {"game": "a_b <b>", "delta": "2.0", "delta_low": "", "delta_high": "", "p": ""},
    ]


def test_a_table_without_rows_keeps_its_columns() -> None:
    table = Table(name="delta", columns=tuple(COLUMNS.values()), rows=())
    assert to_csv(table) == "game,delta,delta_low,delta_high,p\n"
    assert to_terminal(table, 10).splitlines()[0] == "Game  Δ [interval]"


def test_html_is_escaped_and_shows_wide_columns_on_request(table: Table) -> None:
    narrow, wide = to_html(table), to_html(table, wide=True)
    assert "a_b &lt;b&gt;" in narrow
    assert "<b>" not in narrow
    assert "4.5×10⁻⁷" not in narrow
    assert "4.5×10⁻⁷" in wide
    assert '<th style="text-align: right">p</th>' in wide


def test_rows_of_the_page_can_be_sorted_by_their_raw_values(table: Table) -> None:
    assert '<td class="r" data-sort="-1.23456">−1.23 [−2.50, 0.03]</td>' in html_rows(table)
    prepared = Table(
        name="delta",
        columns=(COLUMNS["game"],),
        rows=((text_cell("", raw="maze"),), (text_cell("above"),)),
    )
    assert html_rows(prepared) == (
        '<tr><td class="l" data-sort="maze">maze</td></tr>'
        '<tr><td class="l above" data-sort="above">above</td></tr>'
    )
