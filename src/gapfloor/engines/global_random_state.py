"""The global random generators of Python, numpy and torch: read, seeded and put back.

Only the contract check touches them, to find environments whose episodes depend on them. torch is left alone where
nobody has imported it.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np


def read_random_states() -> dict[str, Any]:
    """The state of each global generator, by its name."""
    states: dict[str, Any] = {"random": random.getstate()}
    name, keys, *rest = np.random.get_state()  # noqa: NPY002
    states["numpy.random"] = (name, np.asarray(keys).tobytes(), *rest)
    torch = sys.modules.get("torch")
    if torch is not None:
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def seed_everything(seed: int) -> None:
    """Seed every global generator."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


@contextlib.contextmanager
def kept_random_states() -> Iterator[None]:
    """Put every global generator back as it was when the body of the `with` ends."""
    kept = read_random_states()
    try:
        yield
    finally:
        random.setstate(kept["random"])
        name, keys, *rest = kept["numpy.random"]
        np.random.set_state((name, np.frombuffer(keys, dtype=np.uint32), *rest))  # noqa: NPY002
        torch = sys.modules.get("torch")
        if torch is not None and "torch" in kept:
            torch.set_rng_state(torch.frombuffer(bytearray(kept["torch"]), dtype=torch.uint8))
