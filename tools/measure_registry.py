"""Measure a registry of floors: a file that lists environments, references and seeds, one family after the other.

    python tools/measure_registry.py studies/registry.toml --store registry

Run it again to measure only what is missing. `gapfloor known-floor` reads the registry that was made with it.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from environment_families import family_of
from gapfloor.analysis.known_floors import (
    FloorRegistry,
    RegisteredEnvironment,
    RegisteredFloor,
)
from gapfloor.api.progress import step_teller
from gapfloor.engines.contract import plays_of
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import GapfloorError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.campaign import plan_campaign
from gapfloor.play.candidate import action_space_of
from gapfloor.play.protocol import Protocol, expand_games
from gapfloor.play.references import BEST_CONSTANT
from gapfloor.play.workers import CellWorkers
from gapfloor.records.atomic import write_text_atomically
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import StoredCell, canonical_json, read_episodes
from registry_cost import RegistryCost
from registry_csv import registry_csv, scores_of
from registry_file import FloorGroup, read_registry_file

#: Shares of episodes whose returns are listed as quantiles.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
#: The reported cell of each reference.
_Cells = Mapping[str, StoredCell]


@dataclass(frozen=True, repr=False)
class MeasuredRegistry(FloorRegistry):
    """The floors of a registry file, with what could not be measured."""

    left_out: tuple[str, ...] = ()
    """Environments of the registry file that could not be made, each with the reason."""

    def to_dict(self) -> dict[str, Any]:
        """The document of `registry.json`."""
        return {**super().to_dict(), **({"left_out": list(self.left_out)} if self.left_out else {})}

    def sentences(self) -> list[str]:
        """How much there is, and what is left out."""
        return [*super().sentences(), *(f"Left out: {sentence}" for sentence in self.left_out)]


def measure_registry(
    path: str | Path,
    *,
    store: str | Path,
    workers: int | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> MeasuredRegistry:
    """The floors of every environment that a registry file lists; run it again to do only what is missing.

    Args:
        path: A TOML file, e.g. `studies/registry.toml`.
        store: The folder that keeps the cells; `results/registry.json` and `results/registry.csv` are written there.
        workers: Number of worker processes; None: one per core.
        progress: Called with words about what is measured. None: a line per environment on a terminal; False: nothing.

    Returns:
        The registry.
    """
    tell = step_teller(progress)
    groups = read_registry_file(Path(path)).floors
    listed = [(group, game) for group in groups for game in expand_games(group.games)]
    left_out = _left_out(listed)
    for sentence in left_out.values():
        tell(f"Left out: {sentence}")
    wanted = [pair for at, pair in enumerate(listed) if at not in left_out]
    if not wanted:
        raise UsageError(
            f"No environment of {Path(path).name} can be made here: {next(iter(left_out.values()))}"
        )
    opened = Store(store)
    cost = RegistryCost(opened.root)
    entries: list[RegisteredEnvironment] = []
    for place, (group, game) in enumerate(wanted, start=1):
        tell(f"{place} of {len(wanted)}, {group.family}: {game} {group.mode}".rstrip())
        play = functools.partial(_play, store=opened, workers=workers, cost=cost)
        entries.append(_measure(group, game, play=play))
    registry = MeasuredRegistry(tuple(entries), left_out=tuple(left_out.values()))
    text = json.dumps(registry.to_dict(), indent=1, allow_nan=False) + "\n"
    write_text_atomically(opened.root / "results" / "registry.json", text)
    write_text_atomically(opened.root / "results" / "registry.csv", registry_csv(registry))
    return registry


def _left_out(listed: Sequence[tuple[FloorGroup, str]]) -> dict[int, str]:
    """Why environments cannot be made here, by their place in the list: each is tried before anything is played."""
    found = {}
    for at, (group, game) in enumerate(listed):
        try:
            for play in group.plays:
                group.protocol(game, play)
        except GapfloorError as error:
            found[at] = f"{game}: {error}"
    return found


def _measure(group: FloorGroup, game: str, *, play: Callable[..., _Cells]) -> RegisteredEnvironment:
    floors: list[RegisteredFloor] = []
    for each in group.plays:
        protocol = group.protocol(game, each)
        cells = play(group, protocol, each.references)
        reported: _Cells = {}
        if group.success == "reported":
            scored = group.protocol(game, each, options={"score": "success"})
            # The same constant action, not the one that succeeds most often.
            same = {name: _played_reference(name, cells[name]) for name in each.references}
            found = play(group, scored, tuple(dict.fromkeys(same.values())))
            reported = {name: found[played] for name, played in same.items()}
        seeds = each.test if each.test != group.test else ""
        floors += [
            _floor(name, cells[name], form=group.success, reported=reported.get(name), seeds=seeds)
            for name in each.references
        ]
    engine = protocol.engines[0]
    family = family_of(engine)
    return RegisteredEnvironment(
        game=game,
        mode=group.mode,
        family=group.family,
        engine=engine.engine,
        version=engine.version,
        actions=str(action_space_of(engine)),
        seed=family.seed if family else "",
        seeds_seen=_seeds_seen(engine, LevelSet.parse(group.test)),
        seeds=group.test,
        chosen_on=group.train if BEST_CONSTANT in group.references else "",
        command=group.command(game),
        floors=tuple(floors),
        published=scores_of(game, group.mode),
    )


def _play(
    group: FloorGroup,
    protocol: Protocol,
    references: Sequence[str],
    *,
    store: Store,
    workers: int | None,
    cost: RegistryCost,
) -> _Cells:
    """The reported cell of each reference; only what is missing is played."""
    engine = protocol.engines[0]
    campaign = plan_campaign(protocol, store, references=references)
    is_timed = workers == 1 and (campaign.missing or BEST_CONSTANT in references)
    name = f"{engine.game} {group.mode}".rstrip()
    with cost.timing(group.family, name) if is_timed else contextlib.nullcontext():
        campaign.play(CellWorkers(workers))
    stored = campaign.stored_cells(campaign.reference_cells)
    return {
        cell.manifest.labels["reference"]: cell
        for cell in stored
        if cell.manifest.labels["level_set"] == "test"
    }


def _played_reference(name: str, cell: StoredCell) -> str:
    return str(cell.manifest.content["rule"]) if name == BEST_CONSTANT else name


def _floor(
    name: str, cell: StoredCell, *, form: str, reported: StoredCell | None, seeds: str
) -> RegisteredFloor:
    episodes = read_episodes(cell.path, columns=("episode_return", "length"))
    returns = episodes.column("episode_return").to_numpy()
    cells = [cell] if reported is None else [cell, reported]
    signed = [[each.manifest.key, each.manifest.episodes_sha256] for each in cells]
    rule = str(cell.manifest.content["rule"])
    return RegisteredFloor(
        reference=name,
        action=rule.removeprefix("constant:") if name == BEST_CONSTANT else "",
        mean=_rounded(float(returns.mean())),
        sem=_rounded(float(returns.std(ddof=1) / math.sqrt(returns.size))) if returns.size > 1 else 0.0,
        n_episodes=int(returns.size),
        length=_rounded(float(episodes.column("length").to_numpy().mean())),
        quantiles=tuple(_rounded(float(value)) for value in np.quantile(returns, QUANTILES)),
        success=_success(returns, form, reported),
        seeds=seeds,
        provenance=hashlib.sha256(canonical_json(signed).encode()).hexdigest(),
    )


def _success(returns: np.ndarray, form: str, reported: StoredCell | None) -> float | None:  # type: ignore[type-arg]
    if reported is not None:
        found = read_episodes(reported.path, columns=("episode_return",)).column("episode_return").to_numpy()
        return _rounded(float(found.mean()))
    if form == "positive return" or (returns.min() == 0 and np.unique(returns).size == 2):
        return _rounded(float((returns > 0).mean()))
    return None


def _seeds_seen(engine: EngineSpec, seeds: LevelSet) -> str:
    """What the first four seeds show under the same random actions."""
    levels = tuple(range(seeds.start, seeds.start + min(4, seeds.n or 4)))
    running = engine_from_spec(engine, slots=1, levels=seeds)
    plays = plays_of(running, levels)
    running.close()
    starts, episodes = (len({play[part] for play in plays.values()}) for part in (0, 1))
    return f"{len(levels)} seeds: {starts} starts, {episodes} episodes"


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the registry that the arguments name, and print it."""
    parser = argparse.ArgumentParser(description="Measure every environment of a registry file.")
    parser.add_argument("file", type=Path, help="A TOML file, e.g. studies/registry.toml.")
    parser.add_argument("--store", type=Path, required=True, help="The folder that keeps the cells.")
    parser.add_argument("--workers", type=int, help="Number of worker processes (default: one per core).")
    given = parser.parse_args(arguments)
    try:
        found = measure_registry(given.file, store=given.store, workers=given.workers)
    except GapfloorError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    written = f"Written: {given.store / 'results' / 'registry.json'} and registry.csv."
    for line in filter(None, [repr(found), RegistryCost(given.store).sentence(), written]):
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
