"""`gapfloor sweep`: one checkpoint at a grid of temperatures, between greedy and sampled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gapfloor.api.progress import LiveProgress
from gapfloor.cli.options import playing_options
from gapfloor.cli.pictures import read_fewer_pictures
from gapfloor.cli.tables import print_result
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
@playing_options
@click.option(
    "--out", type=click.Path(path_type=Path), default=None,
    help="Folder for sweep.json and the figure (default: below the store).",
)  # fmt: skip
def command(
    policy: str, temperatures: str, store: str, out: Path | None, as_json: bool, **settings: Any
) -> None:
    r"""Play POLICY (in any form that `evaluate` takes) at a grid of temperatures, on the same levels.

    Every point is an ordinary cell of the store, shared with `evaluate`. The table gives return, gap and the entropy of
    the distribution that was drawn from; the figure plots them against temperature, with the floor as a band.

    \b
    Examples:
      gapfloor sweep gapfloor-store/runs/starpilot-easy-impala-8M-s1 --game starpilot
      gapfloor sweep mypackage.agents:load --game heist --temperatures 0,0.5,1 --draws 0 --episodes 64
    """
    from gapfloor.api.sweep import sweep
    from gapfloor.report.result_files import write_sweep

    read_fewer_pictures(game=settings["game"], policies=[policy])
    with LiveProgress(quiet=as_json) as progress:
        result = sweep(
            policy, temperatures=parse_temperatures(temperatures), store=store, progress=progress, **settings
        )
    folder = out or Path(store) / "results" / "sweep" / result.run.name.replace("/", "_")
    print_result(result, files=write_sweep(result, folder), as_json=as_json)


def parse_temperatures(text: str) -> list[float]:
    """Read `0,0.25,1`."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise UsageError(
            f"'{text}' is not a list of temperatures: write numbers with commas, e.g. 0,0.25,0.5,1."
        ) from None
