"""Observations recorded from play, with the geometry in which they were collected.

A geometry is slots x steps: every slot starts an episode, and each of its first steps gives a row. Rows of two
recordings of one geometry meet at equal slot and step, that is, mostly at the same step since an episode's start:
this is what "as computed" CKA of training against held-out levels then measures (paper, "Representation
Diagnostics").
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import PolicyError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.policies.policy import LogitsReader, Policy, StatefulPolicy
from gapfloor.records.stored_cell import canonical_json
from gapfloor.rules.rule import Sampled

#: Slots whose logits are inferred together, in every geometry: a slot plays the same whatever the other slots play.
_BATCH = 16

#: Rows of one inference of features.
ENCODED_TOGETHER = 64


def stream(purpose: str, *parts: str | int) -> np.random.Generator:
    """The generator for `purpose` (an action stream, a shuffle), keyed by everything that names it."""
    digest = hashlib.sha256(canonical_json(["cka", purpose, *parts]).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))


@dataclass(frozen=True)
class Geometry:
    """How many slots play side by side, and how many steps each.

    >>> Geometry.parse("64x16").rows
    1024
    """

    slots: int
    steps: int

    def __post_init__(self) -> None:
        if self.slots < 2 or self.slots % 2 or self.steps < 1:
            raise UsageError(
                f"The geometry {self} cannot be split in halves: use an even number of slots and at least 1 step."
            )

    def __str__(self) -> str:
        return f"{self.slots}x{self.steps}"

    @property
    def rows(self) -> int:
        """Observations of a recording."""
        return self.slots * self.steps

    @classmethod
    def parse(cls, text: str) -> Geometry:
        """Read SLOTSxSTEPS."""
        match = re.fullmatch(r"\s*(\d+)x(\d+)\s*", text)
        if match is None:
            raise UsageError(f"'{text}' is not a geometry: write SLOTSxSTEPS, e.g. 64x16.")
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True, eq=False)
class Recording:
    """Recorded observations; rows in the order (step, slot), so every array reshapes to (steps, slots)."""

    observations: npt.NDArray[Any]
    since_start: npt.NDArray[np.int64]
    """Steps since the row's episode started."""
    level_seed: npt.NDArray[np.int64]
    geometry: Geometry


def encode(policy: Any, observations: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The features `[n, d]` of `policy`'s encoder for these observations, whoever played."""
    values = _in_batches(observations, ENCODED_TOGETHER, policy.features)
    return values.reshape(len(values), -1)


def _in_batches(
    observations: npt.NDArray[Any], size: int, compute: Callable[[npt.NDArray[Any]], Any]
) -> npt.NDArray[Any]:
    """What is computed of observations, always so many at a time that a row does not depend on others."""
    pieces = []
    for start in range(0, len(observations), size):
        piece = observations[start : start + size]
        padded = np.concatenate([piece, np.repeat(piece[:1], size - len(piece), axis=0)])
        pieces.append(np.asarray(compute(padded))[: len(piece)])
    return np.concatenate(pieces)


def record_play(
    policy: Policy | StatefulPolicy,
    spec: EngineSpec,
    *,
    levels: LevelSet,
    geometry: Geometry,
    draw: int,
    fingerprint: str,
    name: str = "policy",
) -> Recording:
    """The observations that `policy` sees under the rule sampled, from the start of each slot's first episode.

    Levels depend on (levels, draw, slot) and actions on streams keyed by `fingerprint`, levels, draw and slot, so two
    geometries differ in nothing but which steps of which slots are taken.
    """
    if isinstance(policy, StatefulPolicy):
        raise PolicyError(
            f"{name} keeps a state, so its features depend on more than the observation: CKA needs an encoder "
            "without a state."
        )
    slots, steps = geometry.slots, geometry.steps
    rule = Sampled()
    key = (spec.engine, spec.game, spec.mode, fingerprint, str(rule), str(levels), draw)
    uniforms = np.stack([stream("action", *key, slot).random(steps) for slot in range(slots)])
    engine = engine_from_spec(spec, slots=slots, levels=levels, draw=draw)
    reader = LogitsReader(policy, name=name, n_slots=_BATCH, space=engine.action_space)
    frames, since, seeds = [], [], []
    age = np.zeros(slots, dtype=np.int64)
    none = np.zeros(_BATCH, dtype=bool)
    try:
        observations, _, first = engine.observe()
        for step in range(steps):
            age = np.where(first, 0, age)
            frames.append(observations.copy())
            since.append(age)
            seeds.append(engine.level_seeds.astype(np.int64))
            if step + 1 < steps:
                logits = _in_batches(frames[-1], _BATCH, lambda some: reader.read(some, none))
                observations, _, first = engine.step(rule.choose(logits, uniforms[:, step]))
            age = age + 1
    finally:
        engine.close()
    return Recording(np.concatenate(frames), np.concatenate(since), np.concatenate(seeds), geometry)
