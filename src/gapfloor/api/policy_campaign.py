"""Policies of one or more games played under stated rules, next to references on the same schedule.

This is what evaluate, sweep, compare, training curves and the evaluation tasks of a study have in common: policies are
loaded, action classes are found where a rule or the probe reads them, and one campaign is planned and played.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from gapfloor.actions.partition import Partition
from gapfloor.api.progress import showing
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.registry import check_cloning
from gapfloor.errors import UsageError
from gapfloor.machine import check_workers
from gapfloor.play.campaign import Campaign, Request, backend_for, plan_campaign
from gapfloor.play.candidate import Candidate, Entrant, load_candidates
from gapfloor.play.observers import CellProbe
from gapfloor.play.protocol import INFERENCE_BATCH, Protocol
from gapfloor.play.references import UNIFORM, check_references
from gapfloor.play.workers import CellWorkers, Progress, started_workers
from gapfloor.records.store import Store
from gapfloor.rules import Rule


def play_policies(
    entrants: Mapping[str, Sequence[Entrant]],
    *,
    rules: Sequence[Rule],
    protocol: Protocol,
    store: Store,
    references: Sequence[str] = (UNIFORM,),
    probe: int = 0,
    batch: int = INFERENCE_BATCH,
    device: str = "cpu",
    backend: str | None = None,
    workers: int | None = None,
    progress: Progress | bool | None = False,
    is_prepared: bool = False,
) -> Campaign:
    """Play the policies of each game; returns the campaign, whose cells are then all in the store.

    Args:
        entrants: game -> its policies. `protocol` must have been made of the same games.
        rules: how actions are chosen.
        protocol: engines, level sets, draws and design.
        store: where cells are kept; what it holds is not played again.
        references: names of references, played on the same schedule.
        probe: number of visited states per sampled cell to clone for merged entropy; 0: none.
        batch: inference batch size; part of the cell key.
        device: where networks run.
        backend: the library that computes our networks' logits (`policies.backends`); None: the one that filled the
            store, or the usual one.
        workers: number of processes; None: one per core.
        progress: what hears of episodes and cells; None: a bar, False: nothing.
        is_prepared: whether the store belongs to a running study.
    """
    check_workers(workers)
    if batch < 1:
        raise UsageError(f"batch is {batch}: use at least 1.")
    if len(protocol.engines) != len(entrants):
        raise UsageError(f"{', '.join(entrants)} is a group of games, and a policy plays one: name that one.")
    check_references(references)
    chosen = backend_for(store, backend)
    for engine in protocol.engines:
        _check_cloning(engine, rules, probe)
    with _workers_started(entrants, rules, protocol, store, workers):
        requests = [
            Request(
                engine=engine,
                protocol=protocol,
                candidates=_load(mine, engine, batch=batch, device=device, asked=backend, backend=chosen),
                rules=tuple(rules),
                references=tuple(references),
                probe=_probe(probe),
                classes=functools.partial(_find_classes, store),
                batch=batch,
                device=device,
                backend=chosen,
            )
            for engine, mine in zip(protocol.engines, entrants.values(), strict=True)
        ]
        campaign = plan_campaign(requests, store, is_prepared=is_prepared)
    with showing(progress) as shown:
        campaign.play(CellWorkers(workers, shown))
    return campaign


def _workers_started(
    entrants: Mapping[str, Sequence[Entrant]],
    rules: Sequence[Rule],
    protocol: Protocol,
    store: Store,
    workers: int | None,
) -> AbstractContextManager[None]:
    """Worker processes that start while policies are loaded here, unless there may be nothing left for them to play."""
    policies = [entrant.policy for mine in entrants.values() for entrant in mine]
    is_begun = next(store.cells_folder.glob("*.json"), None) is not None
    if is_begun or not all(isinstance(policy, (str, Path)) for policy in policies):
        return nullcontext()
    episodes = protocol.n_episodes * len(rules) * len(policies)
    return started_workers(protocol.engines[0], episodes=episodes, count=workers)


def _load(
    entrants: Sequence[Entrant],
    engine: EngineSpec,
    *,
    batch: int,
    device: str,
    asked: str | None,
    backend: str | None,
) -> tuple[Candidate, ...]:
    candidates = load_candidates(entrants, engine, batch=batch, device=device, backend=backend)
    for candidate in candidates:
        if asked and not candidate.source.is_own_network and candidate.tried.inference.backend != asked:
            raise UsageError(
                f"The backend {asked} is for gapfloor's own checkpoints, and {candidate.source.name} is not one: leave "
                "the backend out."
            )
    return candidates


def _check_cloning(engine: EngineSpec, rules: Sequence[Rule], probe: int) -> None:
    for rule in rules:
        if rule.needs_classes:
            check_cloning(engine, what=f"The rule {rule}")
    if probe:
        check_cloning(engine, what="The probe of merged entropy")


def _probe(states: int) -> CellProbe | None:
    if not states:
        return None
    from gapfloor.calibration.probe import ProbeSettings

    return ProbeSettings(states=states)


def _find_classes(store: Store, engine: EngineSpec) -> Partition:
    """The game's action classes: those of the store, or measured now and kept there."""
    from gapfloor.calibration.class_measurement import classes_for

    return classes_for(store.root, engine)
