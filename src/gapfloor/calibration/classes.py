"""Action classes of a game with their provenance: what was measured, on which states, with which engine.

They are kept in `classes/` of a store, and those of all games ship with gapfloor. The content says nothing about time
or host, so the same measurement gives the same bytes everywhere.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.actions.partition import Partition
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.registry import written_game
from gapfloor.errors import StoreError, UsageError
from gapfloor.json_values import DAMAGED
from gapfloor.levels.schedule import LevelSet
from gapfloor.records.atomic import write_text_atomically

#: Who plays when no policy does.
RANDOM_PLAY = "random"

#: The paper's training levels.
TRAINING_LEVELS = LevelSet(0, 200)

FORMAT = "gapfloor action classes 1"


@dataclass(frozen=True)
class CalibrationSettings:
    """How states are sampled and compared; the defaults are the paper's."""

    states: int = 400
    horizon: int = 5
    """Steps that are compared: the action's own and the no-ops after it."""
    seed: int = 0
    levels: LevelSet = TRAINING_LEVELS
    spacing: int = 20
    """States visited for each one taken. Neighbouring states are alike: at 1, coinrun's agents have hardly left the
    start and do not reach the crates, which alone tell DOWN from a no-op; at 10 one seed in five saw too few."""

    def __post_init__(self) -> None:
        for name in ("states", "horizon", "spacing"):
            if getattr(self, name) < 1:
                raise UsageError(f"The setting {name} is {getattr(self, name)}: it must be at least 1.")


