"""Where a result comes from: engine, versions, level sets, seeds and checkpoints, read from a store.

Nothing here is needed to compute a number; all of it is needed to believe one. An episode file says less than a
store: what is unknown stays empty and the card says so.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import gapfloor
from gapfloor.analysis.inputs import Inputs, combined_codes
from gapfloor.records.stored_cell import StoredCell
from gapfloor.records.verification import StoreVerification, read_verification
from gapfloor.report.findings import FLOOR, TRAIN

#: What identifies a run, and what identifies the levels that were played.
_RUN = ("game", "mode", "budget", "agent", "seed")
_PLACE = ("game", "mode", "level_set", "draw")


class RunRecord(NamedTuple):
    """One run as the page and the card list it."""

    game: str
    mode: str
    budget: str
    agent: str
    seed: str
    policy: str = ""
    """The policy's fingerprint; empty where the data have none."""


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """What is known about how the episodes were made."""

    engines: tuple[str, ...] = ()
    """As "procgen 0.10.7"."""
    backends: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    levels: Mapping[str, str]
    """Level set -> range, as {"train": "0:200"}."""
    levels_are_observed: bool = True
    """Whether the ranges were read off the played levels, not from a specification."""
    draws: tuple[str, ...]
    episodes_per_draw: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()
    """How often a census played each level; empty if a cell was not a census."""
    slots: tuple[int, ...] = ()
    burn_in: tuple[int, ...] = ()
    runs: tuple[RunRecord, ...] = ()
    verification: StoreVerification | None = None
    """What `gapfloor verify` found, if these are the cells that it saw."""
    versions: Mapping[str, str] = field(
        default_factory=lambda: {
            "gapfloor": gapfloor.__version__,
            **{name: importlib.metadata.version(name) for name in ("numpy", "scipy", "pyarrow")},
        }
    )
    """Packages that computed the report."""


def provenance_of_inputs(inputs: Inputs) -> Provenance:
    """What an episode table alone says."""
    codes, sets = inputs.labels["level_set"]
    levels: dict[str, str] = {}
    for name in sorted(sets, key=_training_first):
        seeds = inputs.level_seed[codes == sets.index(name)]
        seeds = seeds[seeds >= 0]
        if seeds.size:
            levels[name] = f"{int(seeds.min())}:{int(seeds.max()) + 1}"
    return Provenance(
        levels=levels,
        draws=inputs.labels["draw"][1],
        runs=tuple(RunRecord(*values) for _, values in _groups_of(inputs, "", _RUN)),
    )


def provenance_of_cells(cells: Sequence[StoredCell], *, root: Path) -> Provenance:
    """What the manifests of a store say."""
    manifests = [cell.manifest for cell in cells]
    contents = [manifest.content for manifest in manifests]

    def texts(name: str) -> tuple[str, ...]:
        return _distinct(_text(content.get(name)) for content in contents)

    def counts(name: str) -> tuple[int, ...]:
        found = (content.get(name) for content in contents)
        return tuple(sorted({value for value in found if isinstance(value, int)}))

    levels: dict[str, dict[str, None]] = {}
    for content in contents:
        levels.setdefault(_text(content.get("level_set")), {})[_text(content.get("levels"))] = None
    runs: dict[tuple[str, ...], RunRecord] = {}
    for manifest in manifests:
        if not manifest.labels.get("reference"):
            labels = tuple(_text(manifest.labels.get(name)) for name in _RUN)
            runs.setdefault(labels, RunRecord._make((*labels, _text(manifest.content.get("policy")))))
    return Provenance(
        engines=_distinct(
            f"{_text(content.get('engine'))} {_text(content.get('engine_version'))}".strip()
            for content in contents
        ),
        backends=texts("backend"),
        devices=_distinct(_text(manifest.record.get("device")) for manifest in manifests),
        levels={name: " or ".join(levels[name]) for name in sorted(levels, key=_training_first)},
        levels_are_observed=False,
        draws=tuple(sorted(texts("draw"), key=lambda draw: (len(draw), draw))),
        episodes_per_draw=counts("episodes"),
        repeats=counts("repeats") if all(content.get("repeats") for content in contents) else (),
        slots=counts("slots"),
        burn_in=counts("burn_in"),
        verification=read_verification(root, cells),
        runs=tuple(runs[key] for key in sorted(runs, key=_run_order)),
    )


def floor_on_same_draws(inputs: Inputs) -> bool | None:
    """True if, in every draw, each run played the levels that the floor played; None where levels are not recorded.

    Games and level sets without any floor are left out: that they have none is said elsewhere.
    """
    floors = {place: np.unique(inputs.level_seed[rows]) for rows, place in _groups_of(inputs, FLOOR, _PLACE)}
    runs = _groups_of(inputs, "", (*_PLACE, "budget", "agent", "seed", "rule"))
    if not (floors and runs) or (inputs.level_seed < 0).any():
        return None
    known = {place[:3] for place in floors}
    for rows, labels in runs:
        place = labels[:4]
        if place[:3] not in known:
            continue
        if place not in floors or not np.array_equal(np.unique(inputs.level_seed[rows]), floors[place]):
            return False
    return True


def _groups_of(
    inputs: Inputs, reference: str, names: tuple[str, ...]
) -> list[tuple[npt.NDArray[Any], tuple[str, ...]]]:
    """The rows of a reference (of runs where it is empty) that share their labels `names`, with these labels."""
    codes, references = inputs.labels["reference"]
    at = np.flatnonzero(codes == references.index(reference)) if reference in references else codes[:0]
    if not at.size:
        return []
    key = combined_codes([(inputs.labels[name][0][at], inputs.labels[name][1]) for name in names])
    order = np.argsort(key, kind="stable")
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    return [
        (part, tuple(inputs.labels[name][1][inputs.labels[name][0][part[0]]] for name in names))
        for part in np.split(at[order], cuts)
    ]


def _run_order(key: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in key)


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


def _training_first(level_set: str) -> tuple[bool, str]:
    return level_set != TRAIN, level_set


def _text(value: Any) -> str:
    return "" if value is None else str(value)
