"""The page that explains the columns of tables, made from their registries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gapfloor.escape import escape_markdown
from gapfloor.tables.table import Column


def column_page(title: str, words: str, registries: Mapping[str, Iterable[Column]]) -> str:
    """Markdown with one section per registry: the names of each column in data, its heading and its meaning."""
    lines = [f"## {title}", "", words]
    for heading, columns in registries.items():
        lines += ["", f"### {heading}", "", "| name | printed as | meaning |", "| --- | --- | --- |"]
        for column in columns:
            names = ", ".join(f"`{name}`" for name in column.csv)
            shown = escape_markdown(column.title) + (" (with `--wide`)" if column.is_wide else "")
            lines.append(f"| {names} | {shown} | {column.meaning.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"
