"""Measure a registry of floors: a file that lists environments, references and seeds, one family after the other."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gapfloor.analysis.registry_entries import (
    QUANTILES,
    FloorRegistry,
    RegisteredEnvironment,
    RegisteredFloor,
    scores_of,
)
from gapfloor.api.progress import step_teller
from gapfloor.engines.contract_promises import plays_of
from gapfloor.engines.families import family_of
from gapfloor.engines.protocol import EngineSpec, Option
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import UsageError, unknown_name
from gapfloor.levels import LevelSet
from gapfloor.play.campaign import Request, plan_campaign
from gapfloor.play.candidate import action_space_of
from gapfloor.play.protocol import Protocol, expand_games, make_protocol
from gapfloor.play.references import BEST_CONSTANT, UNIFORM, check_references
from gapfloor.play.workers import CellWorkers, Silence
from gapfloor.records.atomic import write_text_atomically
from gapfloor.records.manifest import canonical_json
from gapfloor.records.store import Store, StoredCell, read_episodes
from gapfloor.settings import from_table, read_toml

#: How success is found: all-or-nothing returns are recognised by themselves, others need one of these.
SUCCESS_FORMS = ("", "positive return", "reported")


@dataclass(frozen=True, kw_only=True)
class FloorGroup:
    """Environments of one family that are measured in the same way."""

    family: str
    games: tuple[str, ...]
    references: tuple[str, ...] = (UNIFORM,)
    train: str = "none"
    """Seeds on which the best constant action is chosen."""
    test: str
    """Seeds that are played once each and reported."""
    mode: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    success: str = ""
    """`positive return`, or `reported` where the environment's info says it; empty: all-or-nothing returns only."""

    def protocol(self, game: str, *, options: Mapping[str, Option] | None = None) -> Protocol:
        """The checked protocol of one environment."""
        return make_protocol(
            [game], mode=self.mode or None, options={**self.options, **(options or {})}, train=self.train,
            test=self.test, design="census",
        )  # fmt: skip

    def command(self, game: str) -> str:
        """The command that measures one environment in the same way."""
        parts = ["gapfloor floor", game]
        parts += [f"--mode {self.mode}"] * bool(self.mode)
        parts += [f"--option {name}={_written(value)}" for name, value in self.options.items()]
        parts += [f"--design census --train {self.train} --test {self.test}"]
        return " ".join([*parts, *(f"--reference {name}" for name in self.references)])


@dataclass(frozen=True, kw_only=True)
class RegistryFile:
    """What a registry file says."""

    name: str = "registry"
    floors: tuple[FloorGroup, ...]


def measure_registry(
    path: str | Path,
    *,
    store: str | Path,
    workers: int | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> FloorRegistry:
    r"""The floors of every environment that a registry file lists; run it again to do only what is missing.

    Args:
        path: A TOML file, e.g. `studies/registry.toml`.
        store: The folder that keeps the cells; `results/registry.json` and `results/registry.csv` are written there.
        workers: Number of worker processes; None: one per core.
        progress: Called with words about what is measured. None: a line per environment on a terminal; False: nothing.

    Returns:
        The registry.

    Examples:
        >>> import gapfloor
        >>> import pathlib
        >>> import tempfile
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> text = '[[floors]]\nfamily = "toy text"\ngames = ["gym:Blackjack-v1"]\ntest = "1000:1050"'
        >>> _ = (folder / "mine.toml").write_text(text)
        >>> registry = gapfloor.measure_registry(folder / "mine.toml", store=folder / "store", progress=False)
        >>> registry.entries[0].floor.n_episodes, registry.entries[0].seed
        (50, 'start and chance')
    """
    tell = step_teller(progress)
    groups = read_registry_file(Path(path)).floors
    opened = Store(store)
    entries: list[RegisteredEnvironment] = []
    for group in groups:
        for game in expand_games(group.games):
            tell(f"{group.family}: {game} {group.mode}".rstrip())
            entries.append(_measure(group, game, store=opened, workers=workers))
    registry = FloorRegistry(tuple(entries))
    write_text_atomically(opened.root / "results" / "registry.json", registry.to_json())
    write_text_atomically(opened.root / "results" / "registry.csv", registry.to_csv())
    return registry


def read_registry_file(path: Path) -> RegistryFile:
    """The checked file: every name and range is read before anything is played."""
    found = from_table(RegistryFile, read_toml(path), source=path.name)
    if not found.floors:
        raise UsageError(
            f"{path.name} lists no environments: add a [[floors]] table with family, games and test."
        )
    for group in found.floors:
        check_references(group.references)
        if group.references[0] != UNIFORM:
            raise UsageError(
                f"{path.name}: the references of {group.family} must start with uniform, the floor."
            )
        if BEST_CONSTANT in group.references and group.train == "none":
            raise UsageError(
                f"{path.name}: best-constant of {group.family} is chosen on other seeds than it is reported on: "
                'give train, e.g. train = "0:20".'
            )
        if group.success not in SUCCESS_FORMS:
            raise unknown_name("form of success", group.success, [form for form in SUCCESS_FORMS if form])
        LevelSet.parse(group.test)
    return found


def _measure(group: FloorGroup, game: str, *, store: Store, workers: int | None) -> RegisteredEnvironment:
    protocol = group.protocol(game)
    engine = protocol.engines[0]
    cells = _play(protocol, group.references, store=store, workers=workers)
    reported: Mapping[str, StoredCell] = {}
    if group.success == "reported":
        scored = group.protocol(game, options={"score": "success"})
        reported = _play(scored, group.references, store=store, workers=workers)
    floors = [_floor(name, cells[name], group.success, reported.get(name)) for name in group.references]
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
    protocol: Protocol, references: Sequence[str], *, store: Store, workers: int | None
) -> dict[str, StoredCell]:
    """The reported cell of each reference; only what is missing is played."""
    request = Request(engine=protocol.engines[0], protocol=protocol, references=tuple(references))
    campaign = plan_campaign([request], store)
    campaign.play(CellWorkers(workers, Silence()))
    stored = campaign.stored_cells(campaign.reference_cells)
    return {
        cell.manifest.labels["reference"]: cell
        for cell in stored
        if cell.manifest.labels["level_set"] == "test"
    }


def _floor(name: str, cell: StoredCell, success: str, reported: StoredCell | None) -> RegisteredFloor:
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
        success=_success(returns, success, reported),
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


def _written(value: Option) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
