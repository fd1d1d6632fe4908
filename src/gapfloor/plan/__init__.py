"""The analysis plan: what is fixed before the data are seen."""

from __future__ import annotations

import importlib
from typing import Any

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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"gapfloor.plan.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'gapfloor.plan' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
