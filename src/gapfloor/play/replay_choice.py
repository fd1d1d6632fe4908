"""Which episodes to replay: the same scheduled episode under every rule and under the floor.

A draw gives every policy and rule the same levels in the same places, so one (draw, slot, index) is one level under
all of them. By default the places are those where sampling and argmax differ most: a replay is an illustration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.errors import UsageError
from gapfloor.play.replay import RecordedEpisode, recorded_episodes
from gapfloor.records.store import StoredCell


@dataclass(frozen=True)
class ReplayRequest:
    """What a user asked to see; None accepts any."""

    games: tuple[str, ...] = ()
    level_set: str = "test"
    agent: str | None = None
    seed: int | None = None
    level: int | None = None
    count: int = 2


def choose_episodes(stored: Iterable[StoredCell], wanted: ReplayRequest) -> list[RecordedEpisode]:
    """Episodes of one run per game and of its floor, at the same places of the first draw."""
    cells = [cell for cell in stored if cell.manifest.labels["level_set"] == wanted.level_set]
    games = wanted.games or tuple(dict.fromkeys(cell.manifest.labels["game"] for cell in cells))
    chosen: list[RecordedEpisode] = []
    for game in games:
        chosen += _of_game([cell for cell in cells if cell.manifest.labels["game"] == game], game, wanted)
    return chosen


def _of_game(cells: Sequence[StoredCell], game: str, wanted: ReplayRequest) -> list[RecordedEpisode]:
    runs = [cell for cell in cells if not cell.is_reference and _is_wanted(cell.manifest.labels, wanted)]
    if not runs:
        raise UsageError(
            f"The store has no {wanted.level_set} cells of a matching run on {game}: evaluate one first."
        )
    first = min(
        runs, key=lambda cell: (str(cell.manifest.labels["agent"]), cell.manifest.labels["seed"] or 0)
    )
    who = [first.manifest.labels[name] for name in ("agent", "seed", "budget", "mode")]
    draw = min(cell.manifest.labels["draw"] for cell in runs)
    mine = [
        cell
        for cell in runs
        if [cell.manifest.labels[name] for name in ("agent", "seed", "budget", "mode")] == who
        and cell.manifest.labels["draw"] == draw
    ]
    same_design = ("slots", "burn_in", "episodes", "levels", "draw")
    floors = [
        cell
        for cell in cells
        if cell.manifest.labels["reference"] == "uniform"
        and all(cell.manifest.content[part] == mine[0].manifest.content[part] for part in same_design)
    ]
    episodes = {cell.manifest.labels["rule"]: recorded_episodes(cell) for cell in [*mine, *floors]}
    places = _places(episodes, wanted)
    return [rows[place] for rows in episodes.values() for place in places]


def _is_wanted(labels: dict[str, Any], wanted: ReplayRequest) -> bool:
    return (wanted.agent is None or labels["agent"] == wanted.agent) and (
        wanted.seed is None or labels["seed"] == wanted.seed
    )


def _places(episodes: dict[str, list[RecordedEpisode]], wanted: ReplayRequest) -> list[int]:
    """Positions in the schedule: those of a named level, or where sampled and greedy differ most."""
    any_rule = next(iter(episodes.values()))
    if wanted.level is not None:
        found = [place for place, row in enumerate(any_rule) if row.level_seed == wanted.level]
        if not found:
            raise UsageError(
                f"Level {wanted.level} is not in this draw: choose a level of one of its {len(any_rule)} episodes."
            )
        return found[:1]
    if {"sampled", "greedy"} <= set(episodes):
        contrast = [
            sampled.episode_return - greedy.episode_return
            for sampled, greedy in zip(episodes["sampled"], episodes["greedy"], strict=True)
        ]
    else:
        contrast = [0.0] * len(any_rule)
    order = sorted(range(len(any_rule)), key=lambda place: (-contrast[place], place))
    levels: dict[int, int] = {}
    for place in order:
        levels.setdefault(any_rule[place].level_seed, place)
    return sorted(list(levels.values())[: wanted.count])
