"""The inputs of a study's report as one hash; the report is written again when it changes."""

from __future__ import annotations

import glob
import hashlib

from gapfloor.records.manifest import canonical_json
from gapfloor.records.store import Store
from gapfloor.settings import to_table
from gapfloor.study.model import Study

#: What a report shows besides cells.
_OTHER_INPUTS = (
    "replays/*", "results/cka/*", "classes/*", "runs/*/log.parquet", "results/verification.json",
)  # fmt: skip


def report_digest(study: Study, store: Store) -> str:
    """The hash of the study, the plan, every cell and every other result."""
    digest = hashlib.sha256(canonical_json(to_table(study)).encode())
    plan = study.plan_path
    if plan is not None:
        # A name may hold signs that are patterns, e.g. plan[1].toml.
        for pattern in (f"{glob.escape(plan.name)}*", f"{glob.escape(plan.stem)}*.lock*"):
            for path in sorted(plan.parent.glob(pattern)):
                digest.update(path.read_bytes())
    for cell in store.cells():
        digest.update(f"{cell.manifest.key} {cell.manifest.episodes_sha256} ".encode())
        digest.update(canonical_json(cell.manifest.record).encode())
    for pattern in _OTHER_INPUTS:
        for path in sorted(store.root.glob(pattern)):
            digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
