"""The rows of a scan: evaluation paths and training rollouts, and the columns that every output prints.

`COLUMNS` names the quantities of an evaluation path once; JSON, SARIF, Markdown and the tables read them from there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gapfloor.audit.interpreter.facts import pattern
from gapfloor.audit.interpreter.values import Mark

FIELDS = ("evaluates_heldout", "rule", "provenance", "in_loop")
LEVELS = ("proved", "likely", "open")
#: Key of each quantity of a path, and the words above its column.
COLUMNS = {
    "script": "script", "step": "step", "action": "action", "chosen_by": "chosen by", "decided_by": "decided by",
    "rule": "rule", "provenance": "provenance", "in_loop": "in-loop", "evaluates_heldout": "held out",
    "grades": "level of evidence", "levels": "levels", "constructor": "environment",
    "training_levels": "training levels", "training_constructor": "training environment",
    "agent": "agent", "inert_flags": "inert flags", "candidates": "candidates", "doubts": "assumed",
    "evidence": "evidence",
    "is_demonstration": "demonstration", "is_reached": "reached by a script",
}  # fmt: skip
_DEMO = pattern("demo")
_DEMO_SCRIPT = pattern("demo_script")
_IGNORE = re.compile(r"#\s*gapfloor:\s*ignore\b")
VALUE_BASED = pattern("value_based")
_PRIMITIVES = ("sampling primitive", "argmax primitive", "random action", "the network's answer", "noisy")
_DECIDERS = {
    "explicit-call-site": " passed at the call",
    "default-argument": "default argument",
    "config-option": "option '",
}


@dataclass(frozen=True)
class EvaluationPath:
    """One way in which a script measures a policy."""

    script: str
    rule: str
    provenance: str
    in_loop: bool | None
    """Whether weights change while the environment is played."""
    evaluates_heldout: bool | None
    """Whether the levels differ from those of training."""
    step: Mark
    """The line that steps the environment."""
    action: str
    """The expression that is handed to the environment."""
    levels: str | None = None
    training_levels: str | None = None
    """The training levels that they were compared with."""
    constructor: str | None = None
    training_constructor: str | None = None
    agent: str | None = None
    """value-based or policy-gradient, where that is known."""
    inert_flags: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    """What the action may be, where the rule is open."""
    evidence: tuple[Mark, ...] = ()
    doubts: tuple[str, ...] = ()
    """What had to be assumed."""
    grades: Mapping[str, str] = field(default_factory=dict)
    """proved, likely or open, for each field."""
    has_training: bool = False
    functions: tuple[str, ...] = ()
    is_reached: bool = True
    score: int = 0
    reports: bool = True
    """Whether anything on the way to its step sums or keeps what episodes return."""
    chooses_levels: bool = False
    """Whether levels are chosen when an episode begins, otherwise than in training."""

    @property
    def makes_pictures(self) -> bool:
        """Whether it makes pictures or measures time, by the names of its script and functions."""
        return any(_DEMO.search(word) for word in (self._stem, *self.functions))

    @property
    def is_demonstration(self) -> bool:
        """Whether it makes pictures or data, or only shows an agent at play, by its names."""
        return self.makes_pictures or bool(_DEMO_SCRIPT.search(self._stem))

    @property
    def _stem(self) -> str:
        return self.script.rsplit("/", 1)[-1].rsplit(".", 1)[0]

    @property
    def chosen_by(self) -> Mark | None:
        """The line of the primitive that chose the action."""
        return next((mark for mark in self.evidence if mark.what in _PRIMITIVES), None)

    @property
    def decided_by(self) -> Mark | None:
        """The line of the flag, default or setting that decides the rule."""
        wanted = _DECIDERS.get(self.provenance)
        return next((mark for mark in self.evidence[::-1] if wanted and wanted in mark.what), None)

    @property
    def is_stated(self) -> bool:
        """Whether its rule is a choice that somebody made and that can be seen."""
        return self.provenance in ("explicit-call-site", "config-option")

    def is_accepted(self, texts: Mapping[str, tuple[str, ...]]) -> bool:
        """Whether a comment on the stepping line, or on the line above it, accepts it."""
        near = texts.get(self.step.file, ())[max(self.step.line - 2, 0) : self.step.line]
        return any(_IGNORE.search(line) for line in near)

    def to_dict(self) -> dict[str, Any]:
        """The quantities of `COLUMNS` as JSON."""
        return {key: plain(getattr(self, key)) for key in COLUMNS}


@dataclass(frozen=True)
class TrainingRollout:
    """Where a script plays to learn."""

    script: str
    rule: str
    levels: str | None
    constructor: str | None
    evidence: tuple[Mark, ...]


def plain(value: object) -> Any:
    """A value of a row as JSON: a line becomes its file, number and words."""
    if isinstance(value, Mark):
        return {"file": value.file, "line": value.line, "what": value.what}
    if isinstance(value, Mapping):
        return dict(value)
    return [plain(item) for item in value] if isinstance(value, tuple) else value
