"""A policy that is about to be played: loaded once, tried once, and identified by its content.

One small engine is opened per policy: it tells whether the policy can read this game, and what it does where the policy
brings no hash of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.actions.spaces import ActionSpace, Box
from gapfloor.engines.procgen import EXPLORATION_LEVELS
from gapfloor.engines.protocol import Engine, EngineSpec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import PolicyError, UsageError
from gapfloor.levels import LevelSet
from gapfloor.machine import one_thread
from gapfloor.play.arithmetic import arithmetic_of
from gapfloor.play.cell import CellSpec, Inference, Run
from gapfloor.play.protocol import Protocol
from gapfloor.policies.fingerprint import backend_of, fingerprint
from gapfloor.policies.load import PolicySource
from gapfloor.policies.protocol import LogitsReader
from gapfloor.records.run_identity import agent_of_header
from gapfloor.rules import Rule

#: Where the observations come from that identify a policy which brings no hash.
FINGERPRINT_LEVELS = LevelSet(0, 200)


@dataclass(frozen=True)
class Entrant:
    """A policy as the user names it, and the labels of its run; None takes the checkpoint's own."""

    policy: Any
    agent: str | None = None
    budget: str | None = None
    seed: int | None = None
    number: int = 1
    """Its place among the policies given: the seed of a policy that names none."""


@dataclass(frozen=True)
class Candidate:
    """A policy that has been loaded once: its content hash, labels and where workers load it from."""

    source: PolicySource
    run: Run
    fingerprint: str
    inference: Inference
    is_deterministic: bool = False
    """Whether the policy has no distribution, so that a rule that draws from it would play as greedy does."""
    greedy_action: str = "mode"
    """What the greedy rule plays."""

    def own_rules(self, rules: Sequence[Rule]) -> list[Rule]:
        """Those of `rules` that differ for this policy: one without a distribution has one rule."""
        if not self.is_deterministic:
            return list(rules)
        left = [rule for rule in rules if not rule.draws_from_policy]
        if not left:
            raise UsageError(
                f"{self.source.name} returns one action and no distribution, so it has one rule: use greedy, not "
                f"{', '.join(map(str, rules))}."
            )
        return left

    def notes(self, rules: Sequence[Rule]) -> list[str]:
        """What a reader should know about how this policy's actions are chosen."""
        dropped = [str(rule) for rule in rules if rule not in self.own_rules(rules)]
        if dropped:
            return [
                f"{self.run.name} returns one action and no distribution, so it has one rule: {', '.join(dropped)} "
                "would play the same as greedy and was not played."
            ]
        if self.greedy_action != "mode" and any(str(rule) == "greedy" for rule in rules):
            return [
                f"Under the rule greedy, {self.run.name} plays {self.greedy_action}, which is not the mode."
            ]
        return []

    def cells(self, protocol: Protocol, engine: EngineSpec, rules: Sequence[Rule]) -> list[CellSpec]:
        """The cells of this run under `rules`."""
        return [
            cell
            for rule in self.own_rules(rules)
            for cell in protocol.cells(
                engine,
                self.run,
                policy=self.fingerprint,
                rule=str(rule),
                inference=self.inference,
                classes=rule.classes,
            )
        ]


def load_candidates(
    entrants: Sequence[Entrant],
    engine: EngineSpec,
    *,
    batch: int,
    device: str,
    backend: str | None = None,
) -> tuple[Candidate, ...]:
    """Load each policy once; copies of one policy and two runs of one name are refused."""
    found: list[Candidate] = []
    for entrant in entrants:
        source = policy_source(entrant.policy, device=device, backend=backend, number=entrant.number)
        candidate = _load(source, entrant, engine, batch=batch)
        for other in found:
            _refuse_copy(candidate, other)
        found.append(candidate)
    return tuple(found)


def _load(source: PolicySource, entrant: Entrant, engine: EngineSpec, *, batch: int) -> Candidate:
    policy = source.load()
    header = policy_header(policy)
    check_game(source.name, header, engine)
    tried = try_policy(policy, name=source.name, engine=engine, batch=batch)
    run = Run(
        agent=entrant.agent if entrant.agent is not None else agent_of_header(header),
        seed=entrant.seed if entrant.seed is not None else header.get("seed", entrant.number),
        budget=entrant.budget if entrant.budget is not None else str(header.get("budget", "")),
    )
    return Candidate(
        source, run, tried.fingerprint, tried.inference, tried.is_deterministic, tried.greedy_action
    )


