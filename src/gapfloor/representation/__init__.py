"""CKA with the controls that make it honest: linear CKA, its nulls, recorded observations, the 2x2 control."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "AlignmentControl": "controls",
    "CkaMeasurement": "cka_measurement",
    "CkaResult": "linear",
    "CkaSettings": "cka_measurement",
    "Features": "features",
    "Geometry": "recording",
    "PermutationNull": "null",
    "Recording": "recording",
    "align_controls": "controls",
    "encode": "features",
    "expected_cka": "null",
    "linear_cka": "linear",
    "measure_cka": "cka_measurement",
    "participation_ratio": "linear",
    "permutation_null": "null",
    "record_play": "recording",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
