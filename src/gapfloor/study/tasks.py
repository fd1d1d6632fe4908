"""The tasks of a study, one class per kind: what it needs, whether it is done, how it is done, how long it takes.

Every task is idempotent and writes whole files with bytes that depend on the study alone, so it does not matter
where it runs, how often it is started, or what else runs at the same time. Whether it is done is read from the store.
"""

from __future__ import annotations

import functools
import os
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from gapfloor.api.policy_campaign import CampaignSettings, play_policies
from gapfloor.engines.procgen import N_ACTIONS
from gapfloor.errors import GapfloorError, StoreError
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import Protocol
from gapfloor.play.references import BEST_CONSTANT, recorded_name, relative_to_file
from gapfloor.records.atomic import write_atomically, write_text_atomically
from gapfloor.records.store import Store
from gapfloor.rules.rule import parse_rules, rule_kind
from gapfloor.settings import shipped
from gapfloor.study.model import Study
from gapfloor.study.survey import Survey, WantedCell, report_digest
from gapfloor.training.spec import TrainingSpec


@dataclass(frozen=True)
class Workplace:
    """What a task works with, wherever it runs."""

    study: Study
    root: Path
    """The store's folder, as every machine sees it."""
    backend: str | None = None
    """The library of all networks, chosen once for the whole study, whatever else a machine has installed; None: the
    study's own, that of the store, or the usual one."""
    folder: str = field(default_factory=os.getcwd)
    """Where the command was typed: the user's own modules are found there."""

    @property
    def store(self) -> Store:
        """The study's store."""
        return Store(self.root)


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """One idempotent piece of work."""

    kind: ClassVar[str]
    name: str
    """Unique in the study."""
    needs: tuple[str, ...] = ()
    """Names of the tasks that must be done first."""

    @abstractmethod
    def is_done(self, survey: Survey) -> bool:
        """Whether the task's results are in the store."""

    @abstractmethod
    def perform(self, workplace: Workplace) -> None:
        """Do the task, in whatever process this is."""

    def seconds(self, study: Study) -> float:
        """Seconds of one core that the task is expected to take."""
        return float(rates()["seconds"][self.kind])


@dataclass(frozen=True, kw_only=True)
class TrainTask(Task):
    """Trains one run, or copies its checkpoint from the folder that the study names."""

    kind = "train"
    spec: TrainingSpec
    checkpoints: str = ""
    """Folder of trained runs, relative to the study file; empty: train."""

    def is_done(self, survey: Survey) -> bool:
        path = survey.store.root / "runs" / self.spec.run / "checkpoint.safetensors"
        if not path.is_file():
            return False
        if self.checkpoints:
            source = self._source(survey.study) / path.name
            return not source.is_file() or path.read_bytes() == source.read_bytes()
        from gapfloor.training.checkpoint import read_header

        header = read_header(path)
        remedy = "Give these runs another `budget` in the study file, or choose another --store."
        self.spec.refuse_other(header, path, remedy=remedy)
        return int(header["iteration"]) >= self.spec.n_updates

    def perform(self, workplace: Workplace) -> None:
        if not self.checkpoints:
            from gapfloor.training.trainer import train

            train(self.spec, store=workplace.root, threads=1)
            return
        run, source = self.spec.run, self._source(workplace.study)
        if not (source / "checkpoint.safetensors").is_file():
            raise StoreError(f"The checkpoint of {run} is not in {self.checkpoints}: add it.")
        # The log first: the checkpoint is what says that the run is there.
        for name in ("log.parquet", "checkpoint.safetensors"):
            if (source / name).is_file():
                target = workplace.root / "runs" / run / name
                write_atomically(target, functools.partial(shutil.copyfile, source / name))

    def _source(self, study: Study) -> Path:
        return study.home / self.checkpoints / self.spec.run

    def seconds(self, study: Study) -> float:
        per_second = rates()["train_steps_per_core_second"]
        rate = per_second.get(self.spec.encoder, per_second["impala"])
        return 1.0 if self.checkpoints else float(self.spec.steps / rate)


