"""Random streams of a CKA measurement: one for each purpose, keyed by everything that names it."""

from __future__ import annotations

import hashlib

import numpy as np

from gapfloor.records.manifest import canonical_json


def stream(purpose: str, *parts: str | int) -> np.random.Generator:
    """The generator for `purpose` (an action stream, a shuffle) of what `parts` name."""
    digest = hashlib.sha256(canonical_json(["cka", purpose, *parts]).encode()).digest()
    return np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
