"""The study file: games, agents, seeds, budgets, rules, draws, references, calibration and plan.

Runs are trained here (ProcGen), copied from a folder of checkpoints, or policies of any kind in any environment.

Everything that can change a result is in the file; the number of workers, and where they run, is not.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from gapfloor.engines.engine import PROCGEN
from gapfloor.engines.registry import split_game
from gapfloor.errors import UsageError
from gapfloor.lazy import LazyMethod
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import (
    DesignSettings,
    InferenceSettings,
    LevelSettings,
    Protocol,
    ProtocolSettings,
    expand_games,
    make_protocol,
)
from gapfloor.play.references import check_references
from gapfloor.policies.backends import check_backend
from gapfloor.policies.formats.spec import FORMATS, meaning_of
from gapfloor.policies.load import PolicySource
from gapfloor.records.run_identity import RunIdentity
from gapfloor.rules.rule import parse_rule, rule_kind
from gapfloor.settings import from_table, read_toml
from gapfloor.training.spec import Hyperparameters, TrainingSpec


@dataclass(frozen=True)
class RunGroup:
    """Runs that share a budget: every game with every encoder and every seed, or with the policy of every seed."""

    games: tuple[str, ...]
    steps: int = 0
    """Steps of training; not needed where `policies` are named."""
    encoders: tuple[str, ...] = ("impala", "fpn")
    seeds: tuple[int, ...] = (1, 2, 3)
    budget: str = ""
    """Label in tables; made from `steps` when empty."""
    environments: int = 16
    checkpoints: str = ""
    """Folder of trained runs to take instead of training, relative to the study file; empty: train."""
    policies: str | None = None
    """Policies to play instead of training, in the form that `evaluate` takes: {seed} and {game} are filled in, and a
    path is relative to the study file, e.g. sb3:models/{game}-{seed}.zip."""
    agent: str | None = None
    """The agent's name in tables where `policies` are named (default: policy)."""

    @property
    def agents(self) -> tuple[str, ...]:
        """The names of the group's agents."""
        return self.encoders if self.policies is None else (self.agent or "policy",)


@dataclass(frozen=True, kw_only=True)
class EvaluationSettings(InferenceSettings, DesignSettings):
    """How every run is evaluated."""

    rules: tuple[str, ...] = ("sampled", "greedy")
    probe: int = 1024


@dataclass(frozen=True)
class AddendumSettings:
    """Rules evaluated in addition to the plan's, in a family of their own (the paper's merged argmax)."""

    rules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Study(LevelSettings):
    """A whole study: what its file says, and what can be done with it.

    Examples:
        >>> import gapfloor
        >>> study = gapfloor.Study.read("studies/demo.toml")
        >>> study.games, study.agents
        (('starpilot', 'coinrun'), ('impala',))
        >>> study.status(workers=2).size.n_runs
        6
    """

    name: str
    runs: tuple[RunGroup, ...]
    description: str = ""
    references: tuple[str, ...] = ("uniform",)
    evaluation: EvaluationSettings = EvaluationSettings()
    addendum: AddendumSettings = AddendumSettings()
    plan: str = ""
    """Analysis plan, relative to the study file; empty: the paper's, by which everything is exploratory."""
    replays: int = 1
    """Number of levels per game whose episodes are replayed for the page; 0: none."""
    cka: bool = False
    """Measure CKA of all runs with its controls (research-notes/cka.md)."""
    formats: tuple[str, ...] | None = None
    """Formats of the report, with the names that `gapfloor report --format` takes; None: all."""
    tables: tuple[str, ...] | None = None
    """Further tables of the report: audit, commits, hyper."""
    home: Path = field(default=Path(), init=False, compare=False, repr=False)
    """Folder of the study file; paths in the file are relative to it."""

    @classmethod
    def read(cls, path: str | Path) -> Study:
        """The checked study of a TOML file: every name, number and combination is tried before any work starts."""
        path = Path(path)
        study = from_table(cls, read_toml(path), source=path.name)
        object.__setattr__(study, "home", path.resolve().parent)
        try:
            _check_study(study)
        except UsageError as error:
            raise UsageError(f"{path.name}: {error}") from None
        return study

    run = LazyMethod("gapfloor.study.commands:run")
    status = LazyMethod("gapfloor.study.commands:status")

    @property
    def games(self) -> tuple[str, ...]:
        """All games, in the order of the file."""
        return tuple(dict.fromkeys(game for group in self.runs for game in expand_games(group.games)))

    @property
    def agents(self) -> tuple[str, ...]:
        """All agents, in the order of the file."""
        return tuple(dict.fromkeys(agent for group in self.runs for agent in group.agents))

    def training_specs(self) -> list[tuple[RunGroup, TrainingSpec]]:
        """Every trained run of the study with its group."""
        from gapfloor.levels.schedule import LevelSet

        return [
            (
                group,
                TrainingSpec(
                    game=game,
                    encoder=encoder,
                    seed=seed,
                    steps=group.steps,
                    mode=self.mode or "easy",
                    levels=LevelSet.parse(self.train),
                    budget=group.budget,
                    hyperparameters=Hyperparameters(environments=group.environments),
                ),
            )
            for group in self.runs
            if group.policies is None
            for game in expand_games(group.games)
            for encoder in group.encoders
            for seed in group.seeds
        ]

    def given_runs(self, game: str) -> list[tuple[str, Entrant]]:
        """The runs of a game whose policies the file names: the name of each, and what is evaluated."""
        engine = self.protocol(game).engines[0]
        found = []
        for group in self.runs:
            if group.policies is None or game not in expand_games(group.games):
                continue
            for seed in group.seeds:
                policy = _relative_policy(group.policies.replace("{game}", engine.game), seed, self.home)
                entrant = Entrant(policy, group.agents[0], group.budget, seed)
                run = RunIdentity(
                    game=engine.game, mode=engine.mode, agent=group.agents[0], budget=group.budget, seed=seed
                )
                found.append((run.name, entrant))
        return found

    def references_of(self, game: str) -> tuple[str, ...]:
        """The references of one game: a run that is named with `{game}` is left out where there is none."""
        return tuple(
            name
            for name in self.references
            if "{game}" not in name
            or os.path.exists(self.home / name.replace("{game}", game).partition(":")[2])
        )

    def protocol(self, game: str) -> Protocol:
        """The evaluation protocol of one game."""
        shared = {
            each.name: getattr(source, each.name)
            for source, kind in ((self, LevelSettings), (self.evaluation, DesignSettings))
            for each in fields(kind)
        }
        return make_protocol([game], ProtocolSettings(**shared))

    @property
    def plan_path(self) -> Path | None:
        """The file of the analysis plan."""
        return self.home / self.plan if self.plan else None

    @property
    def needs_classes(self) -> bool:
        """Whether the games' action classes are read anywhere."""
        rules = (*self.evaluation.rules, *self.addendum.rules)
        return bool(self.evaluation.probe) or any(rule_kind(rule).needs_classes for rule in rules)


