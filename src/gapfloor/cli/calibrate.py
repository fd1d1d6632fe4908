"""`gapfloor calibrate`: measure which actions of a game are the same."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gapfloor.cli.options import json_option, parse_engine_options, print_json, store_option, workers_option
from gapfloor.errors import UsageError

if TYPE_CHECKING:
    from gapfloor.calibration import ActionClasses, CalibrationSettings
    from gapfloor.calibration.agreement import PlayComparison
    from gapfloor.engines.protocol import EngineSpec
    from gapfloor.policies.load import PolicySource

_PICTURE_KINDS = (".png", ".svg", ".pdf")


@click.command()
@click.argument("games", nargs=-1, required=True, metavar="GAME...")
@click.option("--mode", default=None, help="ProcGen's easy (default), hard, extreme, memory or exploration.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the engine.")
@click.option("--states", type=int, default=400, show_default=True, help="States a game.")
@click.option(
    "--horizon", type=int, default=5, show_default=True, help="Steps compared: the action, then no-ops."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of levels, play and sample.")
@click.option(
    "--levels", default="0:200", show_default=True, help="Levels that are played: START:STOP or all."
)
@click.option("--spacing", type=int, default=20, show_default=True, help="States visited for each one taken.")
@click.option(
    "--policy",
    default=None,
    help="Measure on this policy's own (sampled) states too, and show where that differs from random play.",
)
@click.option(
    "--keep",
    type=click.Choice(["random", "visited"]),
    default="random",
    show_default=True,
    help="With --policy: which of the two goes into the store.",
)
@click.option(
    "--picture", type=click.Path(path_type=Path), default=None, help="Draw the matrices into this file."
)
@click.option("--replace", is_flag=True, help="Replace classes that the store holds from other settings.")
@workers_option
@store_option
@json_option
def command(
    games: tuple[str, ...], mode: str | None, options: tuple[str, ...], policy: str | None, keep: str,
    picture: Path | None, replace: bool, workers: int | None, store: str, as_json: bool, **settings: Any,
) -> None:  # fmt: skip
    r"""Measure which actions of GAMEs (`paper`: the paper's eight, `all`: all sixteen) are the same.

    States of play are cloned into one slot an action; two actions are the same when observation, reward and
    episode boundary agree at every step. Always measured; shipped classes are only shown beside.

    \b
    Examples:
      gapfloor calibrate starpilot fruitbot
      gapfloor calibrate paper --json
      gapfloor calibrate gym:MiniGrid-FourRooms-v0 --states 100
      gapfloor calibrate starpilot --policy gapfloor-store/runs/starpilot-easy-impala-8M-s1
    """
    from gapfloor.calibration import CalibrationSettings
    from gapfloor.engines.registry import check_cloning, check_levels, make_spec
    from gapfloor.levels import LevelSet
    from gapfloor.levels.draws import check_draw
    from gapfloor.play.protocol import expand_games
    from gapfloor.policies.load import PolicySource

    levels = LevelSet.parse(settings.pop("levels"))
    chosen = CalibrationSettings(levels=levels, **settings)
    check_draw(chosen.seed)
    specs = [
        make_spec(game, mode=mode, options=parse_engine_options(options)) for game in expand_games(games)
    ]
    for spec in specs:
        check_cloning(spec, what="Calibration")
        check_levels(spec, levels)
    if picture is not None and picture.suffix not in _PICTURE_KINDS:
        raise UsageError(f"The picture {picture} must end in one of {', '.join(_PICTURE_KINDS)}.")
    if policy is None and keep == "visited":
        raise UsageError("--keep visited needs --policy: without one there is only random play.")
    source = PolicySource(policy) if policy is not None else None
    if source is not None:
        source.load()

    measured = []
    for spec in specs:
        each = _Measured.of(spec, chosen, source, workers)
        note = _file(each.kept(keep), store, replace=replace)
        measured.append(each)
        if not as_json:
            each.show()
            click.echo(f"{note}\n")
    if picture is not None:
        from gapfloor.calibration.matrix import draw_matrices

        draw_matrices([each.kept(keep) for each in measured], picture)
    if as_json:
        print_json({"games": [each.document() for each in measured]})


class _Measured:
    """One game as it was measured: on random play and, if there is a policy, on its states."""

    def __init__(self, random: ActionClasses, comparison: PlayComparison | None) -> None:
        self.random, self.comparison = random, comparison

    @classmethod
    def of(
        cls, spec: EngineSpec, settings: CalibrationSettings, source: PolicySource | None, workers: int | None
    ) -> _Measured:
        from gapfloor.calibration import compare_play, measure_classes

        if source is None:
            return cls(measure_classes(spec, settings, workers=workers), None)
        comparison = compare_play(spec, settings, source=source, workers=workers)
        return cls(comparison.random, comparison)

    def kept(self, keep: str) -> ActionClasses:
        """The classes that go into the store and the picture."""
        return self.comparison.visited if self.comparison and keep == "visited" else self.random

    def document(self) -> dict[str, Any]:
        """The game's entry of the JSON document."""
        document: dict[str, Any] = self.random.to_json()
        document.pop("format")
        document["shipped_k"] = _shipped_k(self.random)
        if self.comparison is not None:
            visited = self.comparison.visited.to_json()
            visited.pop("format")
            document["visited"] = visited
            document["differences"] = [
                {"actions": [pair.first, pair.second], "states_differing_random": pair.differ_random,
                 "states_differing_visited": pair.differ_visited}
                for pair in self.comparison.pairs
            ]  # fmt: skip
        return document

    def show(self) -> None:
        """Print classes, matrix and, if there are any, the differences."""
        _show_classes(self.random, played_by="random play")
        if self.comparison is None:
            return
        _show_classes(self.comparison.visited, played_by="the policy's own play")
        names = self.random.action_names
        if not self.comparison.pairs:
            click.echo("Both give the same classes.")
        for pair in self.comparison.pairs:
            one = "random play" if pair.differ_random == 0 else "the policy's own play"
            count = pair.differ_random or pair.differ_visited
            click.echo(
                f"{names[pair.first]} and {names[pair.second]} are one class on {one}, and differ in {count} of "
                f"{self.random.settings.states} states of the other."
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
    if classes.engine.engine == "procgen":
        click.echo(_beside(classes))


def _beside(classes: ActionClasses) -> str:
    from gapfloor.calibration import shipped_classes

    shipped = shipped_classes(classes.engine.game, classes.engine.mode)
    if shipped is None or classes.engine.options:
        return "No classes are shipped for this mode and these options."
    same = "the same" if shipped.partition == classes.partition else "not the same"
    return f"Shipped ({shipped.engine.engine} {shipped.engine.version}): {shipped.k} classes, {same}."


def _shipped_k(classes: ActionClasses) -> int | None:
    from gapfloor.calibration import shipped_classes

    shipped = shipped_classes(classes.engine.game, classes.engine.mode)
    return shipped.k if shipped is not None and not classes.engine.options else None


def _file(classes: ActionClasses, store: str, *, replace: bool) -> str:
    """Write the classes into the store unless it holds others, on which its cells may rest."""
    from gapfloor.calibration.class_files import classes_path, read_classes, write_classes

    path = classes_path(store, classes.engine)
    held = None if replace else read_classes(store, classes.engine)
    if held is not None and held != classes:
        return (
            f"{path} keeps its classes (k = {held.k}, {held.settings.states} states, seed {held.settings.seed}): "
            "cells may rest on them. Give --replace to replace them."
        )
    write_classes(store, classes)
    return f"Kept in {path}."
