"""`gapfloor report`: tables, numbers, figures, the page and the gap card from a store or an episode file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.table_options import table_options

if TYPE_CHECKING:
    from gapfloor.analysis.table_options import TableOptions


@click.command("report", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("source", type=click.Path(path_type=Path), metavar="STORE|EPISODES")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("gapfloor-report"),
    show_default=True,
    help="Folder to write to.",
)
@click.option(
    "--format",
    "formats",
    default="tex,md,csv,html,card,methods,figures",
    show_default=True,
    help="Any of tex, md, csv, html, card, methods, figures, joined by commas.",
)
@click.option(
    "--plan", type=click.Path(path_type=Path), default=None, help="Analysis plan (default: the paper's)."
)
@click.option(
    "--tables",
    default="",
    help="Further tables, joined by commas: audit and commits (the audit of released code), hyper (hyperparameters "
    "of the checkpoints).",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
@table_options()
def command(
    source: Path, out: Path, formats: str, plan: Path | None, tables: str, as_json: bool, table: TableOptions
) -> None:
    """Write tables (LaTeX, Markdown, CSV), numbers, figures, the page, the gap card and a methods paragraph.

    Reads a store, or an episode file (CSV or Parquet), and needs neither engine nor torch.
    """
    from gapfloor.errors import unknown_name
    from gapfloor.report.escape import clean_text
    from gapfloor.report.source import load_report_source
    from gapfloor.report.tables.build import EXTRA_TABLES
    from gapfloor.report.verdict import build_verdicts, headline
    from gapfloor.report.write import FORMATS, summary, write_report
    from gapfloor.text_tables import counted

    chosen, extra = ([name.strip() for name in text.split(",") if name.strip()] for text in (formats, tables))
    for kind, names, known in (("format", chosen, FORMATS), ("table", extra, EXTRA_TABLES)):
        for name in names:
            if name not in known:
                raise unknown_name(kind, name, known)
    loaded = load_report_source(source, plan=plan, options=table)
    report = write_report(
        loaded,
        out,
        formats=chosen,
        tables=extra,
        progress=None if as_json else lambda step: click.echo(f"{step} ...", err=True),
    )
    if as_json:
        click.echo(summary(report))
        return
    findings = loaded.findings
    click.echo(clean_text(headline(findings)))
    for verdict in build_verdicts(findings):
        where = f"{verdict.name} {verdict.budget}".strip()
        click.echo(f"  {clean_text(where)}: {verdict.badge}")
    for entry in report.tables.missing:
        click.echo(f"left out: {entry.name} ({clean_text(entry.why)})")
    click.echo(
        f"{counted(len(report.tables.tables), 'table')} and {counted(len(report.numbers), 'number')} in {report.folder}"
        + (f"; open {report.folder / 'index.html'}" if "html" in chosen else "")
    )
