"""`gapfloor calibrate`: measure which actions of a game are the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gapfloor.cli.options import json_option, parse_engine_options, print_json, store_option

if TYPE_CHECKING:
    from gapfloor.api.calibrate import GameCalibration
    from gapfloor.calibration import ActionClasses
    from gapfloor.engines.engine import Option


@click.command()
@click.argument("games", nargs=-1, required=True, metavar="GAME...")
@click.option("--mode", default=None, help="ProcGen's easy (default), hard, extreme, memory or exploration.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE",
              help="An option of the engine, e.g. use_backgrounds=false; may be repeated.")  # fmt: skip
@click.option("--states", type=int, default=400, show_default=True, help="Number of states per game.")
@click.option(
    "--horizon", type=int, default=5, show_default=True, help="Steps compared: the action, then no-ops."
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="Seed of the levels, the play and the sample of states.",
)
@click.option(
    "--levels", default="0:200", show_default=True, help="Levels that are played: START:STOP or all."
)
@click.option(
    "--spacing",
    type=int,
    default=20,
    show_default=True,
    help="Take one of this many visited states, on average.",
)
@click.option(
    "--policy",
    default=None,
    help="Also measure on the states that this policy visits (sampled), and show where that differs.",
)
@click.option(
    "--picture", type=click.Path(path_type=Path), default=None, help="Draw the matrices into this file."
)
@click.option("--replace", is_flag=True, help="Replace classes that the store holds from other settings.")
@click.option(
    "--workers", type=click.IntRange(min=1), default=None, help="Number of threads (default: one per core)."
)
@store_option
@json_option
def command(games: tuple[str, ...], options: tuple[str, ...], as_json: bool, **settings: Any) -> None:
    r"""Measure which actions of GAMEs (`paper`: the paper's eight, `all`: all sixteen) are the same.

    Each visited state is cloned into one slot per action; two actions are the same when observation, reward and episode
    boundary agree at every step. The classes are always measured; the shipped ones are shown for comparison. Where
    actions are a Box, the dimensions that have no effect are found in the same way.

    \b
    Examples:
      gapfloor calibrate starpilot fruitbot
      gapfloor calibrate paper --json
      gapfloor calibrate gym:MiniGrid-FourRooms-v0 --states 100
      gapfloor calibrate gym:Hopper-v5 --states 50
      gapfloor calibrate starpilot --policy gapfloor-store/runs/starpilot-easy-impala-8M-s1
    """
    from gapfloor.api.calibrate import calibrate

    chosen = parse_engine_options(options)
    if _are_boxes(games, settings["mode"], chosen):
        _calibrate_boxes(games, chosen, settings, as_json=as_json)
        return

    def show(game: GameCalibration) -> None:
        if not as_json:
            _show(game)
            click.echo(f"{game.note}\n")

    measured = calibrate(games, options=chosen, progress=show, **settings)
    if as_json:
        print_json(measured.to_dict())


def _are_boxes(games: tuple[str, ...], mode: str | None, options: Mapping[str, Option] | None) -> bool:
    from gapfloor.actions.spaces import Box
    from gapfloor.engines.catalogue import GYMNASIUM
    from gapfloor.engines.registry import make_spec, split_game
    from gapfloor.play.policy_trial import action_space_of

    return all(
        split_game(game)[0] == GYMNASIUM.name
        and isinstance(action_space_of(make_spec(game, mode=mode, options=options)), Box)
        for game in games
    )


def _calibrate_boxes(
    games: tuple[str, ...],
    options: Mapping[str, Option] | None,
    settings: Mapping[str, Any],
    *,
    as_json: bool,
) -> None:
    from gapfloor.api.calibrate import calibrate_box
    from gapfloor.cli.tables import print_result
    from gapfloor.errors import UsageError

    for name in ("policy", "picture", "replace"):
        if settings[name]:
            raise UsageError(f"Real-valued actions have dimensions, not classes: leave out --{name}.")
    kept = {name: settings[name] for name in ("states", "horizon", "seed", "levels", "spacing")}
    print_result(calibrate_box(games, options=options, **kept), as_json=as_json)


def _show(game: GameCalibration) -> None:
    """Print classes, matrix and, if there are any, the differences."""
    _show_classes(game.random, played_by="random play")
    if game.random.engine.engine == "procgen":
        click.echo(_shipped(game))
    if game.comparison is None:
        return
    _show_classes(game.comparison.visited, played_by="the policy's own play")
    names = game.random.action_names
    if not game.comparison.pairs:
        click.echo("Both give the same classes.")
    for pair in game.comparison.pairs:
        one = "random play" if pair.differ_random == 0 else "the policy's own play"
        count = pair.differ_random or pair.differ_visited
        click.echo(
            f"{names[pair.first]} and {names[pair.second]} are one class on {one}, and differ in {count} of "
            f"{game.random.settings.states} states of the other."
        )


def _show_classes(classes: ActionClasses, *, played_by: str) -> None:
    from gapfloor.calibration.matrix import LEGEND, matrix_text

    settings = classes.settings
    click.echo(
        f"{classes.engine.game} ({classes.engine.mode}): {classes.k} classes of {classes.partition.n_actions} actions; "
        f"in one state {classes.mean_state_k:.2f} on average.\n"
        f"{settings.states} states of {played_by}, levels {settings.levels}, seed {settings.seed}, horizon "
        f"{settings.horizon}, {classes.engine.engine} {classes.engine.version}."
    )
    for name, members in zip(classes.class_names, classes.partition.classes, strict=True):
        others = [classes.action_names[action] for action in members if classes.action_names[action] != name]
        click.echo(f"  {name}" + (f" = {' = '.join(others)}" if others else ""))
    click.echo(matrix_text(classes))
    click.echo(LEGEND)


def _shipped(game: GameCalibration) -> str:
    shipped = game.shipped
    if shipped is None:
        return "No classes are shipped for this mode and these options."
    same = "the same" if shipped.partition == game.random.partition else "not the same"
    return f"Shipped ({shipped.engine.engine} {shipped.engine.version}): {shipped.k} classes, {same}."
