"""Random streams of a run, one per purpose, all made from its seed.

A stream never serves two purposes, so that adding a draw in one place moves nothing elsewhere. The purposes
in use: `initialisation` (weights), `levels` (the engine's draw of levels), `actions` (the rollout's choices)
and `minibatches` (the order of samples in an update).
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

PURPOSES = ("initialisation", "levels", "actions", "minibatches")


def make_stream(seed: int, purpose: str) -> np.random.Generator:
    """The generator of one purpose of one run."""
    if purpose not in PURPOSES:
        raise ValueError(f"`purpose` is {purpose!r}, not one of {PURPOSES}")
    key = int.from_bytes(hashlib.sha256(f"gapfloor training {purpose}".encode()).digest()[:8], "big")
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, key])))


def draw_seed(seed: int, purpose: str) -> int:
    """One 31-bit seed from a purpose's stream, for generators that are not numpy's."""
    return int(make_stream(seed, purpose).integers(2**31 - 1))


def save_stream(stream: np.random.Generator) -> dict[str, Any]:
    """A stream's position as JSON values (its integers have 128 bits, so they become text)."""
    state = stream.bit_generator.state
    whole = {name: str(number) for name, number in state["state"].items()}
    return {**whole, "has_uint32": int(state["has_uint32"]), "uinteger": int(state["uinteger"])}


def load_stream(saved: dict[str, Any]) -> np.random.Generator:
    """The stream that `save_stream` described."""
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": int(saved["state"]), "inc": int(saved["inc"])},
        "has_uint32": saved["has_uint32"],
        "uinteger": saved["uinteger"],
    }
    return np.random.Generator(bits)
