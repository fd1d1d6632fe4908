"""What a machine's arithmetic does to a policy: the hash of its logits on a fixed batch.

Libraries round differently with other vector instructions, environment variables and versions, so the same weights
give other entropies and, rarely, other actions. The hash tells such machines apart, whatever the cause. It is part of
a cell's key, so that cells of two kinds of arithmetic are never mixed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.actions.entropy import entropy
from gapfloor.records.atomic import write_text_atomically
from gapfloor.rules import softmax


def arithmetic_of(logits: npt.NDArray[Any]) -> str:
    """A short hash of logits and of what the harness computes from them."""
    probabilities = softmax(logits)
    digest = hashlib.sha256()
    for values in (logits, probabilities, entropy(probabilities)):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]


def note_host(root: Path, arithmetic: str) -> None:
    """Remember in `log/` that this host computes in this way, so that a conflict can name both machines."""
    path = _notes(root) / f"{arithmetic}-{socket.gethostname()[:60]}.json"
    if not path.exists():
        write_text_atomically(path, json.dumps({"host": socket.gethostname()}) + "\n")


def hosts_of(root: Path, arithmetic: str) -> str:
    """The hosts that are known to compute in this way."""
    hosts = []
    for path in sorted(_notes(root).glob(f"{arithmetic}-*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            hosts.append(str(json.loads(path.read_text())["host"]))
    return ", ".join(hosts) or "an unknown host"


def _notes(root: Path) -> Path:
    return Path(root) / "log" / "arithmetic"
