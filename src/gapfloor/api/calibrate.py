"""Measure which actions of games are the same, and keep the classes in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.api.progress import step_teller
from gapfloor.calibration.class_files import classes_path, read_classes, shipped_classes, write_classes
from gapfloor.calibration.class_measurement import measure_classes
from gapfloor.calibration.classes import ActionClasses, CalibrationSettings
from gapfloor.calibration.matrix import LEGEND, matrix_text
from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.engine import Option
from gapfloor.engines.registry import check_cloning, check_ends, make_spec
from gapfloor.levels import LevelSet
from gapfloor.levels.draws import check_draw
from gapfloor.machine import check_workers
from gapfloor.play.protocol import expand_games
from gapfloor.policies.load import PolicySource
from gapfloor.tables.readable import ReportResult


@dataclass(frozen=True)
class GameCalibration:
    """The classes of one game on random play and, if a policy was named, on the states that it visits."""

    random: ActionClasses
    visited: ActionClasses | None
    """The classes on the states that the policy visits."""
    note: str
    """Where the classes are kept, or why the store keeps its own."""

    @property
    def shipped(self) -> ActionClasses | None:
        """The classes that come with gapfloor; None for other engines, modes and options."""
        if self.random.engine.options:
            return None
        return shipped_classes(self.random.engine.game, self.random.engine.mode)

    def __str__(self) -> str:
        """Classes, the matrix of differences and, if a policy was named, what its own play changes."""
        lines = [_classes_text(self.random, played_by="random play")]
        if self.random.engine.engine == PROCGEN.name:
            lines.append(self._shipped_text())
        if self.visited is not None:
            lines.append(_classes_text(self.visited, played_by="the policy's own play"))
            names, pairs = self.random.action_names, self.random.differences(self.visited)
            if not pairs:
                lines.append("Both give the same classes.")
            for first, second, on_random, on_visited in pairs:
                one = "random play" if on_random == 0 else "the policy's own play"
                lines.append(
                    f"{names[first]} and {names[second]} are one class on {one}, and differ in "
                    f"{on_random or on_visited} of {self.random.settings.states} states of the other."
                )
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def _shipped_text(self) -> str:
        if self.shipped is None:
            return "No classes are shipped for this mode and these options."
        engine = self.shipped.engine
        same = "the same" if self.shipped.partition == self.random.partition else "not the same"
        return f"Shipped ({engine.engine} {engine.version}): {self.shipped.k} classes, {same}."

    def to_dict(self) -> dict[str, Any]:
        """The game's entry in the document that `gapfloor calibrate --json` prints."""
        document = self.random.to_json()
        document.pop("format")
        document["shipped_k"] = self.shipped.k if self.shipped is not None else None
        if self.visited is not None:
            visited = self.visited.to_json()
            visited.pop("format")
            document["visited"] = visited
            document["differences"] = [
                {"actions": pair, "states_differing_random": here, "states_differing_visited": there}
                for *pair, here, there in self.random.differences(self.visited)
            ]
        return document


