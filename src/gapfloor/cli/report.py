"""`gapfloor report`: tables, numbers, figures, the page and the gap card from a store or an episode file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import print_json
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
    help="Any of tex, md, csv, html, card, methods, figures, separated by commas.",
)
@click.option(
    "--plan",
    type=click.Path(path_type=Path),
    default=None,
    help="Analysis plan (default: a dataset's own, or the paper's).",
)
@click.option(
    "--tables",
    default="",
    help="Further tables, separated by commas: audit and commits (the audit of released code), hyper (hyperparameters "
    "of the checkpoints).",
)
@click.option(
    "--curves",
    multiple=True,
    metavar="GAME[,AGENT]=FOLDER",
    help="Learning curves of an experiment tracker (TensorBoard event files or CSV exports, one per seed), drawn with "
    "the floor; may be repeated.",
)
@click.option(
    "--curve-tag", default=None, help="Scalar or column of --curves (default: the usual names of the return)."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@table_options()
def command(
    source: Path,
    out: Path,
    formats: str,
    plan: Path | None,
    tables: str,
    curves: tuple[str, ...],
    curve_tag: str | None,
    as_json: bool,
    table: TableOptions,
) -> None:
    r"""Write tables (LaTeX, Markdown, CSV), numbers, figures, the page, the gap card and a methods paragraph.

    Reads a store, or a file of episodes in any form that `gapfloor analyse` reads. Needs neither engine nor torch.

    \b
    Examples:
      gapfloor report gapfloor-store --out my-report
      gapfloor report gapfloor-store --plan plan.toml
      gapfloor report episodes.csv --format html,card
    """
    from gapfloor.api.report import write_report

    def tell(step: str) -> None:
        if not as_json:
            click.echo(f"{step} ...", err=True)

    report = write_report(
        source, out, formats=formats, plan=plan, tables=tables, curves=curves, curve_tag=curve_tag, progress=tell,
        **vars(table),
    )  # fmt: skip
    if as_json:
        print_json(report.to_dict())
        return
    for line in report.sentences():
        click.echo(line)
