"""Compare two agents on the same schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.compared_agents import ComparisonRequest, join_agents, select_agent
from gapfloor.analysis.comparison import Comparison, analyse_comparison
from gapfloor.api.agent_sources import read_sources
from gapfloor.api.keyword_settings import names_of, read_settings, takes
from gapfloor.api.policy_campaign import CampaignSettings, play_policies
from gapfloor.engines.registry import split_game
from gapfloor.errors import UsageError
from gapfloor.machine import one_blas_thread
from gapfloor.plan.model import paper_plan
from gapfloor.play.campaign import Campaign
from gapfloor.play.candidate import Entrant
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules
from gapfloor.statistics.conventions import check_sizes


@one_blas_thread()
@takes(CampaignSettings)
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
    **settings: Any,
) -> Comparison:
    """Compare two agents on the same schedule: over runs, and paired by level.

    A source is a store, a .csv or .parquet file of episodes, the folders or checkpoints of runs (also as a pattern), or
    package.module:factory. Recorded episodes are used as they are; policies are played now, all on one schedule.

    Args:
        a: The source of the first agent.
        b: The source of the second agent; without it both agents are in `a`, and `agents` names them.
        agents: Names of the two agents, e.g. impala,fpn: which to select from recorded episodes, or what to call
            policies.
        budgets: One budget for both agents, or one per agent, e.g. 8M,25M (default: every budget that both have).
        games: The games to compare on (default: all that both have).
        rules: How actions are chosen (default: all rules that were recorded; sampled and greedy for policies).
        detect: A difference in return that would matter; the result then says how many runs or levels would find it
            (default: the observed difference).
        out: Folder for comparison.json (default: nothing is written).
        **settings: The fields of `CampaignSettings`.

    Returns:
        A row per game, budget, rule and quantity (train, test, gap); `plot()` draws the differences.

    Command line:
        gapfloor compare gapfloor-store --agents impala,fpn
        gapfloor compare 'runs/*impala*' 'runs/*fpn*' --draws 0,1,2
        gapfloor compare runs/heist-easy-impala-25M-s1 mypackage.agents:load --games heist --agents impala,mine

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
    check_sizes({"difference to detect": detect})
    if detect is not None and detect <= 0:
        raise UsageError(f"The difference to detect is {detect:g}: give a number above 0.")
    settled = read_settings(CampaignSettings, settings)
    budgets, games, rules = (names_of(given) for given in (budgets, games, rules))
    both_names = _two(agents)
    if b is None and both_names is None:
        raise UsageError("One source holds both agents: name the two agents, e.g. impala and fpn.")
    if both_names is not None and b is None and both_names[0] == both_names[1]:
        raise UsageError(f"The agent {both_names[0]} is named twice: name two agents.")
    named = tuple(split_game(game)[1] for game in games)
    asked = ComparisonRequest(both_names, tuple(budgets), named, tuple(rules))
    if len(asked.budgets) > 2:
        raise UsageError(f"{len(asked.budgets)} budgets are named: name one budget, or one per agent.")
    sources = [a] if b is None else [a, b]
    plan = paper_plan()
    with open_store(settled.store) as opened:

        def play(entrants: Mapping[str, Sequence[Entrant]], rule_names: Sequence[str]) -> Campaign:
            return play_policies(entrants, rules=parse_rules(rule_names), asked=settled, store=opened)

        studies, notes = read_sources(sources, asked, games=games, plan=plan, play=play)
    both = list(zip([*studies, studies[-1]], [*sources, sources[-1]], strict=True))[:2]
    first, second = (
        select_agent(study, asked, number, source=_short(source))
        for number, (study, source) in enumerate(both)
    )
    result = analyse_comparison(join_agents(first, second), plan=plan, detect=detect, notes=notes)
    if out is not None:
        from gapfloor.report.result_files import write_comparison

        write_comparison(result, Path(out))
    return result


def _two(agents: str | Sequence[str] | None) -> tuple[str, str] | None:
    names = names_of(agents or ())
    if not names:
        return None
    if len(names) != 2:
        raise UsageError(f"'{', '.join(names)}' does not name two agents: write e.g. impala,fpn.")
    return names[0], names[1]


def _short(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {type(source).__name__.lower()}"
