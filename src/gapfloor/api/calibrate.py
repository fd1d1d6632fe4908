"""Measure which actions of games are the same, and keep the classes in a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.api.progress import step_teller
from gapfloor.calibration.class_measurement import measure_classes
from gapfloor.calibration.classes import (
    RANDOM_PLAY,
    ActionClasses,
    CalibrationSettings,
    classes_path,
    read_classes,
    shipped_classes,
    write_classes,
)
from gapfloor.engines.engine import Option
from gapfloor.engines.registry import check_cloning, check_ends, make_spec
from gapfloor.levels.schedule import LevelSet, check_draw
from gapfloor.machine import check_workers
from gapfloor.play.protocol import expand_games
from gapfloor.policies.load import PolicySource
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of


@dataclass(frozen=True, repr=False)
class Calibrations(ReadableResult):
    """The action classes of several games, in the order named."""

    row_names = ("games",)

    games: tuple[ActionClasses, ...]
    """One per game on random play and, if a policy was named, one on the states that it visits."""
    notes: tuple[str, ...] = ()
    """Where the classes are kept, or why the store keeps its own."""

    def __iter__(self) -> Iterator[ActionClasses]:
        return iter(self.games)

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor calibrate --json` prints."""
        shipped = [_shipped(found) for found in self.games]
        pairs = zip(self.games, shipped, strict=True)
        return {"games": [{**found.to_json(), "shipped_k": known and known.k} for found, known in pairs]}

    def table(self) -> Table:
        """One line per game, and one for the policy's own play."""
        rows = []
        for found in self.games:
            shipped = _shipped(found)
            same = "" if shipped is None else "same" if shipped.partition == found.partition else "other"
            rows.append(
                {
                    "game": found.engine.game, "mode": found.engine.mode, "play": _played_by(found), "k": found.k,
                    "state_k": found.mean_state_k, "states": found.settings.states, "shipped": same,
                }
            )  # fmt: skip
        return table_of("calibration", rows)

    def sentences(self) -> list[str]:
        """The classes by the names of their actions, and how they were measured."""
        settings = self.games[0].settings
        engines = dict.fromkeys(f"{found.engine.engine} {found.engine.version}" for found in self.games)
        return [
            *(
                f"{found.engine.game} ({_played_by(found)}): {' | '.join(found.class_texts)}"
                for found in self.games
            ),
            f"Levels {settings.levels}, seed {settings.seed}, horizon {settings.horizon}; {', '.join(engines)}.",
        ]


def _played_by(found: ActionClasses) -> str:
    return "random" if found.play == RANDOM_PLAY else "policy"


def _shipped(found: ActionClasses) -> ActionClasses | None:
    """The classes that come with gapfloor; None for other engines, modes and options."""
    return None if found.engine.options else shipped_classes(found.engine.game, found.engine.mode)


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
        The classes of each game and, with a policy, those of the states that it visits (`play` tells them apart).

    Command line:
        gapfloor calibrate starpilot fruitbot
        gapfloor calibrate paper --json
        gapfloor calibrate gym:MiniGrid-FourRooms-v0 --states 100
        gapfloor calibrate starpilot --policy gapfloor-store/runs/starpilot-easy-impala-8M-s1

    Examples:
        >>> import gapfloor
        >>> (game,) = gapfloor.calibrate("fruitbot", states=16, progress=False)
        >>> game.partition.n_actions, game.k
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
    measured: list[ActionClasses] = []
    notes = []
    for spec in specs:
        random = measure_classes(spec, chosen, workers=workers)
        measured.append(random)
        if source is not None:
            measured.append(measure_classes(spec, chosen, source=source, workers=workers))
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
