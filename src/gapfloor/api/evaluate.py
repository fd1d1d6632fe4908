"""Evaluate: policies under stated rules on both level sets, beside the floor on the same draws."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.actions.partition import Partition
from gapfloor.api.floor import missing_cells
from gapfloor.engines.protocol import EngineSpec, Option
from gapfloor.engines.registry import check_cloning
from gapfloor.errors import PolicyError, StoreError, UsageError
from gapfloor.machine import available_cores
from gapfloor.play.cell import CellSpec, Inference, Run
from gapfloor.play.census_advice import census_notes
from gapfloor.play.comparison import summarise_evaluation
from gapfloor.play.group import (
    Group,
    ProbeSettings,
    cell_labels,
    fingerprint_of,
    is_probed,
    try_policy,
)
from gapfloor.play.protocol import INFERENCE_BATCH, Protocol, make_protocol
from gapfloor.play.references import (
    best_constant_notes,
    check_playable,
    check_references,
    measure_references,
    plain_cells,
)
from gapfloor.play.results import Evaluation
from gapfloor.play.workers import Progress, Silence, play_groups
from gapfloor.policies.fingerprint import describe_backend, instruction_set
from gapfloor.policies.load import PolicySource
from gapfloor.policies.references import Uniform
from gapfloor.records.store import Store, StoredCell, conflicts
from gapfloor.rules.rule import Merged, Rule, parse_rules


@dataclass(frozen=True)
class Candidate:
    """A policy that has been loaded once: its content hash, labels and where workers load it from."""

    source: PolicySource
    run: Run
    fingerprint: str
    inference: Inference


def evaluate(
    policies: Any,
    *,
    game: str,
    rules: str | Sequence[str],
    agent: str | None = None,
    budget: str | None = None,
    seeds: Sequence[int] | None = None,
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    train: str = "0:200",
    test: str = "1000:1100",
    draws: Sequence[int] = (0, 1, 2),
    episodes: int = 128,
    slots: int = 16,
    burn_in: int = 1,
    design: str = "draws",
    repeats: int = 1,
    batch: int = INFERENCE_BATCH,
    probe: int = 0,
    references: Sequence[str] = (),
    device: str = "cpu",
    workers: int | None = None,
    store: str | Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Returns, gaps and calls of one agent's policies under `rules`, beside the floor on the same draws.

    `policies` is a checkpoint's path, `package.module:factory`, any callable from observations to logits, or a
    list of these: the runs of one agent. The floor is measured if the store does not hold it yet. `probe` states
    of each sampled cell are cloned to measure merged entropy (0: none). `references` names stricter references than
    the floor (`gapfloor.play.references`).
    """
    protocol = make_protocol(
        [game], mode=mode, options=options, train=train, test=test, draws=draws, episodes=episodes, slots=slots,
        burn_in=burn_in, design=design, repeats=repeats,
    )  # fmt: skip
    text = rules if isinstance(rules, str) else ",".join(rules)
    parse_rules(text, partition=Partition((0,)))  # refuse a wrong name before anything is loaded
    if "merged" in text.split(","):
        check_cloning(protocol.engines[0], what="The rule merged")
    if probe:
        check_cloning(protocol.engines[0], what="--probe")
    if batch < 1:
        raise UsageError(f"--batch {batch} is too small: use at least 1.")
    given = list(policies) if isinstance(policies, (list, tuple)) else [policies]
    if not given:
        raise UsageError("No policy is named: give a checkpoint or package.module:factory.")
    check_references(references)
    arguments = (
        protocol,
        given,
        text,
        agent,
        budget,
        seeds,
        batch,
        probe,
        references,
        device,
        workers,
        progress,
    )
    if store is None:
        with tempfile.TemporaryDirectory() as folder:
            return _evaluate(Store(folder), *arguments)
    return _evaluate(Store(store), *arguments)


def _evaluate(
    store: Store,
    protocol: Protocol,
    given: Sequence[Any],
    rules_text: str,
    agent: str | None,
    budget: str | None,
    seeds: Sequence[int] | None,
    batch: int,
    probe: int,
    references: Sequence[str],
    device: str,
    workers: int | None,
    progress: Progress | None,
) -> Evaluation:
    engine = protocol.engines[0]
    candidates = load_candidates(given, engine, agent, budget, seeds, batch, device)
    check_playable(references, protocol, device=device)
    store.prepare()
    partition = _classes(store, engine) if probe or "merged" in rules_text.split(",") else None
    rules = parse_rules(rules_text, partition=partition)
    floors = plain_cells(protocol, engine, Uniform())
    cells = {id(each): policy_cells(protocol, engine, each, rules) for each in candidates}
    wanted = [cell for each in candidates for cell in cells[id(each)]]
    state = missing_cells(store, [*floors, *wanted])
    refuse_conflicts(state.stored, wanted)
    missing = {cell.key for cell in state.missing} | without_probe(state.stored, wanted, probe)
    settings = ProbeSettings(states=probe, classes=partition.labels if partition else ()) if probe else None
    groups = [Group(engine, tuple(cell for cell in floors if cell.key in missing))]
    groups += [
        Group(engine, tuple(c for c in cells[id(each)] if c.key in missing), each.source, settings)
        for each in candidates
    ]
    play_groups(groups, store=store, workers=workers or available_cores(), progress=progress or Silence())

    def play(more: Sequence[Group]) -> None:
        state = missing_cells(store, [cell for group in more for cell in group.cells])
        play_groups(
            state.narrow(more),
            store=store,
            workers=workers or available_cores(),
            progress=progress or Silence(),
        )

    stricter = measure_references(
        references, protocol=protocol, store=store, play=play, batch=batch, device=device
    )
    redone = [f"The cell {name} was cut or altered and has been measured again." for name in state.damaged]
    notes = [*redone, *best_constant_notes(stricter), *census_notes(protocol, rules)]
    return summarise_evaluation(store, floors=floors, cells=wanted, references=stricter, notes=notes)


