"""`gapfloor compare`: two agents on the same schedule, paired by level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gapfloor.api.progress import LiveProgress
from gapfloor.cli.options import playing_options
from gapfloor.cli.tables import print_result
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
@playing_options
@click.option(
    "--out", type=click.Path(path_type=Path), default=None,
    help="Folder for comparison.json (default: nothing is written).",
)  # fmt: skip
def command(
    a: str,
    b: str | None,
    agents: str | None,
    budgets: str | None,
    games: str | None,
    rules: str | None,
    out: Path | None,
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
    from gapfloor.report.result_files import write_comparison

    with LiveProgress(quiet=as_json) as progress:
        result = compare(
            a,
            b,
            agents=_two(agents),
            budgets=_words(budgets),
            games=_words(games),
            rules=_words(rules),
            progress=progress,
            **settings,
        )
    print_result(result, files=write_comparison(result, out) if out else (), as_json=as_json)


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) if text else ()


def _two(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    names = _words(text)
    if len(names) != 2 or not all(names):
        raise UsageError(f"'{text}' does not name two agents: write them with a comma, e.g. impala,fpn.")
    return names[0], names[1]
