"""CKA with its controls: linear CKA, its nulls, recorded observations, the 2x2 control."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "AlignmentControl": "alignment_control",
    "Geometry": "recording",
    "PermutationNull": "shuffled_null",
    "Recording": "recording",
    "align_controls": "alignment_control",
    "encode": "recording",
    "expected_cka": "shuffled_null",
    "linear_cka": "linear_similarity",
    "participation_ratio": "linear_similarity",
    "permutation_null": "shuffled_null",
    "record_play": "recording",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
