"""Compare two agents on the same schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from gapfloor.analysis.compared_agents import ComparisonRequest, join_agents, select_agent
from gapfloor.analysis.comparison import Comparison, analyse_comparison
from gapfloor.api.agent_sources import read_sources
from gapfloor.api.policy_campaign import play_policies
from gapfloor.engines.registry import split_game
from gapfloor.errors import UsageError
from gapfloor.machine import one_blas_thread
from gapfloor.plan.model import paper_plan
from gapfloor.play.campaign import Campaign
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import INFERENCE_BATCH, ProtocolSettings, make_protocol
from gapfloor.play.workers import Progress
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules
from gapfloor.statistics.conventions import check_sizes


@one_blas_thread()
def compare(
    a: Any,
    b: Any = None,
    *,
    agents: tuple[str, str] | None = None,
    budgets: str | Sequence[str] = (),
    games: str | Sequence[str] = (),
    rules: str | Sequence[str] = (),
    detect: float | None = None,
    batch: int = INFERENCE_BATCH,
    device: str = "cpu",
    backend: str | None = None,
    workers: int | None = None,
    progress: Progress | bool | None = None,
    store: str | Path | None = None,
    **protocol: Unpack[ProtocolSettings],
) -> Comparison:
    """Agent a minus agent b on the same schedule: over runs, and paired by level.

    Recorded episodes are used as they are; policies are played now, all on one schedule.

    Args:
        a: A store, an episode file, folders of runs or checkpoints (a pattern or a list), or
            `package.module:factory`.
        b: The same for the other agent; None: both agents are in `a`, and `agents` names them.
        agents: Names of the two: which to select from recorded episodes, or what to call policies.
        budgets: One budget for both, or one per agent. Empty: every budget that both have.
        games: Games, as a list or one name; empty: all that both have.
        rules: Rules, as a list or separated by commas; empty: all that were recorded, and sampled and greedy for
            policies.
        detect: The difference for which needed runs and levels are computed; None: the observed ones.
        batch: Inference batch size. Changing it changes the cell key.
        device: Where networks run: cpu or cuda.
        backend: The library that computes the logits of gapfloor checkpoints: onnxruntime or torch; None: the one that
            filled the store, or the faster one.
        workers: Number of worker processes; None: one per core.
        progress: What hears of episodes and cells. None: a bar on a terminal, a line in a notebook; False: nothing.
        store: Where policies' cells are kept; None: they are forgotten.
        protocol: The settings of `evaluate`: `train`, `test`, `draws`, `episodes`, `mode`, `options`, `slots`,
            `burn_in`, `design`, `repeats`.

    Returns:
        A row per game, budget, rule and quantity (train, test, gap); `plot()` draws the differences.

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
    budgets, games, rules = (_names(given) for given in (budgets, games, rules))
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


def _names(given: str | Sequence[str]) -> tuple[str, ...]:
    """Names, or their text with commas."""
    return tuple(
        part.strip() for part in (given.split(",") if isinstance(given, str) else given) if part.strip()
    )


def _short(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {type(source).__name__.lower()}"
