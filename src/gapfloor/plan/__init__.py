"""The analysis plan: what is fixed before the data are seen."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "Plan": "model",
    "Addendum": "model",
    "read_plan": "model",
    "paper_plan": "model",
    "content_hash": "model",
    "LockedPlan": "lock",
    "lock_plan": "lock",
    "load_plan": "lock",
    "add_addendum": "lock",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
