"""CKA with its controls: linear CKA, its nulls, recorded observations, the 2x2 control."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "Geometry": "recording",
    "Recording": "recording",
    "encode": "recording",
    "record_play": "recording",
    **dict.fromkeys(
        ("align_controls", "expected_cka", "linear_cka", "participation_ratio", "permutation_null"),
        "similarity",
    ),
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
