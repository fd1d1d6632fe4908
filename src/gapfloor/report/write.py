"""Writing a report: every format that was asked for, each file whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.errors import UsageError, unknown_name
from gapfloor.escape import clean_text, escape_markdown
from gapfloor.records.atomic import remove_leftovers, write_text_atomically
from gapfloor.report.card import MODEL_NAME, build_card, card_to_markdown, model_card
from gapfloor.report.figures.build import build_figures
from gapfloor.report.figures.print_figure import write_figures
from gapfloor.report.findings import Findings
from gapfloor.report.methods import build_methods
from gapfloor.report.numbers import Number, build_numbers, to_json, to_tex
from gapfloor.report.page import render_page
from gapfloor.report.source import ReportSource
from gapfloor.report.tables.build import EXTRA_TABLES, Tables, build_tables
from gapfloor.report.verdict import build_verdicts, decision, headline
from gapfloor.tables.cells import counted
from gapfloor.tables.formats import to_csv, to_float, to_markdown, to_tabular
from gapfloor.tables.readable import ReadableResult

#: Everything a report can consist of; figures come with tex and html only when asked for by name.
FORMATS = ("tex", "md", "csv", "html", "card", "methods", "figures")


@dataclass(frozen=True, repr=False)
class WrittenReport(ReadableResult):
    """What was written, and what could not be made."""

    folder: Path
    """Where the report is."""
    files: tuple[Path, ...]
    """Every file that was written."""
    made: Tables
    """The tables, and those that were left out."""
    numbers: dict[str, Number]
    """The numbers of numbers.json by name."""
    findings: Findings
    """The results that the report is about."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor report --json` prints."""
        return {
            "folder": str(self.folder),
            "files": [str(path.relative_to(self.folder)) for path in self.files],
            "tables": [table.name for table in self.made.tables],
            "left_out": {entry.name: entry.why for entry in self.made.missing},
            "numbers": len(self.numbers),
        }

    def sentences(self) -> list[str]:
        """What was left out, the headline, a verdict per game and budget, the decision, and where the report is."""
        verdicts = [
            clean_text(
                f"  {f'{verdict.place.name} {verdict.place.budget}'.strip()}: {verdict.badge}. These data support "
                f"{verdict.supports} They do not support {verdict.does_not}"
            )
            for verdict in build_verdicts(self.findings)
        ]
        missing = [f"left out: {entry.name} ({clean_text(entry.why)})" for entry in self.made.missing]
        page = self.folder / "index.html"
        size = f"{counted(len(self.made.tables), 'table')} and {counted(len(self.numbers), 'number')} in {self.folder}"
        where = size + (f"; open {page}" if page in self.files else "")
        decided = [clean_text(words)] if (words := decision(self.findings)) else []
        return [*missing, clean_text(headline(self.findings)), *verdicts, *decided, where]


def write_report(
    source: ReportSource,
    out: str | Path,
    *,
    formats: Sequence[str] = FORMATS,
    tables: Sequence[str] = (),
    progress: Callable[[str], None] | None = None,
) -> WrittenReport:
    """Write the report of `source` to `out`.

    Args:
        source: what to report.
        out: the folder to write to.
        formats: what to write, of `FORMATS`.
        tables: further tables, of `EXTRA_TABLES`: the audit of released code and the hyperparameters.
        progress: called with the name of each step.
    """
    tell = progress or (lambda step: None)
    check_names(formats, tables)
    folder = Path(out)
    tell("tables and numbers")
    made = build_tables(source, extra=tables)
    numbers = build_numbers(source.findings, source.cka)
    files = {"numbers.json": to_json(numbers)}
    if "tex" in formats:
        files["numbers.tex"] = to_tex(numbers)
        for table in made.tables:
            files[f"tables/{table.name}.tex"] = to_float(table)
            files[f"tables/{table.name}.tabular.tex"] = to_tabular(table)
    if "md" in formats:
        files["tables.md"] = _tables_markdown(made)
    if "csv" in formats:
        files |= {f"csv/{table.name}.csv": to_csv(table) for table in made.tables}
    card = build_card(source)
    if "card" in formats:
        document = json.dumps(card, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        files |= {"card.md": card_to_markdown(card), "card.json": document}
        files["model-card.md"] = model_card(card, name=MODEL_NAME)
    if "methods" in formats:
        methods = build_methods(source)
        files |= {"methods.txt": methods.text(), "methods.md": methods.markdown()}
        files |= {"methods.tex": methods.tex(), "methods.bib": methods.bibtex()}
    if "html" in formats:
        tell("page")
        files["index.html"] = render_page(source, made, card, formats)
    for each in {(folder / name).parent for name in files} | {folder / "figures"}:
        remove_leftovers(each, below=False)  # of a report that was killed
    for name, text in files.items():
        # A label may hold half of a surrogate pair, which no file can.
        write_text_atomically(folder / name, text.encode("utf-8", "replace").decode("utf-8"))
    written = [folder / name for name in files]
    if "figures" in formats:
        tell("figures")
        written += write_figures(build_figures(source), folder / "figures")
    return WrittenReport(folder, tuple(sorted(written)), made, numbers, source.findings)


def check_names(formats: Sequence[str], tables: Sequence[str]) -> None:
    """Refuse formats and tables that do not exist, and a report of nothing."""
    for kind, names, known in (("format", formats, FORMATS), ("table", tables, EXTRA_TABLES)):
        for name in names:
            if name not in known:
                raise unknown_name(kind, name, known)
    if not formats:
        raise UsageError(f"No format was asked for: give one or more of {', '.join(FORMATS)}.")


def _tables_markdown(tables: Tables) -> str:
    parts = [f'<a id="{table.name}"></a>\n\n{to_markdown(table)}' for table in tables.tables]
    if tables.missing:
        lines = [f"- `{entry.name}`: {escape_markdown(entry.why)}." for entry in tables.missing]
        parts.append("## Left out\n\n" + "\n".join(lines) + "\n")
    return "# Tables\n\n" + "\n".join(parts)
