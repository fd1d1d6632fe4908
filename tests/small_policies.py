"""Policies small enough to play on the real engine within a test."""

from __future__ import annotations

import numpy as np


class LinearPolicy:
    """Logits that are a fixed linear map of a coarse view of the frame."""

    def __init__(self, seed: int = 0, scale: float = 0.02) -> None:
        rng = np.random.default_rng(seed)
        self._weights = rng.normal(0, scale, (8 * 8 * 3, 15)).astype(np.float32)

    def logits(self, observations: np.ndarray) -> np.ndarray:
        coarse = observations[:, ::8, ::8].reshape(len(observations), -1).astype(np.float32)
        # Row by row: a matrix product may add in another order when its neighbours change.
        return np.stack([(row[:, None] * self._weights).sum(axis=0) for row in coarse])


class CountingPolicy:
    """A policy with state: what it prefers depends on how many steps its episode has lasted."""

    def initial_state(self, n: int) -> np.ndarray:
        return np.zeros(n, dtype=np.int64)

    def logits(self, observations: np.ndarray, state: np.ndarray, first: np.ndarray):
        steps = np.where(first, 0, state)
        logits = np.zeros((len(observations), 15), dtype=np.float32)
        logits[np.arange(len(logits)), (steps // 3) % 15] = 2.0
        return logits, steps + 1


def linear():
    return LinearPolicy()


def other_linear():
    return LinearPolicy(seed=1)


def constant_logits():
    return lambda observations: np.tile(np.eye(15, dtype=np.float32)[7] * 50, (len(observations), 1))


def nan_logits():
    return lambda observations: np.full((len(observations), 15), np.nan)


def wrong_shape():
    return lambda observations: np.zeros((len(observations), 3))


def broken():
    raise RuntimeError("weights file is missing")


class OutOfMemoryError(RuntimeError):
    """Named as torch names its own."""


def crowded(device: str = "cpu"):
    """A policy whose device other than the CPU runs out of memory after a few steps."""
    policy = LinearPolicy()
    policy.device, policy.steps = device, 0
    compute = policy.logits

    def logits(observations):
        policy.steps += 1
        if device != "cpu" and policy.steps > 60:
            raise OutOfMemoryError("no room")
        return compute(observations)

    policy.logits = logits
    return policy
