"""`gapfloor sweep`: one checkpoint at a grid of temperatures, between greedy and sampled."""

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
from gapfloor.errors import UsageError


@click.command()
@click.argument("policy", metavar="POLICY")
@click.option("--game", required=True, help="The game to play.")
@click.option(
    "--temperatures", default="0,0.1,0.25,0.5,0.75,1", show_default=True,
    help="The grid, separated by commas: 0 is the rule greedy, 1 the rule sampled.",
)  # fmt: skip
@click.option("--agent", default=None, help="Name of the agent (default: from the checkpoint).")
@click.option("--budget", default=None, help="Label of the training budget (default: from the checkpoint).")
@click.option("--seed", type=int, default=None, help="Seed of the policy (default: from the checkpoint).")
@protocol_options
@inference_options
@workers_option
@cells_option
@click.option("--out", default=None, help="Folder for sweep.json and the figure (default: below the store).")
@json_option
def command(
    policy: str,
    temperatures: str,
    options: tuple[str, ...],
    draws: str,
    store: str,
    out: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Play POLICY (a checkpoint or package.module:factory) at a grid of temperatures, on the same levels.

    Every point is an ordinary cell of the store, shared with `evaluate`. The table gives return, gap and the entropy of
    the distribution that was drawn from; the figure plots them against temperature, with the floor as a band.

    \b
    Examples:
      gapfloor sweep gapfloor-store/runs/starpilot-easy-impala-8M-s1 --game starpilot
      gapfloor sweep mypackage.agents:load --game heist --temperatures 0,0.5,1 --draws 0 --episodes 64
    """
    from gapfloor.api.sweep import sweep
    from gapfloor.records.atomic import write_text_atomically
    from gapfloor.report.figures.sweep import write_sweep

    with LiveProgress(quiet=as_json) as progress:
        result = sweep(
            policy,
            temperatures=parse_temperatures(temperatures),
            options=parse_engine_options(options),
            draws=parse_integers(draws, what="draws"),
            store=store,
            progress=progress,
            **settings,
        )
    folder = Path(out) if out else Path(store) / "results" / "sweep" / result.run.name.replace("/", "_")
    document = result.to_dict()
    files = write_sweep(result, folder)
    write_text_atomically(folder / "sweep.json", json.dumps(document, indent=1, allow_nan=False) + "\n")
    if as_json:
        print_json(document)
        return
    print_table(*result.table())
    for line in (*result.sentences(), *result.notes):
        click.echo(line)
    click.echo(f"written to {folder}: {', '.join(path.name for path in files)}, sweep.json")


def parse_temperatures(text: str) -> list[float]:
    """Read `0,0.25,1`."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"'{text}' is not a list of temperatures: write numbers with commas, e.g. 0,0.25,0.5,1."
        ) from None