def _relative_policy(name: str, seed: int, home: Path) -> str | Path | PolicySource:
    """A policy as `evaluate` takes it; the path of a file next to the study file becomes a full one.

    The folder's name is not the user's text: it becomes part of a path, never of a line that is parsed again.
    """
    filled = name.replace("{seed}", str(seed))
    spec = meaning_of(filled)
    if spec.kind not in FORMATS:
        return home / filled if os.path.exists(home / filled) else filled
    if not os.path.exists(home / spec.path):
        return filled
    return PolicySource(filled, spec=replace(spec, path=home / spec.path))


def _check_study(study: Study) -> None:
    if not study.runs:
        raise UsageError("No runs are named: add a [[runs]] table with games and steps.")
    if not study.evaluation.rules:
        raise UsageError(
            'evaluation.rules is empty: name at least one rule, e.g. rules = ["sampled", "greedy"].'
        )
    for game in study.games:
        study.protocol(game)
    for rule in (*study.evaluation.rules, *study.addendum.rules):
        parse_rule(rule)
    if study.evaluation.batch < 1:
        raise UsageError(f"evaluation.batch is {study.evaluation.batch}: use at least 1.")
    doubled = [rule for rule in study.addendum.rules if rule in study.evaluation.rules]
    if doubled:
        raise UsageError(f"The rule {doubled[0]} is in evaluation.rules and in addendum.rules: name it once.")
    check_references(study.references)
    if study.evaluation.backend is not None:
        check_backend(study.evaluation.backend)
    if "uniform" not in study.references:
        raise UsageError("The reference uniform is left out: without the floor there are no calls.")
    _check_runs(study)
    _check_files(study)


def _check_runs(study: Study) -> None:
    for group in study.runs:
        others = [game for game in expand_games(group.games) if split_game(game)[0] != PROCGEN.name]
        if others and group.policies is None:
            raise UsageError(
                f"{others[0]} is not a game of ProcGen, and no other is trained here: name its `policies` in [[runs]]."
            )
    named = [spec.run for _, spec in study.training_specs()]
    named += [run for game in study.games for run, _ in study.given_runs(game)]
    for run in named:
        if named.count(run) > 1:
            raise UsageError(
                f"The run {run} is named twice: give one of them another budget label, or other seeds."
            )
    if not named:
        raise UsageError("The [[runs]] table has no encoders or no seeds: name at least one of each.")


def _check_files(study: Study) -> None:
    if study.plan_path is not None and not study.plan_path.is_file():
        raise UsageError(
            f"There is no plan {study.plan}: give its path relative to the folder of the study file."
        )
    for group in study.runs:
        runs = [spec.run for other, spec in study.training_specs() if other is group and group.checkpoints]
        # Some may come later; a folder without any is probably another one than was meant. A name that no file can have
        # is absent too; `Path.is_file` would raise.
        files = [study.home / group.checkpoints / run / "checkpoint.safetensors" for run in runs]
        if runs and not any(map(os.path.isfile, files)):
            raise UsageError(
                f"The checkpoint of {runs[0]} is missing from {Path(group.checkpoints)}, and so are all others: "
                "restore them, or leave out `checkpoints` to train them."
            )
    for reference in study.references:
        if not any(reference in study.references_of(game) for game in study.games):
            raise UsageError(f"The reference '{reference}' exists for none of the games: check its path.")