@dataclass(frozen=True, kw_only=True)
class CalibrateTask(Task):
    """Measures which actions of a game do the same."""

    kind = "calibrate"
    game: str

    def is_done(self, survey: Survey) -> bool:
        from gapfloor.calibration.classes import load_classes

        return load_classes(survey.store.root, survey.study.protocol(self.game).engines[0]) is not None

    def perform(self, workplace: Workplace) -> None:
        from gapfloor.calibration.class_measurement import classes_for

        classes_for(workplace.root, workplace.study.protocol(self.game).engines[0])


@dataclass(frozen=True, kw_only=True)
class CellTask(Task):
    """A task that plays cells of one game."""

    game: str

    def protocol(self, study: Study) -> Protocol:
        """What is played."""
        return study.protocol(self.game)

    @abstractmethod
    def recorded_name(self) -> tuple[str, int]:
        """The name under which the cells are known (`WantedCell.name`), and the number of networks behind it."""

    def cells(self, study: Study) -> Counter[WantedCell]:
        """The cells that the task plays, each with the number of networks behind it."""
        protocol, (name, networks) = self.protocol(study), self.recorded_name()
        engine = protocol.engines[0]
        wanted = [WantedCell(engine.game, engine.mode, name, *placement) for placement in protocol.placements]
        return Counter(dict.fromkeys(wanted, networks))

    def is_done(self, survey: Survey) -> bool:
        return self.cells(survey.study) <= survey.cells

    def _play(self, workplace: Workplace, *entrants: Entrant, **wanted: Any) -> None:
        """Play what is wanted of the game with the settings of the study, in this process."""
        study = workplace.study
        settings = study.evaluation
        backend: Any = workplace.backend or settings.backend
        play_policies(
            {self.game: entrants},
            asked=CampaignSettings(
                device=settings.device, backend=backend, batch=settings.batch, workers=1, progress=False
            ),
            store=workplace.store,
            protocol=self.protocol(study),
            is_prepared=True,
            **{"references": (), **wanted},
        )

    def _n_steps(self, n_episodes: float) -> float:
        """About how many steps so many episodes have."""
        known = rates()["floor_steps_per_episode"]
        return float(n_episodes * known.get(self.game, known["other"]))


@dataclass(frozen=True, kw_only=True)
class FloorTask(CellTask):
    """Plays one reference of a game."""

    kind = "floor"
    reference: str

    def recorded_name(self) -> tuple[str, int]:
        return recorded_name(self.reference)

    def perform(self, workplace: Workplace) -> None:
        reference = relative_to_file(self.reference, workplace.study.home, game=self.game)
        self._play(workplace, references=(reference,))

    def n_trials(self, study: Study) -> int:
        """Cells of constant actions on training levels, from which `best-constant` is chosen; known for ProcGen."""
        protocol = self.protocol(study)
        has_trials = self.reference == BEST_CONSTANT and protocol.engines[0].engine == "procgen"
        return N_ACTIONS * len(protocol.draws) if has_trials else 0

    def seconds(self, study: Study) -> float:
        protocol = self.protocol(study)
        n_episodes = protocol.n_episodes + self.n_trials(study) * study.evaluation.episodes
        return self._n_steps(n_episodes) / float(rates()["floor_steps_per_core_second"])


@dataclass(frozen=True, kw_only=True)
class EvaluateTask(CellTask):
    """Plays one run under one rule on one level set."""

    kind = "evaluate"
    run: str
    entrant: Entrant | None = None
    """The policy where the study names it; None: the run of this name in the store."""
    rule: str
    level_set: str

    def protocol(self, study: Study) -> Protocol:
        protocol = study.protocol(self.game)
        mine = tuple(pair for pair in protocol.level_sets if pair[0] == self.level_set)
        return replace(protocol, level_sets=mine)

    def recorded_name(self) -> tuple[str, int]:
        return f"{self.run} {self.rule}", 1

    def perform(self, workplace: Workplace) -> None:
        if self.entrant is not None:
            # The library of the whole study is that of gapfloor's own networks.
            workplace = replace(workplace, backend=None)
        entrant = self.entrant or Entrant(str(workplace.root / "runs" / self.run))
        self._play(workplace, entrant, rules=parse_rules(self.rule), probe=workplace.study.evaluation.probe)

    def seconds(self, study: Study) -> float:
        known, protocol = rates(), self.protocol(study)
        per_second = float(known["inference_frames_per_core_second"])
        if rule_kind(self.rule).is_deterministic:
            # A level that several draws have in common is played once.
            levels = protocol.level_sets[0][1].n
            played = levels * (1 - (1 - 1 / levels) ** protocol.n_episodes)
            return self._n_steps(played) / per_second
        probes = len(protocol.draws) * study.evaluation.probe * known["probe_seconds_per_state"]
        return self._n_steps(protocol.n_episodes) / per_second + float(probes)


