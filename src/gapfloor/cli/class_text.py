"""The action classes of a game as text: classes, the matrix of differences, and what a policy's own play changes."""

from __future__ import annotations

from gapfloor.api.calibrate import GameCalibration
from gapfloor.calibration import ActionClasses
from gapfloor.calibration.matrix import LEGEND, matrix_text


def calibration_text(game: GameCalibration) -> str:
    """Classes, matrix and, if there are any, the differences."""
    lines = [_classes(game.random, played_by="random play")]
    if game.random.engine.engine == "procgen":
        lines.append(_shipped(game))
    if game.comparison is not None:
        lines.append(_classes(game.comparison.visited, played_by="the policy's own play"))
        if not game.comparison.pairs:
            lines.append("Both give the same classes.")
        names = game.random.action_names
        for pair in game.comparison.pairs:
            one = "random play" if pair.differ_random == 0 else "the policy's own play"
            count = pair.differ_random or pair.differ_visited
            lines.append(
                f"{names[pair.first]} and {names[pair.second]} are one class on {one}, and differ in {count} of "
                f"{game.random.settings.states} states of the other."
            )
    return "\n".join([*lines, game.note, ""])


def _classes(classes: ActionClasses, *, played_by: str) -> str:
    settings = classes.settings
    lines = [
        f"{classes.engine.game} ({classes.engine.mode}): {classes.k} classes of {classes.partition.n_actions} actions; "
        f"in one state {classes.mean_state_k:.2f} on average.",
        f"{settings.states} states of {played_by}, levels {settings.levels}, seed {settings.seed}, horizon "
        f"{settings.horizon}, {classes.engine.engine} {classes.engine.version}.",
    ]
    for name, members in zip(classes.class_names, classes.partition.classes, strict=True):
        others = [classes.action_names[action] for action in members if classes.action_names[action] != name]
        lines.append(f"  {name}" + (f" = {' = '.join(others)}" if others else ""))
    return "\n".join([*lines, matrix_text(classes), LEGEND])


def _shipped(game: GameCalibration) -> str:
    shipped = game.shipped
    if shipped is None:
        return "No classes are shipped for this mode and these options."
    same = "the same" if shipped.partition == game.random.partition else "not the same"
    return f"Shipped ({shipped.engine.engine} {shipped.engine.version}): {shipped.k} classes, {same}."
