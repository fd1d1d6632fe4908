"""Which episodes to replay: the same scheduled episode under every rule and under the floor.

A draw gives every policy and rule the same levels in the same places, so one (draw, slot, index) is one level under
all of them. By default the places are those where sampling and argmax differ most: a replay is an illustration.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gapfloor.errors import UsageError
from gapfloor.play.replay import RecordedEpisode, recorded_episodes
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import StoredCell


def choose_episodes(
    stored: Iterable[StoredCell],
    *,
    games: Sequence[str] = (),
    level_set: str = "test",
    agent: str | None = None,
    seed: int | None = None,
    level: int | None = None,
    count: int = 2,
) -> list[RecordedEpisode]:
    """Episodes of one run per game and of its floor, at the same places of the first draw; None accepts any."""
    cells = [cell for cell in stored if cell.manifest.labels["level_set"] == level_set]
    chosen: list[RecordedEpisode] = []
    for game in games or dict.fromkeys(cell.manifest.labels["game"] for cell in cells):
        here = [cell for cell in cells if cell.manifest.labels["game"] == game]
        runs = [
            cell
            for cell in here
            if not cell.is_reference
            and agent in (None, cell.manifest.labels["agent"])
            and seed in (None, cell.manifest.labels["seed"])
        ]
        if not runs:
            raise UsageError(
                f"The store has no {level_set} cells of a matching run on {game}: evaluate one first."
            )
        mine = _first_run(runs)
        episodes = {
            cell.manifest.labels["rule"]: recorded_episodes(cell) for cell in [*mine, *_floors(here, mine[0])]
        }
        places = _places(episodes, level=level, count=count)
        chosen += [rows[place] for rows in episodes.values() for place in places]
    return chosen


def _first_run(runs: Sequence[StoredCell]) -> list[StoredCell]:
    """The cells of the first run by agent and seed, on the first draw."""
    first = min(
        runs, key=lambda cell: (str(cell.manifest.labels["agent"]), cell.manifest.labels["seed"] or 0)
    )
    run = RunIdentity.from_labels(first.manifest.labels)
    draw = min(cell.manifest.labels["draw"] for cell in runs)
    return [
        cell
        for cell in runs
        if RunIdentity.from_labels(cell.manifest.labels) == run and cell.manifest.labels["draw"] == draw
    ]


def _floors(cells: Sequence[StoredCell], run: StoredCell) -> list[StoredCell]:
    """The floor on the levels of a run's cell."""
    same = ("slots", "burn_in", "episodes", "levels", "draw")
    return [
        cell
        for cell in cells
        if cell.manifest.labels["reference"] == "uniform"
        and all(cell.manifest.content[part] == run.manifest.content[part] for part in same)
    ]


def _places(episodes: dict[str, list[RecordedEpisode]], *, level: int | None, count: int) -> list[int]:
    """Positions in the schedule: that of a named level, or where sampled and greedy differ most."""
    any_rule = next(iter(episodes.values()))
    if level is not None:
        found = [place for place, row in enumerate(any_rule) if row.level_seed == level]
        if not found:
            raise UsageError(
                f"Level {level} is not in this draw: choose a level of one of its {len(any_rule)} episodes."
            )
        return found[:1]
    contrast = [0.0] * len(any_rule)
    if {"sampled", "greedy"} <= set(episodes):
        pairs = zip(episodes["sampled"], episodes["greedy"], strict=True)
        contrast = [sampled.episode_return - greedy.episode_return for sampled, greedy in pairs]
    first_of: dict[int, int] = {}
    for place in sorted(range(len(any_rule)), key=lambda place: -contrast[place]):
        first_of.setdefault(any_rule[place].level_seed, place)
    return sorted(list(first_of.values())[:count])
