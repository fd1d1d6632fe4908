"""Which tasks of a study are done; this is always read from the store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gapfloor.errors import StoreError
from gapfloor.levels import LevelSet
from gapfloor.play.cell import Design
from gapfloor.play.outcome import is_complete
from gapfloor.play.references import recorded_name
from gapfloor.records.run_identity import RunIdentity
from gapfloor.records.store import Store
from gapfloor.rules import rule_kind
from gapfloor.study.digest import inputs_digest
from gapfloor.study.graph import Task
from gapfloor.study.model import Study
from gapfloor.training.spec import describe_difference


class Survey:
    """A look at the store at one moment."""

    def __init__(self, study: Study, *, home: Path, root: Path) -> None:
        self._study, self._home, self._store = study, home, Store(root)
        check_runs(study, root)
        # Building all specifications takes time, and every run asks for its own.
        self._specs = {spec.run: (group, spec) for group, spec in study.training_specs()}
        self._cells: Counter[tuple[str, ...]] = Counter()
        settings = study.evaluation
        protocol = study.protocol(study.games[0])
        for cell in self._store.known_cells():
            labels, content = cell.manifest.labels, cell.manifest.content
            if not _has_design(content, protocol.design) or labels["draw"] not in protocol.draws:
                continue
            if labels["reference"]:
                self._cells[labels["game"], labels["reference"], labels["level_set"]] += 1
                continue
            rule = rule_kind(labels["rule"])
            if is_complete(cell.manifest.record, rule, probe_states=settings.probe):
                run = RunIdentity.from_labels(labels).name
                self._cells[run, labels["rule"], labels["level_set"]] += 1
        self.damaged = [path.stem for path in self._store.damaged]

    def cells_of(self, task: Task) -> int:
        """How many of a floor's or an evaluation's cells are there."""
        if task.kind == "floor":
            name = recorded_name(task.reference)[0]
            return sum(self._cells[task.game, name, role] for role in ("train", "test"))
        return self._cells[task.run, task.rule, task.level_set]

    def cells_wanted(self, task: Task) -> int:
        """How many cells a floor or an evaluation has."""
        protocol = self._study.protocol(task.game)
        if task.kind == "floor":
            return len(protocol.draws) * len(protocol.level_sets) * recorded_name(task.reference)[1]
        return len(protocol.draws)

    def is_done(self, task: Task) -> bool:
        """Whether a task's results are in the store."""
        root = self._store.root
        if task.kind == "train":
            return self._is_trained(task)
        if task.kind in ("floor", "evaluate"):
            return self.cells_of(task) >= self.cells_wanted(task)
        if task.kind == "calibrate":
            from gapfloor.calibration import load_classes

            return load_classes(root, self._study.protocol(task.game).engines[0]) is not None
        if task.kind == "replay":
            return any(f'"{task.game}"' in path.read_text() for path in root.glob("replays/*.json"))
        if task.kind == "cka":
            runs = [spec.run for _, spec in self._specs.values() if spec.game == task.game]
            return all((root / "results" / "cka" / f"{run}.json").is_file() for run in runs)
        recorded = root / "results" / ("analysis.inputs" if task.kind == "analyse" else "report.inputs")
        if not recorded.is_file():
            return False
        return recorded.read_text().strip() == inputs_digest(self._study, self._home, self._store, task.kind)

    def _is_trained(self, task: Task) -> bool:
        path = self._store.root / "runs" / task.run / "checkpoint.safetensors"
        if not path.is_file():
            return False
        group, spec = self._specs[task.run]
        if group.checkpoints:
            source = self._home / group.checkpoints / spec.run / path.name
            return not source.is_file() or path.read_bytes() == source.read_bytes()
        from gapfloor.training.checkpoint_file import read_header

        return int(read_header(path)["iteration"]) >= spec.n_updates


def check_runs(study: Study, root: Path) -> None:
    """Refuse a store that holds another run under the name of one of the study's, e.g. one of other `steps`."""
    for group, spec in study.training_specs():
        path = root / "runs" / spec.run / "checkpoint.safetensors"
        if group.checkpoints or not path.is_file():
            continue
        from gapfloor.training.checkpoint_file import read_header

        header, asked = read_header(path), spec.to_dict()
        difference = describe_difference({name: header.get(name) for name in asked}, asked)
        if difference:
            raise StoreError(
                f"{path} belongs to another run of this name: {difference}. Give these runs another `budget` in the "
                "study file, or choose another --store."
            )


def _has_design(content: Mapping[str, Any], design: Design) -> bool:
    asked = design.content(LevelSet.parse(content["levels"]))
    return all(content.get(name) == asked.get(name) for name in ("slots", "burn_in", "episodes", "repeats"))
