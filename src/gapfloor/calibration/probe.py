"""The probe of a cell: visited states whose clones tell which actions are the same there.

The probe consists of the states with the 1024 smallest hashes of (slot, index, step). So it is a uniform sample of all
counted steps that does not depend on the order of play, and no more engine states than that are ever held.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import Partition, entropy, merged_entropy
from gapfloor.calibration.cloning import state_partitions
from gapfloor.engines.engine import Engine, EngineSpec, State

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_LARGEST = 2**64 - 1


def position_hash(slot: Integers, index: Integers, step: Integers) -> npt.NDArray[np.uint64]:
    """A 64-bit hash of each position, by the finaliser of SplitMix64 once for each number.

    >>> int(position_hash(np.array([3]), np.array([1]), np.array([250]))[0])
    2178705519430689278
    """
    mixed = np.zeros(len(slot), dtype=np.uint64)
    for part in (slot, index, step):
        mixed = mixed + np.uint64(0x9E3779B97F4A7C15) + part.astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
    return mixed


@dataclass(frozen=True)
class ProbedState:
    """One state of the probe; states are ordered by hash, then position."""

    hash: int
    position: tuple[int, int, int]
    state: State = field(repr=False)
    probabilities: Floats = field(repr=False)

    def __lt__(self, other: ProbedState) -> bool:
        # heapq keeps the smallest on top; the top must be the one to drop, so the order is reversed.
        return (self.hash, self.position) > (other.hash, other.position)


@dataclass(frozen=True)
class ProbeSettings:
    """How many visited states of a sampled cell are cloned."""

    states: int = 1024
    horizon: int = 5
    classes: tuple[int, ...] = ()
    """The game's own classes, for merged entropy per game; empty if they are not known."""


class ProbeObserver:
    """Keeps the probe of one cell while it is played; see `gapfloor.play.player.CellObserver`."""

    def __init__(self, engine: EngineSpec, settings: ProbeSettings) -> None:
        self._engine, self._settings = engine, settings
        self._held: list[ProbedState] = []

    def wants(self, slot: Integers, index: Integers, step: Integers) -> npt.NDArray[np.bool_]:
        limit = self._held[0].hash if len(self._held) >= self._settings.states else _LARGEST
        wanted: npt.NDArray[np.bool_] = position_hash(slot, index, step) <= np.uint64(limit)
        return wanted

    def see(
        self, engine: Engine, row: int, *, slot: int, index: int, step: int, probabilities: Floats | None
    ) -> None:
        assert probabilities is not None  # a probe is refused where actions are not numbered
        position = (slot, index, step)
        hashed = int(position_hash(*(np.array([number]) for number in position))[0])
        is_full = len(self._held) >= self._settings.states
        # Several rows of one step can be wanted; the first of them may have lowered the limit.
        if is_full and hashed > self._held[0].hash:
            return
        keep = heapq.heappushpop if is_full else heapq.heappush
        keep(self._held, ProbedState(hashed, position, engine.save(row), probabilities.copy()))

    def held(self) -> list[ProbedState]:
        """The states kept so far, smallest hash first."""
        return sorted(self._held, reverse=True)

    def finish(self) -> dict[str, Any]:
        probe, self._held = self.held(), []
        if not probe:
            return {"probe_states": 0}
        partitions = state_partitions(
            self._engine, [seen.state for seen in probe], horizon=self._settings.horizon
        )
        rows = np.stack([seen.probabilities for seen in probe])
        fields: dict[str, Any] = {
            "entropy_probe": _mean(entropy(rows)),
            "merged_state": _mean(state_entropies(rows, partitions)),
            "mean_ln_k": _mean(np.log([partition.k for partition in partitions])),
            "probe_states": len(probe),
        }
        if self._settings.classes:
            game = Partition(self._settings.classes)
            fields["merged_game"] = _mean(merged_entropy(rows, game))
            fields["k"] = game.k
        return fields


def state_entropies(rows: Floats, partitions: list[Partition]) -> Floats:
    """The entropy of each row over the classes of its own state."""
    merged = np.empty(len(rows))
    members: dict[Partition, list[int]] = {}
    for row, partition in enumerate(partitions):
        members.setdefault(partition, []).append(row)
    for partition, mine in members.items():
        merged[mine] = merged_entropy(rows[mine], partition)
    return merged


def _mean(values: Floats) -> float:
    return math.fsum(values.tolist()) / len(values)
