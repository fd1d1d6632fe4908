"""`gapfloor training-curve`: gap and distance from the floor over a run's checkpoints, and the in-loop mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from gapfloor.cli.options import (
    cells_option,
    inference_options,
    json_option,
    parse_engine_options,
    parse_integers,
    print_json,
    protocol_options,
    workers_option,
)
from gapfloor.cli.progress import LiveProgress
from gapfloor.cli.tables import print_table


@click.command("training-curve")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--game", default=None, help="Refuse runs of another game (default: accept each run's own).")
@click.option(
    "--rules", default="sampled,greedy", show_default=True,
    help="One or more rules, separated by commas: sampled, greedy, merged, epsilon:E, temperature:T.",
)  # fmt: skip
@protocol_options
@inference_options
@workers_option
@cells_option
@click.option(
    "--out", default=None, help="Folder for training-curve.json and the figure (default: below the store)."
)
@json_option
def command(
    runs: tuple[str, ...],
    options: tuple[str, ...],
    draws: str,
    store: str,
    out: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Measure every kept checkpoint of RUNs (folders with history/) and the floor on both level sets.

    A gap depends on the checkpoint that is reported. For each one the table gives the gap and the held-out return above
    the floor, and the training log's running mean next to the fixed checkpoint's return on the same training levels.

    \b
    Examples:
      gapfloor train starpilot --encoder impala --seed 1 --steps 100000 --checkpoint-every 4
      gapfloor training-curve gapfloor-store/runs/starpilot-easy-impala-100k-s1 --draws 0 --episodes 64
    """
    from gapfloor.api.training_curve import training_curve
    from gapfloor.records.atomic import write_text_atomically
    from gapfloor.report.figures.training_curves import write_training_curves

    with LiveProgress(quiet=as_json) as progress:
        result = training_curve(
            list(runs),
            options=parse_engine_options(options),
            draws=parse_integers(draws, what="draws"),
            store=store,
            progress=progress,
            **settings,
        )
    folder = Path(out) if out else Path(store) / "results" / "training-curve"
    document = result.to_dict()
    files = write_training_curves(result, folder)
    write_text_atomically(
        folder / "training-curve.json", json.dumps(document, indent=1, allow_nan=False) + "\n"
    )
    if as_json:
        print_json(document)
        return
    print_table(*result.table())
    for line in (*result.sentences(), *result.notes):
        click.echo(line)
    click.echo(f"written to {folder}: {', '.join(path.name for path in files)}, training-curve.json")