@dataclass(frozen=True)
class ActionClasses:
    """The partition of a game's actions, and how it was found."""

    engine: EngineSpec
    settings: CalibrationSettings
    play: str
    """`random`, or the fingerprint of the policy whose sampled play was visited."""
    partition: Partition
    """Actions that are the same in every state seen."""
    action_names: tuple[str, ...]
    equal_states: tuple[tuple[int, ...], ...]
    """In how many states action i was the same as action j."""
    mean_state_k: float
    """Classes of one state, on average."""

    @property
    def k(self) -> int:
        """The number of classes."""
        return self.partition.k

    @property
    def class_names(self) -> tuple[str, ...]:
        """Each class in words: its plainest action."""
        return tuple(class_name(members, self.action_names) for members in self.partition.classes)

    @property
    def class_texts(self) -> tuple[str, ...]:
        """Each class as its plainest action and the others that are the same, e.g. LEFT = LEFT+UP."""
        return tuple(
            " = ".join(dict.fromkeys((name, *(self.action_names[action] for action in members))))
            for name, members in zip(self.class_names, self.partition.classes, strict=True)
        )

    def to_json(self) -> dict[str, Any]:
        """The classes as plain JSON values."""
        engine, settings = self.engine, self.settings
        return {
            "format": FORMAT,
            "engine": engine.engine,
            "engine_version": engine.version,
            "game": engine.game,
            "mode": engine.mode,
            "options": dict(engine.options),
            "k": self.k,
            "classes": [list(members) for members in self.partition.classes],
            "class_names": list(self.class_names),
            "n_states": settings.states,
            "mean_state_k": self.mean_state_k,
            "play": self.play,
            "seed": settings.seed,
            "horizon": settings.horizon,
            "levels": str(settings.levels),
            "spacing": settings.spacing,
            "action_names": list(self.action_names),
            "equal_states": [list(row) for row in self.equal_states],
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> ActionClasses:
        """The opposite of `to_json`; raises KeyError, TypeError, ValueError or UsageError on other content."""
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
        partition = Partition.from_classes(content["classes"])
        names = tuple(str(name) for name in content["action_names"])
        equal = tuple(tuple(int(count) for count in row) for row in content["equal_states"])
        if len(names) != partition.n_actions or any(len(row) != len(names) for row in (equal, *equal)):
            raise ValueError("its actions, classes and matrix differ in size")
        engine, version, game, mode = (
            str(content[name]) for name in ("engine", "engine_version", "game", "mode")
        )
        options = tuple(sorted((str(name), value) for name, value in content["options"].items()))
        numbers = {name: int(content[name]) for name in ("horizon", "seed", "spacing")}
        levels = LevelSet.parse(content["levels"])
        return cls(
            engine=EngineSpec(engine, version, game, mode, options),
            settings=CalibrationSettings(states=int(content["n_states"]), levels=levels, **numbers),
            play=str(content["play"]),
            partition=partition,
            action_names=names,
            equal_states=equal,
            mean_state_k=float(content["mean_state_k"]),
        )

    def to_text(self) -> str:
        """The JSON text that is stored: one key per line, and the matrix with one row per line."""
        lines = []
        for key, value in self.to_json().items():
            if key == "equal_states":
                rows = ",\n  ".join(json.dumps(row) for row in value)
                lines.append(f' "{key}": [\n  {rows}\n ]')
            else:
                lines.append(f' "{key}": {json.dumps(value)}')
        return "{\n" + ",\n".join(lines) + "\n}\n"


def class_name(members: tuple[int, ...], action_names: tuple[str, ...]) -> str:
    """The plainest action of a class: no-op where it is one, else the one with the fewest keys.

    >>> class_name((0, 1, 2), ("LEFT+DOWN", "LEFT", "LEFT+UP", "no-op"))
    'LEFT'
    """
    names = [action_names[action] for action in members]
    for name in names:
        if name == "no-op" or name.endswith("(no-op)"):
            return name
    return min(names, key=lambda name: name.count("+"))


def classes_path(store_root: str | Path, spec: EngineSpec) -> Path:
    """The file that holds the classes of `spec` in a store."""
    name = "-".join(re.sub(r"[^A-Za-z0-9._-]+", "_", part) for part in (spec.game, spec.mode))
    if spec.options:
        name += "-" + hashlib.sha256(json.dumps(spec.options).encode()).hexdigest()[:12]
    return Path(store_root) / "classes" / f"{name}.json"


def read_classes(store_root: str | Path, spec: EngineSpec) -> ActionClasses | None:
    """The classes of `spec` in a store with their provenance, or None; damaged files are refused."""
    path = classes_path(store_root, spec)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise StoreError(f"{path} cannot be read ({error}): delete it and calibrate again.") from error
    try:
        classes = ActionClasses.from_json(json.loads(text))
    except (*DAMAGED, UsageError) as error:
        raise StoreError(
            f"{path} does not hold action classes ({error}): delete it and calibrate again."
        ) from error
    if classes.engine != spec:
        raise StoreError(
            f"{path} was measured with {classes.engine.engine} {classes.engine.version} and {spec.engine} "
            f"{spec.version} is in use: run gapfloor calibrate {written_game(spec)} --mode {spec.mode} --replace."
        )
    return classes


def load_classes(store_root: str | Path, spec: EngineSpec) -> Partition | None:
    """The partition of `spec` in a store, or None if the store has none."""
    classes = read_classes(store_root, spec)
    return classes.partition if classes is not None else None


def write_classes(store_root: str | Path, classes: ActionClasses) -> Path:
    """Write classes into a store; the path of the file."""
    path = classes_path(store_root, classes.engine)
    write_text_atomically(path, classes.to_text())
    return path


def shipped_classes(game: str, mode: str = "easy") -> ActionClasses | None:
    """The classes that come with gapfloor (measured as in the paper), or None for other modes."""
    return _shipped().get((game, mode))


@functools.cache
def _shipped() -> dict[tuple[str, str], ActionClasses]:
    resource = importlib.resources.files("gapfloor") / "data" / "classes.json"
    if not resource.is_file():
        return {}
    games = [
        ActionClasses.from_json(entry) for entry in json.loads(resource.read_text(encoding="utf-8"))["games"]
    ]
    return {(entry.engine.game, entry.engine.mode): entry for entry in games}
