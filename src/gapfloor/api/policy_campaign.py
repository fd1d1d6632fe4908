"""References and policies of one or more games, played on one schedule under stated rules.

This is what floors, evaluations, sweeps, training curves and the tasks of a study have in common: policies are loaded,
action classes are found where a rule or the probe reads them, and one campaign is planned and played.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gapfloor.api.progress import showing
from gapfloor.calibration.probe import ProbeSettings
from gapfloor.engines.registry import check_cloning, check_seed
from gapfloor.errors import UsageError
from gapfloor.machine import check_workers
from gapfloor.play.campaign import Campaign, backend_for, plan_campaign, recorded_backends
from gapfloor.play.candidate import Entrant, load_candidates
from gapfloor.play.protocol import PlaySettings, Protocol, make_protocol
from gapfloor.play.references import UNIFORM, check_references
from gapfloor.play.workers import CellWorkers, Progress, started_workers
from gapfloor.policies.load import PolicySource
from gapfloor.records.store import Store
from gapfloor.rules.rule import Rule


@dataclass(frozen=True, kw_only=True)
class CampaignSettings(PlaySettings):
    """The settings that every function has that plays: what is played, who plays, and where the cells are kept."""

    workers: int | None = None
    """Number of worker processes (default: one per core)."""
    store: str | Path | None = None
    """Folder that keeps the cells; what it holds is not played again."""
    progress: Progress | bool | None = None
    """What hears of episodes and cells. None: a line on a terminal or in a notebook; False: nothing."""


def play_policies(
    entrants: Mapping[str, Sequence[Entrant]],
    *,
    rules: Sequence[Rule] = (),
    asked: CampaignSettings,
    store: Store,
    protocol: Protocol | None = None,
    references: Sequence[str] = (UNIFORM,),
    probe: int = 0,
    is_prepared: bool = False,
) -> Campaign:
    """Play the references and policies of each game; returns the campaign, whose cells are then all in the store.

    Args:
        entrants: game -> its policies, none for a floor.
        rules: how the policies' actions are chosen.
        asked: levels, design, inference, workers and progress.
        store: where cells are kept, already open; what it holds is not played again.
        protocol: the protocol of these games, where only a part of `asked` is played.
        references: names of references, played on the same schedule.
        probe: number of visited states per sampled cell to clone for merged entropy; 0: none.
        is_prepared: whether the store belongs to a running study, which checked its engines.
    """
    check_workers(asked.workers)
    if asked.batch < 1:
        raise UsageError(f"batch is {asked.batch}: use at least 1.")
    if protocol is None:
        protocol = make_protocol(list(entrants), asked)
    if len(protocol.engines) != len(entrants):
        raise UsageError(f"{', '.join(entrants)} is a group of games, and a policy plays one: name that one.")
    check_references(references)
    store.refuse_file()
    stored = store.cells()
    chosen: Any = backend_for(stored, asked.backend)
    inference = replace(asked, backend=chosen)
    recorded = {} if asked.backend else recorded_backends(stored)
    clones = [f"The rule {rule}" for rule in rules if rule.needs_classes]
    clones += ["The probe of merged entropy"] if probe else []
    for engine in protocol.engines:
        if not is_prepared:
            check_seed(engine)
        for what in clones:
            check_cloning(engine, what=what)
    acts = not any(rule.reads_distribution for rule in rules)
    loaded = []
    # Worker processes start while policies are loaded here, unless there may be nothing left for them to play.
    policies = [entrant.policy for mine in entrants.values() for entrant in mine]
    starting: AbstractContextManager[bool] = nullcontext(False)
    if policies and not stored and all(isinstance(each, (str, Path, PolicySource)) for each in policies):
        episodes = protocol.n_episodes * len(rules) * len(policies)
        starting = started_workers(protocol.engines[0], episodes=episodes, count=asked.workers)
    with starting as are_started:
        for engine, mine in zip(protocol.engines, entrants.values(), strict=True):
            candidates = load_candidates(mine, engine, inference, recorded=recorded, acts=acts)
            for each in candidates:
                is_other = asked.backend is not None and each.inference.backend != asked.backend
                if is_other and not each.source.is_checkpoint:
                    raise UsageError(
                        f"The backend {asked.backend} cannot compute {each.source.name}: leave the backend out."
                    )
            loaded.append(candidates)
        campaign = plan_campaign(
            protocol,
            store,
            candidates=loaded,
            rules=rules,
            references=references,
            probe=ProbeSettings(states=probe) if probe else None,
            inference=inference,
            stored=stored,
            is_prepared=is_prepared,
        )
    with showing(asked.progress) as shown:
        campaign.play(CellWorkers(asked.workers, shown, are_started))
    return campaign
