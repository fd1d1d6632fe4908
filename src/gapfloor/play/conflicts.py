"""Cells that must not be filed in a store, because it holds the same under another name or another under the same.

Public repositories do contain copied "seeds": one content under two names would count one run twice. And one name for
two contents would be averaged by the analysis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gapfloor.errors import StoreError, UsageError
from gapfloor.play.cell import PROTOCOL_VERSION, CellSpec
from gapfloor.policies.backends import BACKENDS
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import DESIGN_PARTS
from gapfloor.records.stored_cell import StoredCell, canonical_json

#: A run is measured once per store, whatever the engine's version: its cells of another one are not comparable.
_RUN_DESIGN = tuple(part for part in DESIGN_PARTS if part not in ("engine", "engine_version"))


def refuse_conflicts(stored: Sequence[StoredCell], wanted: Sequence[CellSpec], *, root: Path) -> None:
    """Refuse cells that cannot be filed with those of a store, or with each other."""
    old = {cell.manifest.content["protocol"] for cell in stored} - {PROTOCOL_VERSION}
    if old:
        raise StoreError(
            f"The store {root} was filled by another version of gapfloor (protocol {min(old)}; this is "
            f"{PROTOCOL_VERSION}): analyse and report read it, but nothing can be added. Use another --store."
        )
    runs = {(cell.policy, cell.run, cell.engine): cell for cell in wanted if not cell.run.reference}
    for cell in runs.values():
        refuse_other_name(stored, policy=cell.policy, run=RunIdentity.from_labels(cell.labels))
        refuse_other_arithmetic(stored, cell)
    mine: dict[tuple[Any, ...], CellSpec] = {}
    for cell in wanted:
        other = mine.setdefault(_place(cell.labels, cell.content()), cell)
        if other.key != cell.key:  # e.g. upper:A and upper:B
            raise UsageError(
                f"Two different policies would both be filed as the reference {cell.run.name} of {cell.engine.game}: "
                "name one, or measure the other in another --store."
            )
    for each in stored:
        theirs = each.manifest.content
        found = mine.get(_place(each.manifest.labels, theirs))
        if found is not None and found.key != each.manifest.key:
            changes = "; ".join(
                f"{name}: {theirs.get(name)} there, {value} here"
                for name, value in found.content().items()
                if theirs.get(name) != value
            )
            raise StoreError(
                f"The store {root} holds another {found.run.name} of {found.engine.game}, made under another "
                f"specification ({changes}): use another --store."
            )


def refuse_other_arithmetic(stored: Sequence[StoredCell], cell: CellSpec) -> None:
    """Refuse a policy whose logits on a fixed batch differ here from those behind the cells that the store holds."""
    mine, engine = cell.inference, cell.engine
    frames = (engine.game, engine.mode, dict(engine.options))
    for each in stored:
        theirs = each.manifest.content
        is_comparable = theirs["policy"] == cell.policy and theirs.get("batch") == mine.batch
        # The hash is of logits on a game's own first frames.
        labels = each.manifest.labels
        is_comparable &= frames == (labels["game"], labels["mode"], theirs["options"])
        if is_comparable and theirs.get("arithmetic", mine.arithmetic) != mine.arithmetic:
            remedy = "Use machines of one kind, or another --store."
            if theirs["backend"] != mine.backend and theirs["backend"] in BACKENDS:
                remedy = f"Use --backend {theirs['backend']}, or another --store."
            raise StoreError(
                f"The cells of {cell.run.name} in this store were computed with another arithmetic "
                f"({theirs['backend']} {theirs['backend_version']}) than this machine has "
                f"({mine.backend} {mine.backend_version}), and the two cannot be mixed. {remedy}"
            )


def refuse_other_name(stored: Sequence[StoredCell], *, policy: str, run: RunIdentity) -> None:
    """Refuse a policy that the store holds as another run, and a run that it holds with another policy."""
    for cell in (cell for cell in stored if not cell.is_reference):
        other = RunIdentity.from_labels(cell.manifest.labels)
        same_policy = cell.manifest.content["policy"] == policy
        if same_policy and run != other and (run.game, run.mode) == (other.game, other.mode):
            raise StoreError(
                f"{run.description} has exactly the content of {other.description}, which this store already "
                "holds: copies of one checkpoint are one run."
            )
        if run == other and not same_policy:
            raise StoreError(
                f"This store already holds another policy as {run.description}: give this one another "
                "--agent, --budget or --seeds, or use another --store."
            )


def _place(labels: Mapping[str, Any], content: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where the analysis puts a cell: its labels, in its own design."""
    parts = DESIGN_PARTS if labels["reference"] else _RUN_DESIGN
    return (
        *(labels[name] for name in sorted(labels)),
        *(canonical_json(content.get(part)) for part in parts),
    )
