"""Where action classes are kept: `classes/` of a store, and the classes of all games that gapfloor ships."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import json
import re
from pathlib import Path

from gapfloor.actions.partition import Partition
from gapfloor.calibration.classes import ActionClasses
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.registry import written_game
from gapfloor.errors import StoreError, UsageError
from gapfloor.records.atomic import write_text_atomically


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
    except (
        KeyError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        RecursionError,
        UsageError,
    ) as error:
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