@dataclass(frozen=True, repr=False)
class Calibrations(ReportResult):
    """The action classes of several games, in the order named."""

    row_names = ("games",)

    games: tuple[GameCalibration, ...]
    """One entry per game."""

    def __iter__(self) -> Iterator[GameCalibration]:
        return iter(self.games)

    def __len__(self) -> int:
        return len(self.games)

    def __getitem__(self, place: int) -> GameCalibration:
        return self.games[place]

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor calibrate --json` prints."""
        return {"games": [game.to_dict() for game in self.games]}

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.games))


def calibrate(
    games: str | Sequence[str],
    *,
    store: str | Path | None = None,
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    states: int = CalibrationSettings.states,
    horizon: int = CalibrationSettings.horizon,
    seed: int = CalibrationSettings.seed,
    levels: str | range = "0:200",
    spacing: int = CalibrationSettings.spacing,
    policy: str | None = None,
    replace: bool = False,
    workers: int | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> Calibrations:
    """Measure which actions of games have the same effect.

    Each visited state is cloned into one slot per action; two actions are the same when observation, reward and
    episode boundary agree at every step, in every state. The classes are always measured; the shipped ones are shown
    for comparison. Only numbered actions can be compared.

    Args:
        games: One or more games, or a group: paper (the paper's eight) or all (all sixteen).
        store: Folder for the classes, where the rule merged finds them. Existing classes are replaced only with
            `replace`.
        mode: The engine's mode: ProcGen's easy (default), hard, extreme or memory.
        options: Options of the engine, e.g. use_backgrounds=false.
        states: Number of states per game.
        horizon: Steps compared: the action, then no-ops.
        seed: Seed of the levels, the play and the sample of states.
        levels: Levels that are played: START:STOP, a `range`, or all.
        spacing: Take one of this many visited states, on average.
        policy: Also measure on the states that this policy visits under the sampled rule, and show where the classes
            differ.
        replace: Replace classes that the store holds from other settings.
        workers: Number of threads, which changes no result (default: one per core).
        progress: Called with words about each game as it is done. None: a line per game on a terminal or in a
            notebook; False: nothing.

    Returns:
        One entry per game.

    Command line:
        gapfloor calibrate starpilot fruitbot
        gapfloor calibrate paper --json
        gapfloor calibrate gym:MiniGrid-FourRooms-v0 --states 100
        gapfloor calibrate starpilot --policy gapfloor-store/runs/starpilot-easy-impala-8M-s1

    Examples:
        >>> import gapfloor
        >>> (game,) = gapfloor.calibrate("fruitbot", states=16, progress=False)
        >>> game.random.partition.n_actions, game.random.k
        (15, 4)
    """
    check_workers(workers)
    chosen = CalibrationSettings(
        levels=LevelSet.parse(levels), states=states, horizon=horizon, seed=seed, spacing=spacing
    )
    tell = step_teller(progress)
    check_draw(chosen.seed)
    named = [games] if isinstance(games, str) else games
    specs = [make_spec(game, mode=mode, options=options) for game in expand_games(named)]
    for spec in specs:
        check_cloning(spec, what="Calibration")
        check_ends(spec)
    source = PolicySource.named(policy) if policy is not None else None
    if source is not None:
        source.load()
    measured = []
    for spec in specs:
        random = measure_classes(spec, chosen, workers=workers)
        visited = measure_classes(spec, chosen, source=source, workers=workers) if source else None
        measured.append(GameCalibration(random, visited, _keep(random, store, replace=replace)))
        tell(f"{spec.game}: {random.k} classes")
    return Calibrations(tuple(measured))


def _classes_text(classes: ActionClasses, *, played_by: str) -> str:
    settings, engine = classes.settings, classes.engine
    lines = [
        f"{engine.game} ({engine.mode}): {classes.k} classes of {classes.partition.n_actions} actions; in one state "
        f"{classes.mean_state_k:.2f} on average.",
        f"{settings.states} states of {played_by}, levels {settings.levels}, seed {settings.seed}, horizon "
        f"{settings.horizon}, {engine.engine} {engine.version}.",
    ]
    for name, members in zip(classes.class_names, classes.partition.classes, strict=True):
        others = [classes.action_names[action] for action in members if classes.action_names[action] != name]
        lines.append(f"  {name}" + (f" = {' = '.join(others)}" if others else ""))
    return "\n".join([*lines, matrix_text(classes), LEGEND])


def _keep(classes: ActionClasses, store: str | Path | None, *, replace: bool) -> str:
    """Write the classes into the store unless it holds others, on which its cells may rest."""
    if store is None:
        return ""
    path = classes_path(store, classes.engine)
    held = None if replace else read_classes(store, classes.engine)
    if held is not None and held != classes:
        return (
            f"{path} keeps its classes (k = {held.k}, {held.settings.states} states, seed {held.settings.seed}), "
            "because cells may depend on them. Ask to replace them if you do not need those cells."
        )
    write_classes(store, classes)
    return f"Kept in {path}."
