"""What a machine's arithmetic does to a policy: the hash of its logits on a fixed batch.

Libraries round differently with other vector instructions, environment variables and versions, so the same weights
give other entropies and, rarely, other actions. The hash tells such machines apart, whatever the cause. It is part of
a cell's key, so that cells of two kinds of arithmetic are never mixed.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.entropy import entropy
from gapfloor.rules import softmax


def arithmetic_of(logits: npt.NDArray[Any]) -> str:
    """A short hash of logits and of what the harness computes from them."""
    probabilities = softmax(logits)
    digest = hashlib.sha256()
    for values in (logits, probabilities, entropy(probabilities)):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]
