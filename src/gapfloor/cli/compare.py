"""`gapfloor compare`: two agents on the same schedule, paired by level."""

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
@click.argument("a", metavar="A")
@click.argument("b", metavar="[B]", required=False)
@click.option(
    "--agents",
    default=None,
    help="Names of the two agents, e.g. impala,fpn: which to select, or what to call them.",
)
@click.option("--budgets", default=None, help="One budget for both agents, or one per agent, e.g. 8M,25M.")
@click.option(
    "--game", "games", default=None, help="Games, separated by commas (default: all that both have)."
)
@click.option(
    "--rules",
    default=None,
    help="Rules, separated by commas (default: all that were recorded, or sampled,greedy).",
)
@click.option(
    "--detect", type=click.FloatRange(min=0, min_open=True), default=None,
    help="A difference in return that would matter; the table then says how many runs or levels would find it.",
)  # fmt: skip
@protocol_options
@inference_options
@workers_option
@cells_option
@click.option("--out", default=None, help="Folder for comparison.json (default: nothing is written).")
@json_option
def command(
    a: str,
    b: str | None,
    agents: str | None,
    budgets: str | None,
    games: str | None,
    rules: str | None,
    detect: float | None,
    options: tuple[str, ...],
    draws: str,
    store: str,
    out: str | None,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Compare two agents: A and B, or the two that --agents names in the one source A.

    A source is a store, a .csv or .parquet file of episodes, the folders or checkpoints of runs (also as a quoted
    pattern), or package.module:factory. Recorded episodes are used as they are; policies are played now on one
    schedule.

    \b
    Examples:
      gapfloor compare gapfloor-store --agents impala,fpn
      gapfloor compare 'runs/*impala*' 'runs/*fpn*' --draws 0,1,2
      gapfloor compare runs/heist-easy-impala-25M-s1 mypackage.agents:load --game heist --agents impala,mine
    """
    from gapfloor.api.compare import compare
    from gapfloor.records.atomic import write_text_atomically

    with LiveProgress(quiet=as_json) as progress:
        result = compare(
            a,
            b,
            agents=_two(agents),
            budgets=_words(budgets),
            games=_words(games),
            rules=_words(rules),
            detect=detect,
            options=parse_engine_options(options),
            draws=parse_integers(draws, what="draws"),
            store=store,
            progress=progress,
            **settings,
        )
    document = result.to_dict()
    if out:
        text = json.dumps(document, indent=1, allow_nan=False) + "\n"
        write_text_atomically(Path(out) / "comparison.json", text)
    if as_json:
        print_json(document)
        return
    print_table(*result.table())
    click.echo()
    print_table(*result.settling_table())
    for line in (*result.sentences(), *result.notes):
        click.echo(line)


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


def _two(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = _words(text)
    if len(names) != 2 or not all(names):
        raise UsageError(f"'{text}' does not name two agents: write them with a comma, e.g. impala,fpn.")
    return names[0], names[1]
