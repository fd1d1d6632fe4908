"""CKA with its controls: linear CKA, its nulls, recorded observations, the 2x2 control."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "Geometry": "recording",
    "Recording": "recording",
    "align_controls": "similarity",
    "encode": "recording",
    "expected_cka": "similarity",
    "linear_cka": "similarity",
    "participation_ratio": "similarity",
    "permutation_null": "similarity",
    "record_play": "recording",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
