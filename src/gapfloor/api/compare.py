"""Compare two agents on the same schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gapfloor.analysis.compared_agents import ComparisonRequest, join_agents, select_agent
from gapfloor.analysis.comparison import Comparison, analyse_comparison
from gapfloor.api.agent_sources import read_sources
from gapfloor.api.policy_campaign import play_policies
from gapfloor.engines.registry import split_game
from gapfloor.errors import UsageError
from gapfloor.plan.model import paper_plan
from gapfloor.play.campaign import Campaign
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import INFERENCE_BATCH, make_protocol
from gapfloor.play.workers import Progress
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules


def compare(
    a: Any,
    b: Any = None,
    *,
    agents: tuple[str, str] | None = None,
    budgets: Sequence[str] = (),
    games: Sequence[str] = (),
    rules: Sequence[str] = (),
    detect: float | None = None,
    batch: int = INFERENCE_BATCH,
    device: str = "cpu",
    backend: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
    store: str | Path | None = None,
    **protocol: Any,
) -> Comparison:
    """Agent a minus agent b on the same schedule.

    Args:
        a: a store, an episode file, runs' folders or checkpoints (a pattern or a list), or `package.module:factory`.
        b: the same for the other agent; None: both agents are in `a`, and `agents` names them.
        agents: names of the two: which to select from recorded episodes, or what to call policies.
        budgets: one budget for both, or one per agent. Empty: every budget that both have.
        games: empty for all.
        rules: empty for all that were recorded; policies are then played under sampled and greedy.
        detect: the difference for which needed runs and levels are computed; None: the observed ones.
        batch: inference batch size.
        device: where networks run.
        backend: the library that computes our networks' logits; None: the one that filled the store, or the usual one.
        workers: number of processes.
        progress: what hears of episodes and cells.
        store: where policies' cells are kept; None: they are forgotten.
        protocol: the settings that `evaluate` takes.
    """
    if b is None and agents is None:
        raise UsageError("One source holds both agents: name them, e.g. --agents impala,fpn.")
    if agents is not None and b is None and agents[0] == agents[1]:
        raise UsageError(f"The agent {agents[0]} is named twice: name two agents.")
    named = tuple(split_game(game)[1] for game in games)
    asked = ComparisonRequest(agents, tuple(budgets), named, tuple(rules))
    if len(asked.budgets) > 2:
        raise UsageError("--budgets takes one budget, or one per agent.")
    sources = [a] if b is None else [a, b]
    plan = paper_plan()
    with open_store(store) as opened:

        def play(entrants: Mapping[str, Sequence[Entrant]], rule_names: Sequence[str]) -> Campaign:
            return play_policies(
                entrants,
                rules=parse_rules(rule_names),
                protocol=make_protocol(list(entrants), **protocol),
                store=opened,
                batch=batch,
                device=device,
                backend=backend,
                workers=workers,
                progress=progress,
            )

        studies, notes = read_sources(sources, asked, games=games, plan=plan, play=play)
    both = list(zip([*studies, studies[-1]], [*sources, sources[-1]], strict=True))[:2]
    first, second = (
        select_agent(study, asked, number, source=_short(source))
        for number, (study, source) in enumerate(both)
    )
    return analyse_comparison(join_agents(first, second), plan=plan, detect=detect, notes=notes)


def _short(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {type(source).__name__.lower()}"
