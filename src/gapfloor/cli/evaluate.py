"""`gapfloor evaluate`: policies under stated rules, compared with the floor on the same draws."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gapfloor.api.progress import LiveProgress
from gapfloor.cli.options import (
    inference_options,
    json_option,
    parse_integers,
    print_json,
    protocol_options,
    reference_option,
    store_option,
    workers_option,
)
from gapfloor.cli.pictures import read_fewer_pictures
from gapfloor.cli.tables import show_table
from gapfloor.json_values import jsonable

if TYPE_CHECKING:
    from gapfloor.analysis.leaked import LeakedGap
    from gapfloor.levels.overlap import Leakage


@click.command()
@click.argument("policies", nargs=-1, required=True, metavar="POLICY...")
@click.option("--game", required=True, help="The game to evaluate on.")
@click.option(
    "--rules",
    required=True,
    help="One or more rules, separated by commas: sampled, greedy, merged, epsilon:E, temperature:T.",
)
@click.option("--agent", default=None, help="Name of the agent (default: from the checkpoint).")
@click.option(
    "--budget", default=None, help="Label of the training budget, e.g. 8M (default: from the checkpoint)."
)
@click.option(
    "--seeds", default=None, help="One seed per policy, e.g. 1,2,3 (default: from the checkpoints)."
)
@protocol_options
@inference_options
@click.option(
    "--probe", type=click.IntRange(min=0), default=0, show_default=True,
    help="Number of visited states per sampled cell to clone for merged entropy (the paper: 1024).",
)  # fmt: skip
@reference_option()
@click.option(
    "--upper", default=None, metavar="RETURN",
    help="Also print normalised scores, (R - floor)/(upper - floor): a return that counts as 1, or `published`.",
)  # fmt: skip
@click.option(
    "--without-leaks", "leaks", type=click.Path(path_type=Path), default=None, metavar="FILE",
    help="Also print the gap without leaked levels; FILE is what gapfloor levels check wrote.",
)  # fmt: skip
@workers_option
@store_option
@json_option
def command(
    policies: tuple[str, ...],
    seeds: str | None,
    leaks: Path | None,
    store: str,
    as_json: bool,
    **settings: Any,
) -> None:
    r"""Evaluate POLICYs, the runs of one agent, and compare them with the floor.

    A POLICY is a checkpoint or the folder of a run, a file of another library (sb3:model.zip, recurrent:, cleanrl:,
    statedict:, onnx:), a file on the Hugging Face Hub (hf:OWNER/NAME) or package.module:factory.

    \b
    Examples:
      gapfloor evaluate gapfloor-store/runs/starpilot-easy-impala-8M-s1 --game starpilot --rules sampled,greedy
      gapfloor evaluate runs/starpilot-easy-impala-8M-s1 --game starpilot --rules greedy --design census
      gapfloor evaluate sb3:model.zip --game gym:MiniGrid-FourRooms-v0 --rules sampled,greedy
      gapfloor evaluate mypackage.agents:load --game heist --rules sampled --agent mine --budget 25M
    """
    from gapfloor.api.evaluate import evaluate

    leakage = _read_leaks(leaks, settings["game"], settings["mode"])
    read_fewer_pictures(game=settings["game"], policies=policies, references=settings["references"])
    with LiveProgress(quiet=as_json) as progress:
        result = evaluate(
            list(policies),
            seeds=parse_integers(seeds, what="seeds") if seeds is not None else None,
            store=store,
            progress=progress,
            **settings,
        )
    leaked = _without_leaks(store, leakage, {(row.game, row.agent) for row in result.gaps})
    if as_json:
        document = result.to_dict()
        print_json({**document, "leaks": jsonable(leaked)} if leakage else document)
        return
    from gapfloor.text_tables import as_table

    tables: list[Any] = list(result.tables())
    if leaked:
        from gapfloor.api.levels_gap import leak_table  # with all of scipy.stats

        tables.append(leak_table(leaked))
    for table in tables:
        show_table(as_table(table))
    for note in result.notes:
        click.echo(note)


def _read_leaks(path: Path | None, game: str, mode: str | None) -> Leakage | None:
    """What `levels check` found, read before anything is played."""
    if path is None:
        return None
    from gapfloor.engines.registry import split_game
    from gapfloor.errors import UsageError
    from gapfloor.levels.overlap import read_leakage

    leakage, name = read_leakage(path), split_game(game)[1]
    if leakage.of(name, mode or "easy") is None:
        known = ", ".join(sorted(f"{one.game} {one.mode}" for one in leakage.games)) or "nothing"
        raise UsageError(
            f"{path} holds {known}, not {name} {mode or 'easy'}: run gapfloor levels check {name} first."
        )
    return leakage


def _without_leaks(
    store: str, leakage: Leakage | None, agents: set[tuple[str, str | None]]
) -> list[LeakedGap]:
    if leakage is None:
        return []
    from gapfloor.analysis.leaked import gap_without

    return [row for row in gap_without(store, leakage) if (row.game, row.agent) in agents]
