"""Records and a plan in, results out."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "analyse": "apply",
    "count_cells": "apply",
    "AnalysisResults": "results",
    "read_inputs": "inputs",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"gapfloor.analysis.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'gapfloor.analysis' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
