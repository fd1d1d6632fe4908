"""Measure which actions of games are the same, and keep the classes in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.api.progress import step_teller
from gapfloor.calibration.class_measurement import measure_classes
from gapfloor.calibration.classes import (
    ActionClasses,
    CalibrationSettings,
    classes_path,
    read_classes,
    shipped_classes,
    write_classes,
)
from gapfloor.engines.engine import Option
from gapfloor.engines.registry import check_cloning, check_ends, make_spec
from gapfloor.levels import LevelSet
from gapfloor.levels.draws import check_draw
from gapfloor.machine import check_workers
from gapfloor.play.protocol import expand_games
from gapfloor.policies.load import PolicySource
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.registry import table_of
from gapfloor.tables.table import Table


@dataclass(frozen=True)
class GameCalibration:
    """The classes of one game on random play and, if a policy was named, on the states that it visits."""

    random: ActionClasses
    visited: ActionClasses | None
    """The classes on the states that the policy visits."""

    @property
    def shipped(self) -> ActionClasses | None:
        """The classes that come with gapfloor; None for other engines, modes and options."""
        engine = self.random.engine
        return None if engine.options else shipped_classes(engine.game, engine.mode)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table: random play, then the policy's own play."""
        shipped = self.shipped
        return [
            {
                "game": found.engine.game, "mode": found.engine.mode, "play": played, "k": found.k,
                "state_k": found.mean_state_k, "states": found.settings.states,
                "shipped": "" if shipped is None else "same" if shipped.partition == found.partition else "other",
                "classes": " | ".join(found.class_texts),
            }
            for played, found in (("random", self.random), ("policy", self.visited))
            if found is not None
        ]  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """The game's entry in the document that `gapfloor calibrate --json` prints."""
        random, visited = (
            each and {name: value for name, value in each.to_json().items() if name != "format"}
            for each in (self.random, self.visited)
        )
        shipped_k = self.shipped.k if self.shipped is not None else None
        return {**(random or {}), "shipped_k": shipped_k, **({"visited": visited} if visited else {})}


@dataclass(frozen=True, repr=False)
class Calibrations(ReadableResult):
    """The action classes of several games, in the order named."""

    row_names = ("games",)

    games: tuple[GameCalibration, ...]
    """One entry per game."""
    notes: tuple[str, ...] = ()
    """Where the classes are kept, or why the store keeps its own."""

    def __iter__(self) -> Iterator[GameCalibration]:
        return iter(self.games)

    def __len__(self) -> int:
        return len(self.games)

    def __getitem__(self, place: int) -> GameCalibration:
        return self.games[place]

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor calibrate --json` prints."""
        return {"games": [game.to_dict() for game in self.games]}

    def table(self) -> Table:
        """One line per game, and one for the policy's own play."""
        return table_of("calibration", [row for game in self.games for row in game.rows()])

    def sentences(self) -> list[str]:
        """The classes by the names of their actions, and how they were measured."""
        settings, engines = self.games[0].random.settings, {game.random.engine for game in self.games}
        versions = dict.fromkeys(f"{engine.engine} {engine.version}" for engine in engines)
        return [
            *(
                f"{row['game']} ({row['play']}): {row['classes']}"
                for game in self.games
                for row in game.rows()
            ),
            f"Levels {settings.levels}, seed {settings.seed}, horizon {settings.horizon}; {', '.join(versions)}.",
        ]


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
        policy: Also measure on the states that this policy visits under the sampled rule.
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
    measured, notes = [], []
    for spec in specs:
        random = measure_classes(spec, chosen, workers=workers)
        visited = measure_classes(spec, chosen, source=source, workers=workers) if source else None
        measured.append(GameCalibration(random, visited))
        notes += [_keep(random, store, replace=replace)] if store is not None else []
        tell(f"{spec.game}: {random.k} classes")
    return Calibrations(tuple(measured), tuple(notes))


def _keep(classes: ActionClasses, store: str | Path, *, replace: bool) -> str:
    """Write the classes into the store unless it holds others, on which its cells may rest."""
    path = classes_path(store, classes.engine)
    held = None if replace else read_classes(store, classes.engine)
    if held is not None and held != classes:
        return (
            f"{path} keeps its classes (k = {held.k}, {held.settings.states} states, seed {held.settings.seed}), "
            "because cells may depend on them. Ask to replace them if you do not need those cells."
        )
    write_classes(store, classes)
    return f"Kept in {path}."