def policy_source(policy: Any, *, device: str, backend: str | None = None, number: int = 1) -> PolicySource:
    """Where a policy comes from: a name, or an object that is called by its own name or by its number."""
    if isinstance(policy, (str, Path)):
        return PolicySource.named(policy, device=device, backend=backend).fetched()
    name = getattr(policy, "name", None) or getattr(policy, "__name__", None) or f"policy {number}"
    return PolicySource(str(name), given=policy)


def policy_header(policy: Any) -> Mapping[str, Any]:
    """What a checkpoint says about its training; empty for any other policy."""
    return getattr(policy, "header", None) or {}


def check_game(name: str, header: Mapping[str, Any], engine: EngineSpec) -> None:
    """Refuse a policy that was trained on another game."""
    trained = header.get("game", engine.game)
    if trained != engine.game:
        raise PolicyError(f"{name} was trained on {trained}, not on {engine.game}: play it on {trained}.")


def check_actions(policy: Any, engine: Engine, *, name: str) -> None:
    """Refuse a policy that was trained in another action space, or under masks that are not read here."""
    space, mine = engine.action_space, getattr(policy, "acts_in", None)
    if mine is not None and not _same_actions(mine, space):
        raise PolicyError(
            f"{name} acts in {mine}, but the actions of this environment are {space}: play it where it was trained, "
            "with the same wrappers (--option wrapper=package.module:Class)."
        )
    if getattr(policy, "reads_masks", False) and engine.masks is None:
        raise PolicyError(
            f"{name} was trained to choose among legal actions only: add --option masks=true, so that the "
            "environment's masks are read."
        )


def _same_actions(mine: ActionSpace, space: ActionSpace) -> bool:
    if not (isinstance(mine, Box) and isinstance(space, Box)):
        return mine == space
    # A network that was trained without bounds has none to compare.
    return mine.width == space.width and all(
        not np.isfinite(own).any() or np.allclose(own, other)
        for own, other in zip(mine.bounds, space.bounds, strict=True)
    )


@dataclass(frozen=True)
class TriedPolicy:
    """What one batch of a policy's logits on the first observations of a game tells."""

    fingerprint: str
    inference: Inference
    is_deterministic: bool = False
    """Whether it returns one action instead of a distribution."""
    greedy_action: str = "mode"
    """What its greedy rule plays."""


def try_policy(policy: Any, *, name: str, engine: EngineSpec, batch: int) -> TriedPolicy:
    """The policy's content hash and how its logits are computed here; one that cannot read this game is refused."""
    small = _small_engine(engine, batch)
    try:
        observations, _, first = small.observe()
        check_actions(policy, small, name=name)
        reader = LogitsReader(policy, name=name, n_slots=batch, space=small.action_space)
        with one_thread():
            arithmetic = arithmetic_of(reader.read(observations, first))
        content = fingerprint(policy, name=name, engine=small)
    finally:
        small.close()
    backend = backend_of(policy)
    inference = Inference(batch, backend.name, backend.version, backend.device, arithmetic)
    if reader.distribution is None:
        return TriedPolicy(content, inference)
    return TriedPolicy(
        content, inference, reader.distribution.is_deterministic, reader.distribution.mode_name
    )


def action_space_of(engine: EngineSpec) -> ActionSpace:
    """The actions of an engine."""
    small = _small_engine(engine, 1)
    try:
        return small.action_space
    finally:
        small.close()


def _small_engine(engine: EngineSpec, slots: int) -> Engine:
    return engine_from_spec(engine, slots=slots, levels=_levels_to_try(engine), draw=0)


def _levels_to_try(engine: EngineSpec) -> LevelSet:
    """Levels that every game of the engine's mode has."""
    if engine.engine in ("procgen", "envpool") and engine.mode == "exploration":
        only = EXPLORATION_LEVELS[engine.game]
        return LevelSet(only, only + 1)
    return FINGERPRINT_LEVELS


def _refuse_copy(candidate: Candidate, other: Candidate) -> None:
    names = f"{other.source.name} and {candidate.source.name}"
    if candidate.fingerprint == other.fingerprint:
        raise UsageError(
            f"{names} have exactly the same content: copies of one checkpoint count as one run, so name only one of "
            "them."
        )
    if candidate.run == other.run:
        raise UsageError(
            f"{names} would both be filed as {candidate.run.name}: give them other names with --agents or --seeds."
        )
