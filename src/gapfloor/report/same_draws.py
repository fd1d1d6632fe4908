"""Whether the floor was measured on the levels that the runs played: printed only where it was checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.analysis.episodes import Inputs
from gapfloor.analysis.labels import combined_codes
from gapfloor.report.findings import FLOOR

_PLACE = ("game", "mode", "level_set", "draw")


def floor_on_same_draws(inputs: Inputs) -> bool | None:
    """True if, in every draw, each run played the levels that the floor played; None where levels are not recorded.

    Games and level sets without any floor are left out: that they have none is said elsewhere.
    """
    codes, references = inputs.labels["reference"]
    if FLOOR not in references or "" not in references:
        return None
    if (inputs.level_seed < 0).any():
        return None
    floors = {
        place: np.unique(inputs.level_seed[rows])
        for rows, place in _groups_of(inputs, codes == references.index(FLOOR), _PLACE)
    }
    known = {place[:3] for place in floors}
    for rows, labels in _groups_of(
        inputs, codes == references.index(""), (*_PLACE, "budget", "agent", "seed", "rule")
    ):
        place = labels[:4]
        if place[:3] not in known:
            continue
        if place not in floors or not np.array_equal(np.unique(inputs.level_seed[rows]), floors[place]):
            return False
    return True


def _groups_of(
    inputs: Inputs, chosen: npt.NDArray[Any], names: tuple[str, ...]
) -> list[tuple[npt.NDArray[Any], tuple[str, ...]]]:
    """The rows among `chosen` that share their labels `names`, with these labels."""
    at = np.flatnonzero(chosen)
    if not at.size:
        return []
    key = combined_codes([(inputs.labels[name][0][at], inputs.labels[name][1]) for name in names])
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    groups = []
    for part in np.split(at[order], cuts):
        groups.append(
            (part, tuple(inputs.labels[name][1][inputs.labels[name][0][part[0]]] for name in names))
        )
    return groups
