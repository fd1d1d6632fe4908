"""Compare two agents whose episodes were recorded on the same schedule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from gapfloor.analysis.comparison import Comparison, analyse_comparison, join_agents, select_agent
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.grouping import group
from gapfloor.analysis.inputs import Inputs
from gapfloor.api.analyse import arrow_table
from gapfloor.api.keyword_settings import names_of
from gapfloor.api.plot import with_files
from gapfloor.engines.registry import split_game
from gapfloor.errors import UsageError
from gapfloor.machine import one_blas_thread
from gapfloor.plan.model import Plan
from gapfloor.records.atomic import check_folder
from gapfloor.records.dataset import store_of
from gapfloor.records.store import Store
from gapfloor.statistics.conventions import check_sizes


@one_blas_thread()
def compare(
    a: Any,
    b: Any = None,
    *,
    agents: str | Sequence[str] = (),
    budgets: str | Sequence[str] = (),
    games: str | Sequence[str] = (),
    rules: str | Sequence[str] = (),
    detect: float | None = None,
    out: str | Path | None = None,
) -> Comparison:
    """Compare two agents on the same schedule: over runs, and paired by level.

    A source is a store or a table of episodes, in any form that `analyse` reads. To compare policies, play them into
    one store with `evaluate`, which plays all of them on one schedule.

    Args:
        a: The source of the first agent.
        b: The source of the second agent; without it both agents are in `a`, and `agents` names them.
        agents: Names of the two agents, e.g. impala,fpn.
        budgets: One budget for both agents, or one per agent, e.g. 8M,25M (default: every budget that both have).
        games: The games to compare on (default: all that both have).
        rules: How actions are chosen (default: all rules that were recorded).
        detect: A difference in return that would matter; the result then says how many runs would find it (default:
            the observed difference).
        out: Folder for comparison.json (default: nothing is written).

    Returns:
        A row per game, budget, rule and quantity (train, test, gap); `plot()` draws the differences.

    Command line:
        gapfloor compare gapfloor-store --agents impala,fpn
        gapfloor compare gapfloor-store other-store --agents impala,mine --games heist

    Examples:
        Two agents with three runs each, from a table of episodes:

        >>> import gapfloor
        >>> import pyarrow as pa
        >>> rows = [
        ...     {
        ...         "game": "heist", "agent": agent, "seed": seed, "rule": "sampled", "level_set": "test",
        ...         "episode_return": mean + 0.1 * seed + 0.2 * episode,
        ...     }
        ...     for agent, mean in (("ppo", 6.0), ("dqn", 3.0))
        ...     for seed in range(3)
        ...     for episode in range(8)
        ... ]
        >>> found = gapfloor.compare(pa.Table.from_pylist(rows), agents=("ppo", "dqn"))
        >>> row = found.row("heist", "sampled", "test")
        >>> round(row.difference.value, 2), row.decision.call
        (3.0, 'first higher')
    """
    check_folder(out)
    check_sizes({"difference to detect": detect})
    if detect is not None and detect <= 0:
        raise UsageError(f"The difference to detect is {detect:g}: give a number above 0.")
    both = names_of(agents or ())
    if len(both) not in (0, 2):
        raise UsageError(f"'{', '.join(both)}' does not name two agents: write e.g. impala,fpn.")
    if b is None and not both:
        raise UsageError("One source holds both agents: name the two agents, e.g. impala and fpn.")
    if b is None and both[0] == both[1]:
        raise UsageError(f"The agent {both[0]} is named twice: name two agents.")
    labels: list[str | None] = [*names_of(budgets)] or [None]
    if len(labels) > 2:
        raise UsageError(f"{len(labels)} budgets are named: name one budget, or one per agent.")
    named = tuple(split_game(game)[1] for game in names_of(games))
    asked: dict[str, Sequence[str]] = {"games": named, "rules": names_of(rules)}
    first_agent, second_agent = both or (None, None)
    plan = Plan.paper()
    one = group(_episodes(a), plan)
    other = one if b is None else group(_episodes(b), plan)
    engines = [_engines(each) for each in (a, b)] if b is not None else []
    for place in engines[0] if engines else ():
        played = [" and ".join(sorted(each.get(place, ()))) for each in engines]
        if all(played) and played[0] != played[1]:
            raise UsageError(
                f"{' '.join(place)} was played in {played[0]} by one agent and in {played[1]} by the other: episodes "
                "of two engines are never compared."
            )
    first = select_agent(one, first_agent, source=_short(a), budget=labels[0], **asked)
    source = _short(a if b is None else b)
    second = select_agent(other, second_agent, source=source, budget=labels[-1], **asked)
    return with_files(analyse_comparison(join_agents(first, second), plan=plan, detect=detect), out)


def _short(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {type(source).__name__.lower()}"


def _episodes(source: Any) -> Inputs:
    """The recorded episodes of a source; a policy is refused with the command that plays it."""
    found = arrow_table(source)
    is_policy = not isinstance(found, str | Path | pa.Table | Store | Inputs)
    if isinstance(found, str | Path):
        has_sign = any(sign in str(found) for sign in ":*")
        is_policy = (Path(found) / "checkpoint.safetensors").is_file() or (
            has_sign and not Path(found).exists()
        )
    if is_policy:
        raise UsageError(
            f"{_short(source)} is not a store or a table of episodes. To compare policies, play each into one store "
            "(gapfloor evaluate POLICY --game GAME --rules sampled,greedy --store STORE) and compare the two agents "
            "there."
        )
    return read_inputs(found)


def _engines(source: Any) -> dict[tuple[str, str], set[str]]:
    """Game and mode -> the engines of a store's cells; a table or a file of episodes does not say."""
    store = source if isinstance(source, Store) else None
    if isinstance(source, str | Path) and (Path(source) / "cells").is_dir():
        store = Store(store_of(Path(source)))
    found: dict[tuple[str, str], set[str]] = {}
    for cell in store.comparable_cells() if store is not None else ():
        content, place = cell.manifest.content, (cell.manifest.labels["game"], cell.manifest.labels["mode"])
        options = ", ".join(f"{name}={value}" for name, value in sorted(content["options"].items()))
        words = f"{content['engine']} {content['engine_version']}" + (f" ({options})" if options else "")
        found.setdefault(place, set()).add(words)
    return found