def load_candidates(
    given: Sequence[Any],
    engine: EngineSpec,
    agent: str | None,
    budget: str | None,
    seeds: Sequence[int] | None,
    batch: int,
    device: str,
) -> list[Candidate]:
    """Load each policy once: its content hash, and the labels of its run (given, or its checkpoint's own)."""
    if seeds is not None and len(seeds) != len(given):
        raise UsageError(
            f"--seeds names {len(seeds)} seeds for {len(given)} policies: give one seed a policy."
        )
    candidates: list[Candidate] = []
    for number, each in enumerate(given):
        source = PolicySource(str(each), device) if isinstance(each, (str, Path)) else _here(each, number)
        policy = source.load()
        header = getattr(policy, "header", None) or {}
        _check_header(source, header, engine)
        content = fingerprint_of(policy, name=source.name, engine=engine, batch=batch)
        try_policy(policy, name=source.name, engine=engine, batch=batch)
        backend, _ = describe_backend(policy)
        run = Run(
            agent=agent if agent is not None else _agent_name(header),
            seed=seeds[number] if seeds is not None else header.get("seed", number + 1),
            budget=budget if budget is not None else str(header.get("budget", "")),
        )
        candidate = Candidate(source, run, content, Inference(batch, backend, instruction_set()))
        for other in candidates:
            _refuse_copy(candidate, other)
        candidates.append(candidate)
    return candidates


def _agent_name(header: Mapping[str, Any]) -> str:
    name = str(header.get("encoder", "policy"))
    return f"{name}_blind" if header.get("blind") else name


def _here(policy: Any, number: int) -> PolicySource:
    name = getattr(policy, "name", None) or getattr(policy, "__name__", None) or f"policy {number + 1}"
    return PolicySource(str(name), given=policy)


def _check_header(source: PolicySource, header: Mapping[str, Any], engine: EngineSpec) -> None:
    trained = header.get("game")
    if trained is not None and trained != engine.game:
        raise PolicyError(
            f"{source.name} was trained on {trained}, not on {engine.game}: name --game {trained}."
        )


def _refuse_copy(candidate: Candidate, other: Candidate) -> None:
    if candidate.fingerprint == other.fingerprint:
        raise UsageError(
            f"{candidate.source.name} and {other.source.name} have exactly the same content: copies of one "
            "checkpoint are one run, so name only one of them."
        )
    if candidate.run == other.run:
        raise UsageError(
            f"{candidate.source.name} and {other.source.name} are both {candidate.run.name}: "
            "tell them apart with --seeds."
        )


def policy_cells(
    protocol: Protocol, engine: EngineSpec, candidate: Candidate, rules: Sequence[Rule]
) -> list[CellSpec]:
    """The cells of one run under `rules`."""
    return [
        CellSpec(
            engine=engine,
            run=candidate.run,
            policy=candidate.fingerprint,
            rule=str(rule),
            level_set=role,
            levels=levels,
            draw=draw,
            design=protocol.design,
            inference=candidate.inference,
            classes=rule.partition.labels if isinstance(rule, Merged) else (),
        )
        for rule in rules
        for role, levels in protocol.level_sets
        for draw in protocol.draws
    ]


def _classes(store: Store, engine: EngineSpec) -> Partition:
    """The game's classes: those of the store, or measured now and kept there."""
    from gapfloor.calibration import classes_for

    partition: Partition = classes_for(store.root, engine)
    return partition


def refuse_conflicts(stored: Sequence[StoredCell], wanted: Sequence[CellSpec]) -> None:
    """Refuse one content under two names, and one name made under two specifications."""
    for cell in {(cell.policy, cell.run): cell for cell in wanted}.values():
        reason = conflicts(stored, policy=cell.policy, labels=cell_labels(cell))
        if reason:
            raise StoreError(reason)
    by_labels = {_measured(each.manifest.labels, each.manifest.content): each for each in stored}
    for cell in wanted:
        other = by_labels.get(_measured(cell_labels(cell), cell.content()))
        if other is not None and other.manifest.key != cell.key:
            theirs, mine = other.manifest.content, cell.content()
            changed = [
                f"{name}: {theirs.get(name)} there, {mine[name]} here"
                for name in mine
                if theirs.get(name) != mine[name]
            ]
            raise StoreError(
                f"The store holds {cell.file_name.rsplit('-', 1)[0]} made under another specification "
                f"({'; '.join(changed)}): use another --store."
            )


def _measured(labels: Mapping[str, Any], content: Mapping[str, Any]) -> tuple[Any, ...]:
    design = tuple(content.get(name) for name in ("slots", "burn_in", "episodes", "levels", "repeats"))
    options = tuple(sorted(content["options"].items()))
    return (*(labels[name] for name in sorted(labels)), design, options)


def without_probe(stored: Sequence[StoredCell], wanted: Sequence[CellSpec], probe: int) -> set[str]:
    """Sampled cells that were played without the probe asked for now: they are played again, same episodes."""
    lacking = {each.manifest.key for each in stored if not is_probed(each.manifest.record, probe)}
    stochastic = (cell for cell in wanted if cell.rule not in ("greedy", "merged"))
    return {cell.key for cell in stochastic if cell.key in lacking}