@dataclass(frozen=True, kw_only=True)
class ReplayTask(Task):
    """Plays some episodes of a game again and keeps their frames for the page."""

    kind = "replay"
    game: str

    def is_done(self, survey: Survey) -> bool:
        from gapfloor.play.replay import choose_episodes, frame_files

        try:
            chosen = choose_episodes(survey.store.found, **self._choice(survey.study))
        except GapfloorError:  # cells are missing
            return False
        return all(file.is_file() for episode in chosen for file in frame_files(survey.store.root, episode))

    def perform(self, workplace: Workplace) -> None:
        from gapfloor.api.replay import replay
        from gapfloor.play.replay import code_names

        study = workplace.study
        replay(
            workplace.root,
            **self._choice(study),
            policies=[entrant.policy for _, entrant in study.given_runs(self.game)],
            # The study file names the environment, so its code is the user's own.
            allow=code_names(study.protocol(self.game).engines[0]),
        )

    def _choice(self, study: Study) -> dict[str, Any]:
        """Which episodes are played again: arguments of `replay` and `choose_episodes`."""
        game = study.protocol(self.game).engines[0].game
        return {
            "games": (game,), "count": study.replays, "level_set": "test" if study.test != "none" else "train",
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class CkaTask(Task):
    """Measures the CKA of a game's runs with its controls."""

    kind = "cka"
    game: str
    runs: tuple[str, ...]

    def is_done(self, survey: Survey) -> bool:
        folder = survey.store.root / "results" / "cka"
        return all((folder / f"{run}.json").is_file() for run in self.runs)

    def perform(self, workplace: Workplace) -> None:
        from gapfloor.api.cka import cka

        study, root = workplace.study, workplace.root
        runs = [root / "runs" / run for run in self.runs]
        cka(runs, test=study.test, draw=study.protocol(self.game).draws[0], store=root, progress=False)


@dataclass(frozen=True, kw_only=True)
class ReportTask(Task):
    """Applies the plan to all cells, and writes the page, tables, numbers and figures."""

    kind = "report"

    def is_done(self, survey: Survey) -> bool:
        recorded = survey.store.root / _REPORT_INPUTS
        return recorded.is_file() and recorded.read_text().strip() == report_digest(
            survey.study, survey.store
        )

    def perform(self, workplace: Workplace) -> None:
        from gapfloor.api.analyse import analyse
        from gapfloor.report.source import load_report_source
        from gapfloor.report.write import FORMATS, write_report

        study, root = workplace.study, workplace.root
        digest = report_digest(study, workplace.store)
        # From here on the folder is no longer the report of earlier inputs.
        (root / _REPORT_INPUTS).unlink(missing_ok=True)
        analyse(root, study.plan_path)
        source = load_report_source(root, plan=study.plan_path)
        # Named after the study, not the folder: the same study gives the same page wherever it lies.
        write_report(
            replace(source, name=study.name),
            root / "report",
            formats=FORMATS if study.formats is None else study.formats,
            tables=study.tables or (),
        )
        write_text_atomically(root / _REPORT_INPUTS, digest + "\n")


_REPORT_INPUTS = Path("results") / "report.inputs"


def rates() -> dict[str, Any]:
    """Measured speeds of one machine, which ship with the package together with the commands that measured them."""
    return shipped("data/rates.json")
