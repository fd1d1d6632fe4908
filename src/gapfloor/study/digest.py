"""The inputs of analysis and report as one hash; both are made again when it changes."""

from __future__ import annotations

import glob
import hashlib
from pathlib import Path

from gapfloor.records.manifest import canonical_json
from gapfloor.records.store import Store
from gapfloor.settings import to_table
from gapfloor.study.model import Study


def inputs_digest(study: Study, home: Path, store: Store, kind: str) -> str:
    """The hash of the study, the plan and every cell (and, for the report, every other result)."""
    digest = hashlib.sha256(canonical_json(to_table(study)).encode())
    if study.plan:
        plan = home / study.plan
        # A name may hold signs that are patterns, e.g. plan[1].toml.
        for pattern in (f"{glob.escape(plan.name)}*", f"{glob.escape(plan.stem)}*.lock*"):
            for path in sorted(plan.parent.glob(pattern)):
                digest.update(path.read_bytes())
    for cell in store.cells():
        digest.update(f"{cell.manifest.key} {cell.manifest.episodes_sha256} ".encode())
        digest.update(canonical_json(cell.manifest.record).encode())
    if kind == "report":
        for pattern in (
            "replays/*",
            "results/cka/*",
            "classes/*",
            "runs/*/log.parquet",
            "results/verification.json",
        ):
            for path in sorted(store.root.glob(pattern)):
                digest.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()
