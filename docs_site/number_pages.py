"""The page of numbers: every column and field that a user meets, with its meaning.

Fields and their meanings come from the dataclasses themselves. The columns of printed tables, of the report's tables
and of a store are described in `meanings.py`. A new field without a meaning fails the tests.
"""

from __future__ import annotations

import inspect
import re

from field_docs import field_docs
from gapfloor.records.schema import CELLS, EPISODES, LABELS
from meanings import COLUMNS, PRINTED, RECORDS
from result_sections import SECTIONS

#: Where the hand-written page `docs/numbers.md` is continued.
MARKER = "<!-- generated: columns and fields -->"


def column_meaning(name: str) -> tuple[str, str] | None:
    """Heading and meaning of a column of the report's CSV files."""
    if name in COLUMNS:
        return COLUMNS[name]
    rule = r"(sampled|greedy|merged|epsilon:[\d.]+|temperature:[\d.]+)"
    for pattern in (
        re.sub(rf"^{rule}(?=_|$)", "RULE", name),
        re.sub(rf"_{rule}$", "_RULE", name),
        re.sub(r"_\d+\.\d+$", "_CUT", name),
    ):
        if pattern in COLUMNS:
            return COLUMNS[pattern]
    return None


def generated_part() -> str:
    """What follows the hand-written head of the page."""
    parts = ["## Printed tables", ""]
    for command, headings in PRINTED.items():
        parts += [f"### `{command}` prints", "", *_table(("column", "meaning"), list(headings.items())), ""]
    parts += [
        "## Episode and cell tables of a store",
        "",
        "`cells/*.parquet` contain the episodes and the manifests the cell records. `Store(...).query` offers both",
        "as the tables `episodes` and `cells`. An episode file from your own harness has the columns of the first.",
        "",
        "### Episodes: one row per episode",
        "",
        *_table(("column", "meaning"), [(f"`{name}`", RECORDS[name]) for name in EPISODES.names]),
        "",
        "### Cells: one row per cell",
        "",
        f"The labels ({', '.join(f'`{name}`' for name in LABELS)}) as above, then:",
        "",
        *_table(
            ("column", "meaning"),
            [(f"`{name}`", RECORDS[name]) for name in CELLS.names if name not in LABELS],
        ),
        "",
        "## Tables of the report",
        "",
        "Columns of `csv/*.csv`, which are unrounded, and their headings in the printed tables. `RULE` is a rule's",
        "name (`sampled_delta`), `CUT` a number of nats. Which tables there are: [the report](report.md#tables).",
        "",
        *_table(
            ("CSV column", "printed as", "meaning"),
            [(f"`{name}`", printed, meaning) for name, (printed, meaning) in COLUMNS.items()],
        ),
        "",
        "## JSON documents",
        "",
        "Every command with `--json` prints one document. A number that cannot be computed is `null` there and NaN in",
        "Python.",
    ]
    for section in SECTIONS:
        parts += ["", f"### {section.title}", "", section.words]
        for cls in section.classes:
            rows = [(f"`{doc.name}`", doc.words) for doc in field_docs(cls)]
            words = " ".join((inspect.getdoc(cls) or "").split())
            parts += ["", f"**{cls.__name__}**: {words}", "", *_table(("field", "meaning"), rows)]
    return "\n".join(parts) + "\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    lines = [head, tuple("---" for _ in head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
