"""The sources of a comparison: policies that are played now, or episodes that were recorded earlier.

A source is the folder of a store or of a dataset, a .csv or .parquet file of episodes, a pattern of run folders or
checkpoints, or `package.module:factory`. Each becomes a `StudyEpisodes` whose samples carry their levels.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from gapfloor.analysis.compared_agents import ComparisonRequest
from gapfloor.analysis.episodes import Inputs, inputs_of_cells, read_inputs
from gapfloor.analysis.grouping import StudyEpisodes, group
from gapfloor.engines.registry import game_of_file, split_game
from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.plan.model import Plan
from gapfloor.play.campaign import Campaign, GameCells
from gapfloor.play.candidate import Entrant
from gapfloor.records.dataset import is_dataset, store_of
from gapfloor.records.store import Store

#: Plays the policies of each game under the named rules.
PlayPolicies = Callable[[Mapping[str, Sequence[Entrant]], Sequence[str]], Campaign]
#: Game and mode -> the engines (name, version, options) that its episodes were played in.
Engines = dict[tuple[str, str], set[str]]


def is_recorded(source: Any) -> bool:
    """Whether a source holds episodes; otherwise it names policies."""
    if isinstance(source, pa.Table | Store | Inputs | StudyEpisodes):
        return True
    if not isinstance(source, str | Path):
        return False
    path = Path(source)
    return (
        (path / "cells").is_dir()
        or is_dataset(path)
        or str(source).lower().endswith((".csv", ".csv.gz", ".parquet", ".pq"))
    )


def read_sources(
    sources: Sequence[Any],
    asked: ComparisonRequest,
    *,
    games: Sequence[str],
    plan: Plan,
    play: PlayPolicies,
) -> tuple[list[StudyEpisodes], list[str]]:
    """A study for each source; policies of all sources are played together, on one schedule."""
    studies: dict[int, StudyEpisodes] = {}
    engines: dict[int, Engines] = {}
    members: dict[str, list[Entrant]] = {}
    owners: dict[str, list[int]] = {}
    for number, source in enumerate(sources):
        if is_recorded(source):
            studies[number] = (
                source if isinstance(source, StudyEpisodes) else group(read_inputs(source), plan)
            )
            engines[number] = _recorded_engines(source)
            continue
        agent = asked.agents[number] if asked.agents and len(sources) == 2 else None
        for game, member in find_policies(source, games, agent=agent, budget=asked.budget(number)):
            members.setdefault(game, []).append(member)
            owners.setdefault(game, []).append(number)
    notes: list[str] = []
    if members:
        campaign = play(members, asked.rules or ("sampled", "greedy"))
        notes = campaign.notes
        found = dict(zip(members, campaign.games, strict=True))
        for number in set(range(len(sources))) - set(studies):
            studies[number] = _study(campaign, found, owners, number, plan)
            engines[number] = {
                (each.engine.game, each.engine.mode): {_engine_words(cell.content())}
                for game, each in found.items()
                for cell in each.floor[:1]
                if number in owners[game]
            }
    _refuse_other_engines([engines[number] for number in range(len(sources))])
    return [studies[number] for number in range(len(sources))], notes


def _recorded_engines(source: Any) -> Engines:
    """The engines of a store's cells; a table or a file of episodes does not say."""
    store = source if isinstance(source, Store) else None
    if isinstance(source, str | Path) and Path(source).is_dir():
        store = Store(store_of(Path(source)))
    found: Engines = {}
    for cell in store.comparable_cells() if store is not None else ():
        labels = cell.manifest.labels
        words = _engine_words(cell.manifest.content)
        found.setdefault((labels["game"], labels["mode"]), set()).add(words)
    return found


def _engine_words(content: Mapping[str, Any]) -> str:
    options = ", ".join(f"{name}={value}" for name, value in sorted(content["options"].items()))
    return f"{content['engine']} {content['engine_version']}" + (f" ({options})" if options else "")


def _refuse_other_engines(sides: Sequence[Engines]) -> None:
    """Refuse to compare returns in one engine with returns in another, or under other options."""
    first, last = sides[0], sides[-1]
    for place in [place for place in first if place in last]:
        if first[place] != last[place]:
            raise UsageError(
                f"{' '.join(place)} was played in {' and '.join(sorted(first[place]))} by one agent and in "
                f"{' and '.join(sorted(last[place]))} by the other: episodes of two engines are never compared."
            )


def find_policies(
    source: Any, games: Sequence[str], *, agent: str | None, budget: str | None
) -> list[tuple[str, Entrant]]:
    """The policies of a source with the game each plays: its checkpoint's own, or the one asked for."""
    named = list(source) if isinstance(source, list | tuple) else [source]
    found: list[tuple[str, Entrant]] = []
    for text in named:
        for policy in _expand(text):
            game = _trained_on(policy)
            if game is None:
                if isinstance(policy, str | Path) and ":" not in str(policy) and not Path(policy).exists():
                    raise UsageError(f"There is no store, file or run at {policy}. Check the path.")
                if len(games) != 1:
                    raise UsageError(f"{policy} does not say which game it plays: name its game.")
                # A factory has no seed of its own: its place among the policies of its source tells it from the others.
                found.append((games[0], Entrant(policy, agent, budget, len(found) + 1)))
            elif not games:
                game_of_file(game, file=policy)
                found.append((game, Entrant(policy, agent, budget)))
            else:
                # A checkpoint says which game it was trained on; which engine plays that now is asked for.
                named_games = [name for name in games if split_game(name)[1] == game]
                found += [(name, Entrant(policy, agent, budget)) for name in named_games]
    if not found:
        wanted = f" that plays {', '.join(games)}" if games else ""
        raise UsageError(f"'{source}' names no policy{wanted}: give run folders, checkpoints or a factory.")
    return found


def _study(
    campaign: Campaign,
    found: Mapping[str, GameCells],
    owners: Mapping[str, Sequence[int]],
    number: int,
    plan: Plan,
) -> StudyEpisodes:
    """What the policies of one source and the floor of their games have played."""
    cells = [
        cell
        for game, played in found.items()
        for group_number, cells in (
            (number, played.floor),
            *zip(owners[game], (each.cells for each in played.runs), strict=True),
        )
        if group_number == number
        for cell in cells
    ]
    return group(inputs_of_cells(campaign.stored_cells(cells)), plan)


def _expand(text: Any) -> list[Any]:
    """The paths that match a pattern; anything that is not a pattern is used literally."""
    if not isinstance(text, str) or not glob.has_magic(text):
        return [text]
    matching = map(Path, sorted(glob.glob(text)))
    paths = [path for path in matching if path.is_file() or (path / "checkpoint.safetensors").is_file()]
    if not paths:
        raise UsageError(f"Nothing that could be a policy matches '{text}'.")
    return paths


def _trained_on(policy: Any) -> str | None:
    """The game in a checkpoint's header; None for any other policy."""
    from gapfloor.policies.load import PolicySource, checkpoint_path

    if not isinstance(policy, str | Path) or not PolicySource.named(policy).is_checkpoint:
        return None
    try:
        from gapfloor.training.checkpoint_file import read_header
    except ImportError as error:
        raise MissingExtraError(
            f'Loading a checkpoint needs {error.name}: pip install "gapfloor[train]".'
        ) from None
    return str(read_header(checkpoint_path(policy))["game"])
