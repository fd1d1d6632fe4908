"""`gapfloor training-curve`: gap and distance from the floor over a run's checkpoints, and the in-loop mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gapfloor.api.progress import LiveProgress
from gapfloor.cli.options import playing_options
from gapfloor.cli.tables import print_result


@click.command("training-curve")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--game", default=None, help="Refuse runs of another game (default: accept each run's own).")
@click.option(
    "--rules", default="sampled,greedy", show_default=True,
    help="One or more rules, separated by commas: sampled, greedy, merged, epsilon:E, temperature:T.",
)  # fmt: skip
@playing_options
@click.option(
    "--out", type=click.Path(path_type=Path), default=None,
    help="Folder for training-curve.json and the figure (default: below the store).",
)  # fmt: skip
def command(runs: tuple[str, ...], store: str, out: Path | None, as_json: bool, **settings: Any) -> None:
    r"""Measure every kept checkpoint of RUNs (folders with history/) and the floor on both level sets.

    A gap depends on the checkpoint that is reported. For each one the table gives the gap and the held-out return above
    the floor, and the training log's running mean next to the fixed checkpoint's return on the same training levels.

    \b
    Examples:
      gapfloor train starpilot --encoder impala --seed 1 --steps 100000 --checkpoint-every 4
      gapfloor training-curve gapfloor-store/runs/starpilot-easy-impala-100k-s1 --draws 0 --episodes 64
    """
    from gapfloor.api.training_curve import training_curve
    from gapfloor.report.result_files import write_training_curves

    with LiveProgress(quiet=as_json) as progress:
        result = training_curve(list(runs), store=store, progress=progress, **settings)
    folder = out or Path(store) / "results" / "training-curve"
    print_result(result, files=write_training_curves(result, folder), as_json=as_json)
