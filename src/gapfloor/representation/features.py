"""Features of an encoder, with a hash of the input behind each row, and what may be paired with what.

CKA is a sum over paired rows: row i of both sides must be the same input (paper, "Representation Diagnostics").
With the hashes that can be checked, so a comparison of different inputs happens only where it is asked for by name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError, unknown_name

#: The one control that lets different inputs be compared row by row.
UNPAIRED = "unpaired"

#: How far the pairing of two matrices is known: checked by hash, taken at the caller's word, or none at all.
Pairing = Literal["checked", "as given", "unpaired"]

#: Rows of one inference; always this many, so that a row's features do not depend on its companions.
BATCH = 64


@dataclass(frozen=True, eq=False)
class Features:
    """A feature matrix `[n, d]` whose rows know their inputs."""

    values: npt.NDArray[Any]
    row_hashes: tuple[str, ...]
    """One hash an input: equal hashes, equal inputs."""
    origin: str = "features"
    """Whose features of what, for messages."""

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or len(self.row_hashes) != len(self.values):
            raise UsageError(
                f"{self.origin}: {len(self.row_hashes)} row hashes do not fit features of shape "
                f"{self.values.shape}; give a matrix with one hash per row."
            )

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Features:
        """These rows, in this order, with their hashes."""
        return Features(self.values[rows], tuple(self.row_hashes[row] for row in rows), self.origin)


def hash_rows(inputs: npt.NDArray[Any]) -> tuple[str, ...]:
    """A hash of each row's type, shape and bytes."""
    head = f"{inputs.dtype.str} {inputs.shape[1:]} ".encode()
    return tuple(hashlib.blake2b(head + row.tobytes(), digest_size=16).hexdigest() for row in inputs)


def encode(
    policy: Any,
    observations: npt.NDArray[Any],
    *,
    origin: str = "features",
    row_hashes: Sequence[str] | None = None,
) -> Features:
    """What `policy.features` makes of recorded observations, row by row, with their hashes."""
    if not callable(getattr(policy, "features", None)):
        raise PolicyError(
            f"A {type(policy).__name__} has no features(observations), so it has no representation to compare: "
            "give a checkpoint, or a policy with that method."
        )
    rows = []
    for start in range(0, len(observations), BATCH):
        piece = observations[start : start + BATCH]
        padded = np.concatenate([piece, np.repeat(piece[:1], BATCH - len(piece), axis=0)])
        rows.append(np.asarray(policy.features(padded))[: len(piece)])
    values = np.concatenate(rows)
    hashes = tuple(row_hashes) if row_hashes is not None else hash_rows(observations)
    return Features(values.reshape(len(values), -1), hashes, origin)


def check_pairing(x: Any, y: Any, control: str | None) -> Pairing:
    """How `x` and `y` are paired; refuses rows that are known to be different inputs unless `control` says so."""
    if control not in (None, UNPAIRED):
        raise unknown_name("control", str(control), [UNPAIRED])
    if len(x) != len(y):
        raise UsageError(
            f"CKA needs as many rows on both sides, and these have {len(x)} and {len(y)}: take the rows that belong "
            "together."
        )
    if control == UNPAIRED:
        return "unpaired"
    known = [side for side in (x, y) if isinstance(side, Features)]
    if not known:
        return "as given"
    if len(known) == 1:
        raise UsageError(
            f"Only one side ({known[0].origin}) knows its inputs, so the pairing cannot be checked: give both as "
            f"Features, or both as plain arrays, or name control='{UNPAIRED}'."
        )
    differing = [
        row for row, pair in enumerate(zip(x.row_hashes, y.row_hashes, strict=True)) if pair[0] != pair[1]
    ]
    if differing:
        raise UsageError(
            f"Row {differing[0]} of {x.origin} and row {differing[0]} of {y.origin} are different inputs "
            f"({len(differing)} of {len(x)} rows are): CKA of unpaired rows measures how the rows happen to be "
            f"aligned, not the representation. Encode the same inputs, or name control='{UNPAIRED}'."
        )
    return "checked"
