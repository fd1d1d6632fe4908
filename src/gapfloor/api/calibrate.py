"""Measure which actions of games are the same, and keep the classes in a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.calibration.agreement import PlayComparison, compare_play
from gapfloor.calibration.class_files import classes_path, read_classes, shipped_classes, write_classes
from gapfloor.calibration.class_measurement import measure_classes
from gapfloor.calibration.classes import ActionClasses, CalibrationSettings
from gapfloor.calibration.matrix import draw_matrices
from gapfloor.engines.protocol import Option
from gapfloor.engines.registry import check_cloning, check_levels, make_spec
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.levels.draws import check_draw
from gapfloor.play.protocol import expand_games
from gapfloor.policies.load import PolicySource

_PICTURE_KINDS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class GameCalibration:
    """The classes of one game on random play and, if a policy was named, on the states that it visits."""

    random: ActionClasses
    comparison: PlayComparison | None
    note: str
    """Where the classes are kept, or why the store keeps its own."""

    @property
    def shipped(self) -> ActionClasses | None:
        """The classes that come with gapfloor; None for other engines, modes and options."""
        if self.random.engine.options:
            return None
        return shipped_classes(self.random.engine.game, self.random.engine.mode)

    def to_dict(self) -> dict[str, Any]:
        """The game's entry in the document that `gapfloor calibrate --json` prints."""
        document = self.random.to_json()
        document.pop("format")
        document["shipped_k"] = self.shipped.k if self.shipped is not None else None
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


def calibrate(
    games: str | Sequence[str],
    *,
    store: str | Path,
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    levels: str = "0:200",
    policy: str | None = None,
    picture: Path | None = None,
    replace: bool = False,
    workers: int | None = None,
    tell: Callable[[GameCalibration], None] = lambda game: None,
    **settings: int,
) -> tuple[GameCalibration, ...]:
    """Measure the action classes of each game and keep them in `store`.

    Args:
        games: one or more games, or the groups `paper` and `all`.
        store: the folder that keeps the classes; classes that it holds already are only replaced if `replace` is set.
        mode: the engine's mode.
        options: the engine's options.
        levels: the levels that are played.
        policy: also measure on the states that this policy visits under the sampled rule.
        picture: draw the matrices into this file (.png, .svg or .pdf).
        replace: whether to replace classes that the store holds from other settings.
        workers: number of threads; they change no result.
        tell: is called with each game as it is done.
        settings: `states`, `horizon`, `seed` and `spacing` of `CalibrationSettings`.
    """
    chosen = CalibrationSettings(levels=LevelSet.parse(levels), **settings)
    check_draw(chosen.seed)
    named = [games] if isinstance(games, str) else games
    specs = [make_spec(game, mode=mode, options=options) for game in expand_games(named)]
    for spec in specs:
        check_cloning(spec, what="Calibration")
        check_levels(spec, chosen.levels)
    if picture is not None and picture.suffix not in _PICTURE_KINDS:
        raise UsageError(f"The picture {picture} must end in one of {', '.join(_PICTURE_KINDS)}.")
    source = PolicySource(policy) if policy is not None else None
    if source is not None:
        source.load()
    measured = []
    for spec in specs:
        comparison = None
        if source is not None:
            comparison = compare_play(spec, chosen, source=source, workers=workers)
        random = comparison.random if comparison else measure_classes(spec, chosen, workers=workers)
        game = GameCalibration(random, comparison, _keep(random, store, replace=replace))
        measured.append(game)
        tell(game)
    if picture is not None:
        draw_matrices([game.random for game in measured], picture)
    return tuple(measured)


def _keep(classes: ActionClasses, store: str | Path, *, replace: bool) -> str:
    """Write the classes into the store unless it holds others, on which its cells may rest."""
    path = classes_path(store, classes.engine)
    held = None if replace else read_classes(store, classes.engine)
    if held is not None and held != classes:
        return (
            f"{path} keeps its classes (k = {held.k}, {held.settings.states} states, seed {held.settings.seed}), "
            "because cells may depend on them. Use --replace to replace them."
        )
    write_classes(store, classes)
    return f"Kept in {path}."
