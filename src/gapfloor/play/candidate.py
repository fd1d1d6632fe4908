"""A policy that is about to be played: loaded once, tried once on one small engine, and identified by its content.

The trial tells whether the policy can read and play the game, and what a policy does that brings no hash of its own.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import entropy
from gapfloor.actions.spaces import ActionSpace, Box
from gapfloor.engines.engine import Engine, EngineSpec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import PolicyError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.machine import one_thread
from gapfloor.play.cell import Inference, Run
from gapfloor.play.protocol import InferenceSettings
from gapfloor.policies.acting import ActingPolicy, ActionReader
from gapfloor.policies.backends import ONNXRUNTIME, computes_graphs
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import LogitsReader, backend_of, fingerprint, own_fingerprint
from gapfloor.records.run_identity import agent_of_header
from gapfloor.rules.rule import Rule, softmax

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


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A policy, and what one batch of its logits on the first observations of a game tells."""

    policy: Any = field(repr=False)
    source: PolicySource
    """Where workers get it: from a file or by name, or the graph itself, which needs nothing else."""
    fingerprint: str
    """The hash of its content."""
    inference: Inference
    run: Run = field(default_factory=Run)
    """The labels of its run."""
    is_deterministic: bool = False
    """Whether it returns one action instead of a distribution, so that a rule that draws would play as greedy does."""
    greedy_action: str = "mode"
    """What its greedy rule plays."""
    acts: bool = False
    """Whether it only acts, so that its one rule is own."""

    @property
    def header(self) -> Mapping[str, Any]:
        """What a checkpoint says about its training; empty for any other policy."""
        return getattr(self.policy, "header", None) or {}

    def own_rules(self, rules: Sequence[Rule]) -> list[Rule]:
        """Those of `rules` that differ for this policy: one without a distribution has one rule."""
        mine = [rule for rule in rules if rule.reads_distribution != self.acts]
        if not mine:
            raise UsageError(
                f"{self.source.name} only acts and returns no distribution, so it has one rule: use own, not "
                f"{', '.join(map(str, rules))}."
                if self.acts
                else f"The rule own is for policies that only act, and {self.source.name} returns logits: use sampled "
                "or greedy."
            )
        if not self.is_deterministic:
            return mine
        left = [rule for rule in mine if not rule.draws_from_policy]
        if not left:
            raise UsageError(
                f"{self.source.name} returns one action and no distribution, so it has one rule: use greedy, not "
                f"{', '.join(map(str, rules))}."
            )
        return left

    def notes(self, rules: Sequence[Rule]) -> list[str]:
        """What a reader should know about how this policy's actions are chosen."""
        left = self.own_rules(rules)
        dropped = [str(rule) for rule in rules if rule not in left]
        if self.acts:
            if self.policy.is_repeatable:
                return []
            return [
                f"{self.run.name} cannot be seeded, so its episodes cannot be repeated exactly: give it seed(n), or "
                "state is_deterministic = True if it draws no random numbers."
            ]
        if dropped:
            return [
                f"{self.run.name} returns one action and no distribution, so it has one rule: {', '.join(dropped)} "
                "would play the same as greedy and was not played."
            ]
        if self.greedy_action == "mode" or not any(str(rule) == "greedy" for rule in rules):
            return []
        return [f"Under the rule greedy, {self.run.name} plays {self.greedy_action}, which is not the mode."]


