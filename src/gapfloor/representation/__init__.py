"""CKA with the controls that make it honest: linear CKA, its nulls, recorded observations, the 2x2 control."""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "AlignmentControl": "controls",
    "CkaMeasurement": "measuring",
    "CkaResult": "linear",
    "CkaSettings": "measuring",
    "Features": "features",
    "Geometry": "recording",
    "PermutationNull": "null",
    "Recording": "recording",
    "align_controls": "controls",
    "encode": "features",
    "expected_cka": "null",
    "linear_cka": "linear",
    "measure_cka": "measuring",
    "participation_ratio": "linear",
    "permutation_null": "null",
    "record_play": "recording",
}

__all__ = [
    "AlignmentControl",
    "CkaMeasurement",
    "CkaResult",
    "CkaSettings",
    "Features",
    "Geometry",
    "PermutationNull",
    "Recording",
    "align_controls",
    "encode",
    "expected_cka",
    "linear_cka",
    "measure_cka",
    "participation_ratio",
    "permutation_null",
    "record_play",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
