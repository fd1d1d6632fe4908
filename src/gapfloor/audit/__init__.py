"""Which action rule does a code base use at test time? A ledger of twelve, a scanner and a probe.

Nothing here runs or imports the code it reads: sources are text, taken from a folder or from git.
"""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "load_ledger": "ledger.entries",
    "verify_ledger": "ledger.verify",
    "scan": "scan",
    "probe_rule": "probe",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
