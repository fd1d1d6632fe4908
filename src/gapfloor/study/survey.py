"""What the store of a study holds at one moment: tasks read from it whether they are done."""

from __future__ import annotations

import glob
import hashlib
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from gapfloor.levels.schedule import LevelSet
from gapfloor.play.cell import design_from, is_complete
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import canonical_json
from gapfloor.rules.rule import rule_kind
from gapfloor.settings import to_table
from gapfloor.study.model import Study


class WantedCell(NamedTuple):
    """A cell by what is known before its policy is loaded."""

    game: str
    mode: str
    name: str
    """The reference, or the run and its rule."""
    level_set: str
    levels: LevelSet
    draw: int


class Survey:
    """A look at the store of a study at one moment."""

    def __init__(self, study: Study, root: Path) -> None:
        self.study, self.store = study, Store(root)
        self.cells: Counter[WantedCell] = Counter()
        """Cells of the study's design with everything that it measures; networks of one reference share a name."""
        design = study.protocol(study.games[0]).design
        for cell in self.store.cells():
            labels, content = cell.manifest.labels, cell.manifest.content
            if design_from(content) != design:
                continue
            name = labels["reference"]
            if not name:
                rule = rule_kind(labels["rule"])
                if not is_complete(cell.manifest.record, rule, probe_states=study.evaluation.probe):
                    continue
                name = f"{RunIdentity.from_labels(labels).name} {labels['rule']}"
            levels = LevelSet.parse(content["levels"])
            known = labels["game"], labels["mode"], name, labels["level_set"], levels, labels["draw"]
            self.cells[WantedCell(*known)] += 1


#: What a report shows besides cells. A file that is still being written has a name that begins with a dot.
_OTHER_INPUTS = (
    "replays/[!.]*", "results/cka/[!.]*", "classes/[!.]*", "runs/*/log.parquet", "results/verification.json",
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