def try_policy(
    source: PolicySource, *, engine: EngineSpec, batch: int, recorded: Mapping[str, str] | None = None
) -> Candidate:
    """The policy's content hash and how its logits are computed here; one that cannot read this game is refused.

    A torch network is identified in torch and then exported (`graph_export`), unless its source asks for torch, or the
    store has cells of it in torch (`recorded`: the backends of policies by their hashes).
    """
    policy, name = source.load(), source.name
    backend = (recorded or {}).get(own_fingerprint(policy), source.backend)
    if backend != source.backend:
        source = replace(source, backend=backend)
        policy = source.load()
    trained = (getattr(policy, "header", None) or {}).get("game", engine.game)
    if trained != engine.game:
        raise PolicyError(f"{name} was trained on {trained}, not on {engine.game}: play it on {trained}.")
    with contextlib.closing(_small_engine(engine, batch)) as small:
        if isinstance(policy, ActingPolicy):
            reader = ActionReader(policy, name=name, n_slots=1, space=small.action_space)
            reader.begin(0, 0.0)
            reader.read(small.observe()[0], [0])
            inference = Inference(batch, policy.backend, "", "cpu")
            return Candidate(
                policy=policy, source=source, fingerprint=policy.fingerprint, inference=inference, acts=True
            )
        observations, _, first = copy.deepcopy(small.observe())
        check_actions(policy, small, name=name)
        with one_thread():
            content = fingerprint(policy, name=name, engine=small)
            if hasattr(policy, "exported") and computes_graphs(source.backend, source.device):
                policy = policy.exported(observations)
                policy.fingerprint = content
            logits_reader = LogitsReader(policy, name=name, n_slots=batch, space=small.action_space)
            arithmetic = arithmetic_of(logits_reader.read(observations, first))
    backend, version, device = backend_of(policy)
    if (backend, device) == (ONNXRUNTIME, "cpu"):
        source = replace(source, given=policy)
    inference = Inference(batch, backend, version, device, arithmetic)
    found = Candidate(policy=policy, source=source, fingerprint=content, inference=inference)
    given = logits_reader.distribution
    if given is None:
        return found
    return replace(found, is_deterministic=given.is_deterministic, greedy_action=given.mode_name)


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


def arithmetic_of(logits: npt.NDArray[Any]) -> str:
    """A short hash of logits and of what the harness computes from them.

    Libraries round differently with other vector instructions, environment variables and versions, so the same weights
    give other entropies and, rarely, other actions. The hash of a fixed batch tells such machines apart, whatever the
    cause. It is part of a cell's key, so that cells of two kinds of arithmetic are never mixed.
    """
    probabilities = softmax(logits)
    digest = hashlib.sha256()
    for values in (logits, probabilities, entropy(probabilities)):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]


def action_space_of(engine: EngineSpec) -> ActionSpace:
    """The actions of an engine."""
    with contextlib.closing(_small_engine(engine, 1)) as small:
        return small.action_space


def _small_engine(engine: EngineSpec, slots: int) -> Engine:
    return engine_from_spec(engine, slots=slots, levels=FINGERPRINT_LEVELS, draw=0)


def load_candidates(
    entrants: Sequence[Entrant],
    engine: EngineSpec,
    inference: InferenceSettings,
    *,
    recorded: Mapping[str, str] | None = None,
    acts: bool = False,
) -> tuple[Candidate, ...]:
    """Load each policy once; copies of one policy and two runs of one name are refused.

    `recorded` has the backends of policies that the store holds, by their hashes; others run in that of `inference`.
    `acts` says that policies are played under the rule own: a function is then one that returns an action.
    """
    found: list[Candidate] = []
    for entrant in entrants:
        source = policy_source(
            entrant.policy, device=inference.device, backend=inference.backend, number=entrant.number
        )
        source = source.acting() if acts else source
        candidate = try_policy(source, engine=engine, batch=inference.batch, recorded=recorded)
        header = candidate.header
        run = Run(
            agent=entrant.agent if entrant.agent is not None else agent_of_header(header),
            seed=entrant.seed if entrant.seed is not None else header.get("seed", entrant.number),
            budget=entrant.budget if entrant.budget is not None else str(header.get("budget", "")),
        )
        candidate = replace(candidate, run=run)
        for other in found:
            names = f"{other.source.name} and {candidate.source.name}"
            if candidate.fingerprint == other.fingerprint:
                raise UsageError(
                    f"{names} have exactly the same content: copies of one checkpoint count as one run, so name only "
                    "one of them."
                )
            if candidate.run == other.run:
                raise UsageError(
                    f"{names} would both be filed as {candidate.run.name}: give them other names with --agents or "
                    "--seeds."
                )
        found.append(candidate)
    return tuple(found)


def policy_source(policy: Any, *, device: str, backend: str | None = None, number: int = 1) -> PolicySource:
    """Where a policy comes from: a name, or an object that is called by its own name or by its number."""
    if isinstance(policy, (str, Path, PolicySource)):
        return PolicySource.named(policy, device=device, backend=backend).fetched()
    name = getattr(policy, "name", None) or getattr(policy, "__name__", None) or f"policy {number}"
    return PolicySource(str(name), given=policy, backend=backend)
