"""Which checkpoint: gap and distance from the floor over a run's training, and the in-loop mean beside them.

A training log reports the running mean of training episodes. It mixes weights (the window reaches back over updates)
and counts episodes in the order in which they end; the value of a fixed checkpoint on the same training levels
has neither fault. This module measures both.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.api.policy_campaign import play_policies
from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.levels import LevelSet
from gapfloor.play.campaign import GameCells
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import INFERENCE_BATCH, make_protocol
from gapfloor.play.samples import read_sample
from gapfloor.play.workers import Progress
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.store import Store
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules
from gapfloor.statistics.conventions import CONFIDENCE
from gapfloor.statistics.level_means import (
    LevelContrast,
    independent_difference,
    mean_by_level,
    pair_by_level,
)
from gapfloor.text_tables import html_table, interval_text, number, signed, text_table, with_error
from gapfloor.training.history import History, read_history


@dataclass(frozen=True)
class CheckpointPoint:
    """One checkpoint under one rule; errors are over levels."""

    steps: int
    rule: str
    train: LevelContrast
    test: LevelContrast
    gap: LevelContrast
    delta: LevelContrast
    """Held-out return minus floor, paired by level."""
    entropy_raw: float
    """Nats, mean over both level sets."""
    is_one_action: bool
    """Whether one action was taken in nearly every visited state of either level set."""


@dataclass(frozen=True)
class InLoopPoint:
    """The log's running mean beside the fixed checkpoint, sampled, on the same training levels."""

    steps: int
    in_loop: float
    window_episodes: int
    window_updates: int
    fixed: float
    fixed_sem: float
    """Per episode: the estimand is these training levels, from which both draw."""
    difference: float
    """In-loop minus fixed."""
    se: float
    """Of the difference: the log keeps no spread, so the fixed checkpoint's is taken for the window's episodes too."""


@dataclass(frozen=True)
class Choice:
    """The checkpoint with the best training return under a rule, against the last one, on held-out levels."""

    rule: str
    steps: int
    last_steps: int
    gain: LevelContrast
    """Held-out return of the chosen minus that of the last, paired by level."""


