"""`gapfloor cka`: CKA of checkpoints' features, never without its controls."""

from __future__ import annotations

from typing import Any

import click

from gapfloor.cli.options import json_option, store_option
from gapfloor.cli.tables import print_result


@click.command()
@click.argument("checkpoints", nargs=-1, required=True, metavar="CHECKPOINT...")
@click.option(
    "--geometry", default="64x16", show_default=True, help="How observations are collected: SLOTSxSTEPS."
)
@click.option(
    "--other-geometry", default="16x64", show_default=True,
    help="A second collection, to show the effect of the geometry alone; none to leave it out.",
)  # fmt: skip
@click.option(
    "--train", default=None, help="Training levels, START:STOP or all.  [default: the checkpoint's own]"
)
@click.option(
    "--test", default="1000:1100", show_default=True, help="Held-out levels, in the same form as --train."
)
@click.option("--rule", default="sampled", show_default=True, help="Rule under which the checkpoint plays.")
@click.option("--draw", type=int, default=0, show_default=True, help="Seed of the level draw.")
@click.option(
    "--permutations", type=int, default=200, show_default=True, help="Number of shuffles for each null."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the shuffles.")
@click.option(
    "--pairs", type=click.Choice(["encoders", "all", "none"]), default="encoders", show_default=True,
    help="Checkpoints to compare on identical observations: different encoders of one seed, all of one game and "
    "budget, or none.",
)  # fmt: skip
@click.option("--device", default="cpu", show_default=True, help="Device for networks: cpu or cuda.")
@store_option
@json_option
def command(
    checkpoints: tuple[str, ...], as_json: bool, **settings: Any,
) -> None:  # fmt: skip
    r"""CKA of CHECKPOINTs (files or runs' folders) between training and held-out levels, with its controls.

    Rows of the two sides are different inputs, so the value as computed measures nothing by itself; the 2x2 control
    shows what it consists of. Records go to results/cka of the store, where `gapfloor report` finds them.

    \b
    Examples:
      gapfloor cka gapfloor-store/runs/*-8M-s*
      gapfloor cka runs/heist-easy-impala-25M-s1 --json --out heist-store
    """
    from gapfloor.api.cka import cka

    measured = cka(
        checkpoints,
        progress=lambda what: None if as_json else click.echo(f"{what} ...", err=True),
        **settings,
    )
    print_result(measured, as_json=as_json)
    if as_json:
        return
    for path in measured.files:
        held = "already in" if path.stem in measured.reused else "written to"
        click.echo(f"{held} {path}")
