"""The pages that explain columns and fields, made from their definitions in the source.

A column of a store is explained in `gapfloor.records.stored_cell`, a column of a table in `data/columns.toml`, and a
field of a result by the sentence below it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from column_page import column_page
from field_docs import field_docs
from gapfloor.analysis.columns import REGISTRIES
from gapfloor.records.stored_cell import CELL_COLUMNS, EPISODE_COLUMNS, LABELS
from gapfloor.report.tables.columns import REPORT_REGISTRIES
from result_sections import SECTIONS

#: Registry of `data/columns.toml` -> the rows that it belongs to.
ROWS = {
    "labels": "labels of every row",
    "returns": "returns and floors",
    "known": "floors that are known already",
    "comparisons": "comparisons with a reference",
    "gaps": "gaps",
    "scores": "normalised scores",
    "tested": "the other method",
    "differences": "differences between agents or rules",
    "compared": "two agents compared",
    "settling": "what would settle a comparison",
    "sensitivity": "sensitivity",
    "multiverse": "other choices",
}


def number_pages() -> dict[str, str]:
    """Path below `docs` -> Markdown of a page that is wholly generated."""
    return {"json.md": _json()}


def generated_columns() -> str:
    """What is appended to the page of columns."""
    rows = column_page(
        "Columns of rows",
        "The columns of the tables that `floor`, `evaluate`, `analyse` and `compare` print, and of further tables of a "
        "report. "
        "Names are those in CSV files; `--wide` shows the columns that a terminal leaves out.",
        {title: REGISTRIES[name].values() for name, title in ROWS.items()},
    )
    return "\n".join((rows, _report(), _store()))


def _store() -> str:
    labels = ", ".join(f"`{name}`" for name in LABELS)
    return _page(
        "## Episode and cell tables of a store",
        "",
        "`cells/*.parquet` contain the episodes and the manifests the cell records. `Store(...).query` offers both",
        "as the tables `episodes` and `cells`. An episode file from your own harness has the columns of the first.",
        "",
        "### Episodes: one row per episode",
        "",
        *_table(
            ("column", "meaning"), ((f"`{name}`", words) for name, (_, words) in EPISODE_COLUMNS.items())
        ),
        "",
        "### Cells: one row per cell",
        "",
        f"The labels ({labels}) as above, then:",
        "",
        *_table(
            ("column", "meaning"),
            ((f"`{name}`", words) for name, (_, words) in CELL_COLUMNS.items() if name not in LABELS),
        ),
    )


def _report() -> str:
    return column_page(
        "Columns of the report's tables",
        "The columns of `csv/*.csv`, which are unrounded, and their headings in the printed tables. `RULE` is a rule's "
        "name (`sampled_delta`), `CUT` a number of nats; words in braces depend on the data. Further tables have the "
        "columns of rows.",
        {title: registry.values() for title, registry in REPORT_REGISTRIES.items()},
    )


def _json() -> str:
    parts = [
        "# JSON documents",
        "",
        "Every command with `--json` prints one document. A number that cannot be computed is `null` there and NaN in",
        "Python.",
    ]
    for section in SECTIONS:
        parts += ["", f"## {section.title}", "", section.words]
        for cls in section.classes:
            rows = [(f"`{doc.name}`", doc.words) for doc in field_docs(cls)]
            words = " ".join((inspect.getdoc(cls) or "").split())
            parts += ["", f"**{cls.__name__}**: {words}", "", *_table(("field", "meaning"), rows)]
    return _page(*parts)


def _page(*lines: str) -> str:
    return "\n".join(lines) + "\n"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
