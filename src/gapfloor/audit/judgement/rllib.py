"""Evaluations that RLlib runs itself, from the experiment files (YAML, JSON) that configure them.

An experiment file names an algorithm (`run`), an environment (`env`) and its settings (`config`). With an
`evaluation_interval` RLlib plays whole episodes on separate workers with the weights of that moment, under `config`
with `evaluation_config` merged over it. Nothing of this is in the repository's Python code.
Source: ray-project/ray rllib/algorithms/algorithm_config.py (explore=True by default; evaluation() documents the merge)
and rllib/utils/exploration (StochasticSampling draws, EpsilonGreedy mixes, explore=False is deterministic in both).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gapfloor.audit.interpreter.values import Mark
from gapfloor.audit.judgement.levels import EnvironmentLevels, differ
from gapfloor.audit.judgement.paths import EvaluationPath
from gapfloor.audit.reading.settings import FileSetting, read_settings
from gapfloor.audit.reading.sources import SettingsFile

#: Algorithms whose default exploration draws from the policy.
_DRAWING = frozenset({"PPO", "APPO", "DDPPO", "IMPALA", "A2C", "A3C", "PG", "SAC"})
_RULES = {"StochasticSampling": "sampled", "EpsilonGreedy": "epsilon-greedy"}
_NOTHING = object()


@dataclass(frozen=True)
class Experiment:
    """One experiment of a file: its settings by the keys that lead to them."""

    file: str
    settings: dict[tuple[str, ...], FileSetting]
    stated: frozenset[tuple[str, ...]] = frozenset()
    """The settings that are literals of the code, so that no user sets them."""

    def value(self, *path: str) -> Any:
        """The value under these keys, or a marker that there is none."""
        found = self.settings.get(path)
        return _NOTHING if found is None else found.value

    def has(self, *path: str) -> bool:
        """Whether there is a value under these keys."""
        return path in self.settings

    def mark(self, what: str, *path: str) -> list[Mark]:
        """The line of a setting, if the file has it."""
        found = self.settings.get(path)
        return [] if found is None else [Mark(found.file, found.line, what)]

    def has_group(self, *path: str) -> bool:
        """Whether there are settings below these keys."""
        return any(key[: len(path)] == path for key in self.settings)


def rllib_paths(files: list[SettingsFile]) -> list[EvaluationPath]:
    """One path for each experiment whose evaluation RLlib runs."""
    found = []
    for file in files:
        if "evaluation_interval" not in file.text or "config" not in file.text:
            continue
        for experiment in _experiments(file):
            interval = experiment.value("config", "evaluation_interval")
            if interval is not _NOTHING and interval not in (None, 0, "None", "null"):
                found.append(evaluation_path(experiment))
    return found


def _experiments(file: SettingsFile) -> list[Experiment]:
    groups: dict[str, dict[tuple[str, ...], FileSetting]] = {}
    for setting in read_settings(file):
        if len(setting.path) > 1:
            groups.setdefault(setting.path[0], {})[setting.path[1:]] = setting
    named = {name: group for name, group in groups.items() if ("run",) in group and ("env",) in group}
    return [Experiment(file.path, group) for group in named.values()]


def evaluation_path(experiment: Experiment) -> EvaluationPath:
    """The evaluation that RLlib runs for an experiment."""
    rule, provenance, marks = _rule(experiment)
    heldout, levels, level_marks = _levels(experiment)
    interval = experiment.mark(
        "RLlib evaluates frozen weights on its own workers", "config", "evaluation_interval"
    )
    return EvaluationPath(
        script=experiment.file,
        rule=rule,
        provenance=provenance,
        in_loop=False,
        evaluates_heldout=heldout,
        levels=levels,
        seeded_levels=None,
        same_procedure=False,
        agent="policy-gradient" if rule == "sampled" else None,
        inert_flags=(),
        candidates=() if rule != "unresolved" else ("not known: RLlib's exploration of this algorithm",),
        evidence=(*interval, *level_marks, *marks),
        has_training=True,
    )


def _rule(experiment: Experiment) -> tuple[str, str, list[Mark]]:
    for place in (("config", "evaluation_config"), ("config",)):
        explore = experiment.value(*place, "explore")
        if explore is not _NOTHING:
            marks = experiment.mark(f"explore is {explore!r}", *place, "explore")
            break
    else:
        explore, marks = True, []
    if explore not in (True, False, "True", "False"):
        return "unresolved", "unresolved", marks
    provenance = "config-option" if marks else "default-argument"
    if marks and (*place, "explore") in experiment.stated:
        # A literal for the evaluation is stated there; one for the whole run may be meant for training.
        provenance = "explicit-call-site" if len(place) == 2 else "unresolved"
    if explore in (False, "False"):
        return "argmax", provenance, marks
    for group in (("config", "evaluation_config", "exploration_config"), ("config", "exploration_config")):
        kind = experiment.value(*group, "type")
        if kind is not _NOTHING:
            marks += experiment.mark(f"exploration by {kind}", *group, "type")
            rule = _RULES.get(str(kind).rsplit(".", 1)[-1], "unresolved")
            return rule, "config-option" if rule != "unresolved" else rule, marks
    if str(experiment.value("run")) not in _DRAWING or experiment.has_group("config", "exploration_config"):
        return "unresolved", "unresolved", marks
    return "sampled", provenance, [*marks, *experiment.mark("this algorithm draws while it explores", "run")]


def _levels(experiment: Experiment) -> tuple[bool | None, str | None, list[Mark]]:
    """Whether the evaluation's levels are held out: its own environment settings over those of training."""
    override = ("config", "evaluation_config", "env_config")
    changes_env = experiment.has_group("config", "evaluation_config", "env")
    train = _level_set(experiment, ("config", "env_config"), None)
    if train is None or changes_env:
        touched = changes_env or experiment.has_group(*override)
        return (None if touched else False), None, []
    test = _level_set(experiment, override, train)
    assert test is not None
    return differ(test, train), test.text, [*train.marks, *test.marks]


def _level_set(
    experiment: Experiment, place: tuple[str, ...], base: EnvironmentLevels | None
) -> EnvironmentLevels | None:
    count, start = experiment.value(*place, "num_levels"), experiment.value(*place, "start_level")
    inherited = base.key if base is not None and base.key else (0, 0)
    if count is _NOTHING:
        if base is None:
            return None
        count = inherited[0]
    start = inherited[1] if start is _NOTHING else start
    marks = tuple(experiment.mark(f"level count {count}", *place, "num_levels"))
    if not isinstance(count, int) or not isinstance(start, int):
        return EnvironmentLevels("unknown", (0, 0), "not known", marks, ())
    if count == 0:
        return EnvironmentLevels("full", (0, start), "full distribution", marks, ())
    return EnvironmentLevels("finite", (count, start), f"{count} levels from {start}", marks, ())
