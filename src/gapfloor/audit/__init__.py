"""Which action rule does a code base use at test time? A ledger of twelve, a scanner and a probe.

Nothing here runs or imports the code it reads: sources are text, taken from a folder or from git.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "load_ledger": "gapfloor.audit.ledger",
    "verify_ledger": "gapfloor.audit.verify",
    "scan": "gapfloor.audit.scan",
    "probe_rule": "gapfloor.audit.probe",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'gapfloor.audit' has no attribute '{name}'")
