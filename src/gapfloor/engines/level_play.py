"""What a level shows when the same random actions are played on it, as hashes that can be compared."""

from __future__ import annotations

import hashlib

import numpy as np

from gapfloor.actions.spaces import Actions
from gapfloor.engines.engine import Engine
from gapfloor.engines.gymnasium.spaces import row_bytes

#: Steps that clones are played on next to the original.
CLONE_STEPS = 60


def random_actions(engine: Engine, rng: np.random.Generator, *, same: bool = False) -> Actions:
    """Uniform legal actions; `same` takes one number for all slots, so that slots in one state take one action."""
    engine.observe()  # the masks of a fresh engine exist once its levels have begun
    space, rows = engine.action_space, 1 if same else engine.n_slots
    numbers = rng.random((rows, space.width) if space.width else rows)
    return space.uniform(np.repeat(numbers, engine.n_slots // rows, axis=0), engine.masks)


def first_observation(engine: Engine, level: int, *, slot: int = 0) -> bytes:
    """What a level shows first."""
    engine.begin(slot, level)
    return row_bytes(engine.observe()[0], slot)


def hash_play(engine: Engine, level: int, *, steps: int, slot: int = 0, seed: int = 0) -> tuple[str, str]:
    """A hash of a level's first observation, and one of everything that so many random actions bring."""
    start = first_observation(engine, level, slot=slot)
    digest = hashlib.sha256(start)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        rows, rewards, firsts = engine.step(random_actions(engine, rng, same=True))
        digest.update(
            row_bytes(rows, slot) + np.float64(rewards[slot]).tobytes() + bytes([bool(firsts[slot])])
        )
        if firsts[slot]:
            break
    return hashlib.sha256(start).hexdigest(), digest.hexdigest()


def level_of_unlike_clones(engine: Engine, levels: tuple[int, ...]) -> int | None:
    """The first level on which a saved state does not continue as the original in the two other slots; None: none."""
    rng = np.random.default_rng(2)
    for level in levels:
        engine.begin(0, level)
        for _ in range(int(rng.integers(1, 12))):
            if engine.step(random_actions(engine, rng))[2][0]:
                engine.begin(0, level)
        state = engine.save(0)
        for slot in (1, 2):
            engine.load(slot, state)
        for _ in range(CLONE_STEPS):
            rows, rewards, firsts = engine.step(random_actions(engine, rng, same=True))
            if (
                len({(row_bytes(rows, slot), float(rewards[slot]), bool(firsts[slot])) for slot in range(3)})
                > 1
            ):
                return level
            if firsts[0]:
                break
    return None
