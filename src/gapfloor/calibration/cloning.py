"""Which actions are the same in one state: the state is cloned into a slot for each action and played on.

Section "Calibration" of the paper: apply every action to a clone of the state, then no-ops; two actions are
the same there when observation, reward and episode boundary agree at every step. Equal outcomes mean equal
actions only if the engine is deterministic, so one more slot replays one of the actions, and a difference
between the two is an error.

The cost is that of loading and stepping: outcomes are compared as bytes with one representative of their class,
which ends at the first byte that differs, and ProcGen's calls leave Python's lock, so that threads share the work.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.partition import Partition
from gapfloor.engines.engine import EngineSpec, Observations, State
from gapfloor.engines.gymnasium.spaces import row_bytes
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.levels.schedule import LevelSet

#: Engines whose steps leave Python's lock: only there do threads share anything.
THREADED_ENGINES = ("procgen",)

#: Loaded states bring their own levels along; the cloning engine is never played by itself.
_ANY_LEVELS = LevelSet(0, 1)


class Cloner:
    """One engine with a slot for each action and one for the replay."""

    def __init__(self, spec: EngineSpec, *, horizon: int) -> None:
        self._spec, self._horizon = spec, horizon
        self.n_actions = len(action_names_of(spec))
        self._engine = engine_from_spec(spec, slots=self.n_actions + 1, levels=_ANY_LEVELS)
        self._noops = np.full(self.n_actions + 1, self._engine.noop)

    def partition(self, state: State, *, turn: int) -> Partition:
        """The classes of actions in `state`.

        Args:
            state: a slot's state, as the engine saves it.
            turn: a running number that changes which action is replayed, and which slot an action gets, so
                that what a slot did before cannot pass for an effect of an action.
        """
        actions = self._actions(turn)
        for slot in range(self.n_actions + 1):
            self._engine.load(slot, state)
        labels = [0] * len(actions)
        for step in range(self._horizon):
            labels = split(labels, *self._engine.step(self._noops if step else actions))
        label_of = dict(zip(actions[:-1].tolist(), labels[:-1], strict=True))
        replayed = int(actions[-1])
        if label_of[replayed] != labels[-1]:
            raise CheckFailedError(
                f"{self._spec.game} ({self._spec.mode}): action {replayed} played twice from the same state gave two "
                f"outcomes, so equal outcomes do not mean equal actions. Run gapfloor doctor to check this engine."
            )
        return Partition.from_labels([label_of[action] for action in range(self.n_actions)])

    def _actions(self, turn: int) -> npt.NDArray[np.int64]:
        return np.append(np.roll(np.arange(self.n_actions), turn), turn % self.n_actions)

    def close(self) -> None:
        """Free the engine."""
        self._engine.close()


def split(
    labels: Sequence[int],
    observations: Observations,
    rewards: npt.NDArray[np.floating[Any]],
    firsts: npt.NDArray[np.bool_],
) -> list[int]:
    """Labels after one more step: slots keep a common label only if their outcomes are the same bytes."""
    known: dict[tuple[int, float, bool], list[tuple[bytes, int]]] = {}
    sizes = Counter(labels)
    count = 0
    after = []
    scalars = zip(labels, rewards.tolist(), firsts.tolist(), strict=True)
    for slot, key in enumerate(scalars):
        candidates = known.setdefault(key, [])
        # A slot that is alone already can only stay alone: its frame need not be read.
        frame = b"" if sizes[key[0]] == 1 else row_bytes(observations, slot)
        for other, label in candidates:
            if other == frame:
                after.append(label)
                break
        else:
            candidates.append((frame, count))
            after.append(count)
            count += 1
    return after


def state_partitions(
    spec: EngineSpec, states: Sequence[State], *, horizon: int, workers: int = 1
) -> list[Partition]:
    """The partition of actions in each of `states`, in their order, whatever the number of workers."""
    workers = max(1, min(workers, len(states))) if spec.engine in THREADED_ENGINES else 1
    shares = [range(first, len(states), workers) for first in range(workers)]

    def work(share: Iterable[int]) -> list[tuple[int, Partition]]:
        with closing(Cloner(spec, horizon=horizon)) as cloner:
            return [(number, cloner.partition(states[number], turn=number)) for number in share]

    if workers == 1:
        return [partition for _, partition in work(shares[0])]
    with ThreadPoolExecutor(workers) as pool:
        found = dict(pair for pairs in pool.map(work, shares) for pair in pairs)
    return [found[number] for number in range(len(states))]


@functools.lru_cache(maxsize=64)
def action_names_of(spec: EngineSpec) -> tuple[str, ...]:
    """The actions of a game; refuses an engine whose states cannot be cloned."""
    with closing(engine_from_spec(spec, slots=1, levels=_ANY_LEVELS)) as engine:
        if not engine.can_clone:
            raise UsageError(
                f"The engine {spec.engine} cannot clone the states of {spec.game}, which calibration needs: there is "
                "no merged rule and no merged entropy for it."
            )
        return engine.action_names