@dataclass(frozen=True)
class RunCourse:
    """One run over its training."""

    name: str
    game: str
    mode: str
    rules: tuple[str, ...]
    points: tuple[CheckpointPoint, ...]
    in_loop: tuple[InLoopPoint, ...]
    in_loop_curve: tuple[tuple[int, float], ...]
    """Steps and running mean at every update of the log."""
    floors: dict[str, LevelContrast]
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class OverTraining:
    """Runs over their training."""

    courses: tuple[RunCourse, ...]
    design: str
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor over-training --json` prints."""
        document = jsonable(dataclasses.asdict(self))
        document["notes"] = [*self.sentences(), *self.notes]
        return dict(document)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """One row a checkpoint and rule; the in-loop mean beside the sampled rows."""
        headings = [
            "run",
            "steps",
            "rule",
            "train",
            "test",
            "gap",
            "test - floor",
            "in-loop",
            "in-loop - fixed",
        ]
        rows = []
        for course in self.courses:
            logged = {row.steps: row for row in course.in_loop}
            for point in course.points:
                row = [
                    course.name,
                    f"{point.steps:,}",
                    point.rule,
                    with_error(point.train.value, point.train.se),
                    with_error(point.test.value, point.test.se),
                    f"{signed(point.gap.value)} ± {number(point.gap.se)}",
                    f"{signed(point.delta.value)} ± {number(point.delta.se)}",
                ]
                beside = logged.get(point.steps) if point.rule == "sampled" else None
                if beside is None:
                    rows.append([*row, "", ""])
                else:
                    difference = f"{signed(beside.difference)} ± {number(beside.se)}"
                    rows.append([*row, number(beside.in_loop), difference])
        return headings, rows

    def sentences(self) -> list[str]:
        """What was found, a few sentences a run."""
        return [*(line for course in self.courses for line in _sentences(course)), _SCOPE]

    def __repr__(self) -> str:
        return "\n".join([text_table(*self.table()), *self.sentences(), *self.notes])

    def _repr_html_(self) -> str:
        return html_table(*self.table()) + "".join(f"<p>{line}</p>" for line in self.sentences())


_SCOPE = (
    "All rows of a game share its floor: the floor's own error moves every delta alike. Errors take these runs as "
    "given and their levels as a sample."
)


def over_training(
    runs: str | Path | Sequence[str | Path],
    *,
    rules: str = "sampled,greedy",
    game: str | None = None,
    batch: int = INFERENCE_BATCH,
    device: str = "cpu",
    workers: int | None = None,
    progress: Progress | None = None,
    store: str | Path | None = None,
    **protocol: Any,
) -> OverTraining:
    """Every kept checkpoint of each run under `rules` on both level sets, beside the floor and the training log.

    Intermediate checkpoints are filed under the budget `BUDGET@STEPS`, the last under the run's own. `protocol` holds
    the settings that `evaluate` takes.
    """
    folders = [runs] if isinstance(runs, (str, Path)) else list(runs)
    if not folders:
        raise UsageError("No run is named: give the folder of one, as gapfloor-store/runs/NAME.")
    histories = [read_history(folder) for folder in folders]
    for history in histories:
        _check(history, game, protocol)
    names = [history.name for history in histories]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The run {name} is named twice: name each once.")
    entrants: dict[str, list[Entrant]] = {}
    for history in histories:
        entrants.setdefault(str(history.header["game"]), []).extend(
            Entrant(kept.path, budget=kept.label) for kept in history.kept
        )
    with open_store(store) as opened:
        campaign = play_policies(
            entrants,
            rules=parse_rules(rules),
            protocol=make_protocol(list(entrants), **protocol),
            store=opened,
            batch=batch,
            device=device,
            workers=workers,
            progress=progress,
        )
        games = dict(zip(entrants, campaign.games, strict=True))
        first = dict.fromkeys(games, 0)
        courses = []
        for history in histories:
            game = str(history.header["game"])
            courses.append(_course(history, opened, games[game], first[game]))
            first[game] += len(history.kept)
    notes = [*campaign.notes, *(note for history in histories for note in history.notes)]
    return OverTraining(tuple(courses), str(campaign.protocol.design), tuple(notes))


def _check(history: History, game: str | None, protocol: Mapping[str, Any]) -> None:
    """The in-loop mean is of the run's own game, mode and training levels: the checkpoints must be measured there."""
    header = history.header
    if game is not None and game != header["game"]:
        raise UsageError(f"{history.name} was trained on {header['game']}, not on {game}.")
    mode = protocol.get("mode") or "easy"
    if mode != header["mode"]:
        raise UsageError(
            f"{history.name} was trained in the mode {header['mode']}: name --mode {header['mode']}."
        )
    sets = {
        name: protocol.get(name, default) for name, default in (("train", "0:200"), ("test", "1000:1100"))
    }
    for name, text in sets.items():
        if text == "none":
            raise UsageError(f"Gap and delta need both level sets, but --{name} is none.")
    if str(LevelSet.parse(sets["train"])) != str(header["levels"]):
        raise UsageError(
            f"{history.name} was trained on the levels {header['levels']}, not {sets['train']}: name --train "
            f"{header['levels']}."
        )


def _course(history: History, store: Store, game: GameCells, first: int) -> RunCourse:
    rules = tuple(dict.fromkeys(cell.rule for cell in game.runs[first].cells))
    floors = {name: read_sample(store, game.floor, level_set=name) for name in ("train", "test")}
    points, in_loop = [], []
    held_out: dict[tuple[str, int], EpisodeSample] = {}
    for at, kept in enumerate(history.kept):
        for rule in rules:
            train, test = (
                read_sample(store, game.runs[first + at].cells, level_set=name, rule=rule)
                for name in ("train", "test")
            )
            points.append(_point(kept.steps, rule, train, test, floors["test"]))
            held_out[rule, kept.steps] = test
            logged = history.in_loop(kept.steps) if rule == "sampled" else None
            if logged is not None and logged.n_episodes:
                in_loop.append(
                    _beside(train, logged.episode_return, logged.n_episodes, logged.n_updates, kept.steps)
                )
    return RunCourse(
        name=history.name,
        game=game.engine.game,
        mode=game.engine.mode,
        rules=rules,
        points=tuple(points),
        in_loop=tuple(in_loop),
        in_loop_curve=tuple((row.steps, row.episode_return) for row in history.log if row.n_episodes),
        floors={name: mean_by_level(floor.returns, floor.levels) for name, floor in floors.items()},
        choices=tuple(_choose(rule, points, held_out) for rule in rules),
    )


def _point(
    steps: int, rule: str, train: EpisodeSample, test: EpisodeSample, floor: EpisodeSample
) -> CheckpointPoint:
    halves = (mean_by_level(train.returns, train.levels), mean_by_level(test.returns, test.levels))
    return CheckpointPoint(
        steps=steps,
        rule=rule,
        train=halves[0],
        test=halves[1],
        gap=independent_difference(*halves),
        delta=pair_by_level(test.returns, floor.returns, test.levels),
        entropy_raw=(train.entropy_raw + test.entropy_raw) / 2,
        is_one_action=train.is_one_action or test.is_one_action,
    )


def _beside(fixed: EpisodeSample, in_loop: float, n_window: int, n_updates: int, steps: int) -> InLoopPoint:
    spread = float(np.std(fixed.returns, ddof=1)) if fixed.returns.size > 1 else math.nan
    sem = spread / math.sqrt(fixed.returns.size)
    mean = float(np.mean(fixed.returns))
    se = math.hypot(sem, spread / math.sqrt(n_window))
    return InLoopPoint(steps, in_loop, n_window, n_updates, mean, sem, in_loop - mean, se)


def _choose(
    rule: str, points: Sequence[CheckpointPoint], held_out: Mapping[tuple[str, int], EpisodeSample]
) -> Choice:
    mine = [point for point in points if point.rule == rule]
    best = max(mine, key=lambda point: (point.train.value, -point.steps))
    chosen, last = held_out[rule, best.steps], held_out[rule, mine[-1].steps]
    gain = pair_by_level(chosen.returns, last.returns, last.levels)
    return Choice(rule, best.steps, mine[-1].steps, gain)


def _sentences(course: RunCourse) -> list[str]:
    lines = []
    if course.in_loop:
        higher = sum(row.difference > 0 for row in course.in_loop)
        far = sum(abs(row.difference) > 2 * row.se for row in course.in_loop)
        reach = max(row.window_updates for row in course.in_loop)
        lines.append(
            f"{course.name}: the in-loop mean is higher than the fixed checkpoint on the same training levels at "
            f"{higher} of {len(course.in_loop)} checkpoints, and more than two standard errors away at {far}; its "
            f"window holds episodes of up to {reach} updates' weights."
        )
    elif "sampled" in course.rules:
        lines.append(f"{course.name}: there is no training log, so there is no in-loop mean to compare.")
    for rule in course.rules:
        same = [f"{point.steps:,}" for point in course.points if point.rule == rule and point.is_one_action]
        if same:
            lines.append(
                f"{course.name}, {rule}: one action in nearly every visited state at {', '.join(same)} steps."
            )
    for choice in course.choices:
        if choice.steps == choice.last_steps:
            lines.append(f"{course.name}, {choice.rule}: the last checkpoint has the best training return.")
        else:
            interval = interval_text(*choice.gain.interval, confidence=CONFIDENCE)
            lines.append(
                f"{course.name}, {choice.rule}: the best training return is at {choice.steps:,} steps; on held-out "
                f"levels that checkpoint minus the last is {signed(choice.gain.value)} "
                f"{interval}, paired over {choice.gain.n_levels} levels."
            )
    return lines
