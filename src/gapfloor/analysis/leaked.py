"""The gap with and without leaked levels: held-out levels whose layout equals a training level's.

Leaked levels are known to a trained agent, so they pull its gap towards zero; the floor knows no level, so its gap
moves only by which levels are left. And it does move: layouts repeat most often among the shortest levels, which are
the easiest, so held-out levels without leaks are harder than training levels with their twins. Hence three gaps, each
with the floor's gap on the same levels: on all levels, without leaked held-out levels, and without shared layouts on
either side (the twins left out of the training levels too). Means are over runs as everywhere; nothing is tested here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.episodes import Source, read_inputs
from gapfloor.analysis.grouping import RunName, RunSample, StudyEpisodes, group
from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.levels import LevelSet
from gapfloor.levels.overlap import Leakage, LevelOverlap
from gapfloor.plan.model import paper_plan
from gapfloor.statistics.conventions import NAN, Floats, sem


@dataclass(frozen=True)
class LeakedGap:
    """An agent's gap under one rule, with all held-out levels and without the leaked ones."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    budget: str
    """Label of the training budget, e.g. 8M; empty if there is none."""
    agent: str
    """Empty: all runs of the game, whatever their agent."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    n_runs: int
    """0: the floor alone."""
    train: float
    """Mean return on training levels."""
    test: float
    """Mean return on held-out levels."""
    test_without: float
    """Mean held-out return without leaked levels."""
    test_leaked: float
    """Mean return on the leaked levels alone."""
    gap: float
    """Gap with all held-out levels."""
    sem: float
    """Over runs; NaN for one run."""
    gap_without: float
    """Gap without leaked levels."""
    sem_without: float
    """Its standard error over runs."""
    gap_unshared: float
    """Without leaked held-out levels and without their twins among the training levels."""
    sem_unshared: float
    """Its standard error over runs."""
    floor_gap: float
    """The floor's own train - test difference."""
    floor_gap_without: float
    """The floor's gap without leaked levels."""
    floor_gap_unshared: float
    """The floor's gap without leaked levels and their twins among the training levels."""
    levels: int
    """Held-out levels of the set."""
    leaked_levels: int
    """Held-out levels that equal a training level."""
    episodes: int
    """Held-out episodes of the runs."""
    episodes_left: int
    """Held-out episodes on the other levels."""
    floor_episodes: int
    """Held-out episodes of the floor."""
    floor_episodes_left: int
    """The floor's episodes on the other levels."""

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON values; what is not a number is null."""
        row: dict[str, Any] = jsonable(self)
        return row


def split_by_leak(sample: RunSample, leaked: Collection[int]) -> tuple[Floats, Floats]:
    """Returns on leaked levels and on the others."""
    if not sample.levels.size:
        raise UsageError("The episodes have no level seeds: leaked levels cannot be told from the others.")
    known = np.isin(sample.levels, sorted(leaked))
    return sample.returns[known], sample.returns[~known]


def gap_without(source: Source, leakage: Leakage) -> tuple[LeakedGap, ...]:
    """Gaps of every agent and rule with and without leaked levels, for the games that `leakage` has.

    Args:
        source: what `analyse` takes: a store, an episode file, a table, or `Inputs`.
        leakage: what `gapfloor levels` found (`gapfloor.levels.overlap.read_leakage`).
    """
    study = group(read_inputs(source), paper_plan())
    rows = []
    for game, mode, budget in study.places():
        overlap = leakage.of(game, mode)
        if overlap is None:
            continue
        for rule in study.rules:
            train = study.runs(game, mode, budget, rule, "train")
            test = study.runs(game, mode, budget, rule, "test")
            runs = [name for name in train if name in test]
            agents = [agent for agent in study.agents if any(name.agent == agent for name in runs)]
            for agent in [*agents, ""] if len(agents) > 1 else agents:
                names = [name for name in runs if not agent or name.agent == agent]
                halves = {name: (train[name], test[name]) for name in names}
                rows.append(_row(study, overlap, (game, mode, budget, agent, rule), halves))
    return (*rows, *_floors_alone(study, leakage))


def _floors_alone(study: StudyEpisodes, leakage: Leakage) -> list[LeakedGap]:
    """Floors of games without runs, each treated as a policy, so that a store of floors gets rows too."""
    with_runs = {place[:2] for place in study.places()}
    rows = []
    for game, mode, budget, reference, level_set in study.references:
        overlap = leakage.of(game, mode)
        train, test = (study.floor(game, mode, budget, name) for name in ("train", "test"))
        if (reference, level_set) != (FLOOR_RULE, "test") or (game, mode) in with_runs:
            continue
        if overlap is not None and train is not None and test is not None:
            row = _row(study, overlap, (game, mode, budget, "", FLOOR_RULE), {RunName("", ""): (train, test)})
            rows.append(dataclasses.replace(row, n_runs=0))
    return rows


def _row(
    study: StudyEpisodes,
    overlap: LevelOverlap,
    place: tuple[str, str, str, str, str],
    halves: Mapping[RunName, tuple[RunSample, RunSample]],
) -> LeakedGap:
    game, mode, budget, agent, rule = place
    floors = [
        study.floor(game, mode, budget, level_set, reference=FLOOR_RULE) for level_set in ("train", "test")
    ]
    for known, held in [*halves.values(), tuple(floors)]:
        _check_covers(overlap, overlap.train, known)
        _check_covers(overlap, overlap.test, held)
    trains = np.array([known.mean for known, _ in halves.values()])
    tests = np.array([held.mean for _, held in halves.values()])
    parts = [split_by_leak(held, overlap.leaked) for _, held in halves.values()]
    withouts = np.array([_mean(rest) for _, rest in parts])
    shared = {pair.training for pair in overlap.pairs}
    unshared = np.array([_mean(split_by_leak(known, shared)[1]) for known, _ in halves.values()])
    known_floor, held_floor = floors
    floor_left = split_by_leak(held_floor, overlap.leaked)[1] if held_floor else np.array([])
    floor_unshared = split_by_leak(known_floor, shared)[1] if known_floor else np.array([])
    return LeakedGap(
        game=game,
        mode=mode,
        budget=budget,
        agent=agent,
        rule=rule,
        n_runs=len(halves),
        train=float(trains.mean()),
        test=float(tests.mean()),
        test_without=float(withouts.mean()),
        test_leaked=float(np.mean([_mean(leaked) for leaked, _ in parts])),
        gap=float((trains - tests).mean()),
        sem=_sem(trains - tests),
        gap_without=float((trains - withouts).mean()),
        sem_without=_sem(trains - withouts),
        gap_unshared=float((unshared - withouts).mean()),
        sem_unshared=_sem(unshared - withouts),
        floor_gap=known_floor.mean - held_floor.mean if known_floor and held_floor else NAN,
        floor_gap_without=known_floor.mean - _mean(floor_left) if known_floor else NAN,
        floor_gap_unshared=_mean(floor_unshared) - _mean(floor_left),
        levels=overlap.test.n,
        leaked_levels=len(overlap.leaked),
        episodes=sum(held.returns.size for _, held in halves.values()),
        episodes_left=sum(rest.size for _, rest in parts),
        floor_episodes=held_floor.returns.size if held_floor else 0,
        floor_episodes_left=int(floor_left.size),
    )


def _check_covers(overlap: LevelOverlap, levels: LevelSet, sample: RunSample | None) -> None:
    """Refuse a leakage file about other levels than those that were played."""
    if sample is None:
        return
    outside = sorted({int(level) for level in sample.levels} - set(range(levels.start, levels.stop)))
    if outside:
        raise UsageError(
            f"{overlap.game} was played on level {outside[0]}, but its leakage was checked for {overlap.train} and "
            f"{overlap.test}: run gapfloor levels with the level sets that were played."
        )


def _mean(returns: Floats) -> float:
    return float(np.sort(returns).mean()) if returns.size else NAN


def _sem(values: Floats) -> float:
    return sem(np.sort(values)) if values.size > 1 else NAN
