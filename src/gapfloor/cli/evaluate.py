"""`gapfloor evaluate`: policies under stated rules, beside the floor on the same draws."""

from __future__ import annotations

from typing import Any

import click

from gapfloor.cli.options import (
    json_option,
    parse_engine_options,
    parse_integers,
    print_json,
    protocol_options,
    reference_option,
    store_option,
    workers_option,
)
from gapfloor.cli.progress import LiveProgress
from gapfloor.cli.tables import print_table


@click.command()
@click.argument("policies", nargs=-1, required=True, metavar="POLICY...")
@click.option("--game", required=True, help="The game to evaluate on.")
@click.option(
    "--rules", required=True, help="sampled, greedy, merged, epsilon:E, temperature:T; several with commas."
)
@click.option("--agent", default=None, help="Name of the agent; default: the checkpoint's encoder.")
@click.option(
    "--budget", default=None, help="Label of the training budget, as 8M; default: the checkpoint's."
)
@click.option("--seeds", default=None, help="Seeds of the policies, as 1,2,3; default: the checkpoints' own.")
@protocol_options
@click.option("--device", default="cpu", show_default=True, help="Where the network runs: cpu or cuda.")
@click.option(
    "--batch", type=int, default=32, show_default=True, help="Rows of one inference; part of the cell."
)
@click.option(
    "--probe", type=click.IntRange(min=0), default=0, show_default=True,
    help="Visited states a sampled cell that are cloned to measure merged entropy (the paper: 1024).",
)  # fmt: skip
@reference_option()
@workers_option
@store_option
@json_option
def command(
    policies: tuple[str, ...],
    options: tuple[str, ...],
    draws: str,
    seeds: str | None,
    store: str,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Evaluate POLICYs (checkpoints or package.module:factory), the runs of one agent, beside the floor.

    \b
    Examples:
      gapfloor evaluate gapfloor-store/runs/starpilot-easy-impala-8M-s1 --game starpilot --rules sampled,greedy
      gapfloor evaluate runs/starpilot-easy-impala-8M-s1 --game starpilot --rules greedy --design census
      gapfloor evaluate mypackage.agents:load --game heist --rules sampled --agent mine --budget 25M
    """
    from gapfloor.evaluation.evaluate import evaluate

    with LiveProgress(quiet=as_json) as progress:
        result = evaluate(
            list(policies),
            options=parse_engine_options(options),
            draws=parse_integers(draws, what="draws"),
            seeds=parse_integers(seeds, what="seeds") if seeds is not None else None,
            store=store,
            progress=progress,
            **settings,
        )
    if as_json:
        print_json(result.to_dict())
        return
    print_table(*result.table())
    if result.references:
        print_table(*result.reference_table())
    for note in result.notes:
        click.echo(note)
