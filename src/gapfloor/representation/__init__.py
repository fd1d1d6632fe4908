"""CKA with its controls: linear CKA, its nulls, recorded observations, the 2x2 control."""

from gapfloor.representation.recording import Geometry, Recording, encode, record_play
from gapfloor.representation.similarity import (
    align_controls,
    expected_cka,
    linear_cka,
    participation_ratio,
    permutation_null,
)

__all__ = [
    "Geometry", "Recording", "align_controls", "encode", "expected_cka", "linear_cka", "participation_ratio",
    "permutation_null", "record_play",
]  # fmt: skip
