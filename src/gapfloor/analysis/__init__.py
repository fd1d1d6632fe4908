"""Records and a plan in, results out."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "analyse": "apply",
    "count_cells": "seen_data",
    "AnalysisResults": "results",
    "read_inputs": "episodes",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
