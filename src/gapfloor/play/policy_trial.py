"""A policy tried on a game: whether it can read and play it, and what identifies it.

One small engine is opened per policy. It also tells what a policy does that brings no hash of its own.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.entropy import entropy
from gapfloor.actions.spaces import ActionSpace, Box
from gapfloor.engines.engine import Engine, EngineSpec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import PolicyError
from gapfloor.levels import LevelSet
from gapfloor.machine import one_thread
from gapfloor.play.cell import Inference
from gapfloor.policies.acting import ActingPolicy, ActionReader
from gapfloor.policies.backends import ONNXRUNTIME, computes_graphs
from gapfloor.policies.fingerprint import backend_of, fingerprint, own_fingerprint
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import LogitsReader
from gapfloor.rules import softmax

#: Where the observations come from that identify a policy which brings no hash.
FINGERPRINT_LEVELS = LevelSet(0, 200)


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
    """A policy, and what one batch of its logits on the first observations of a game tells."""

    policy: Any = field(repr=False)
    source: PolicySource
    """Where workers get it: from a file or by name, or the graph itself, which needs nothing else."""
    fingerprint: str
    """The hash of its content."""
    inference: Inference
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


def try_policy(
    source: PolicySource, *, engine: EngineSpec, batch: int, recorded: Mapping[str, str] | None = None
) -> TriedPolicy:
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
            return TriedPolicy(policy, source, policy.fingerprint, inference, acts=True)
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
    inference = Inference(batch, backend, version, device, arithmetic)
    if (backend, device) == (ONNXRUNTIME, "cpu"):
        source = replace(source, given=policy)
    given = logits_reader.distribution
    if given is None:
        return TriedPolicy(policy, source, content, inference)
    return TriedPolicy(policy, source, content, inference, given.is_deterministic, given.mode_name)


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
