"""Calibration: which actions are the same, measured by cloning states in the real engine."""

from __future__ import annotations

import importlib
from typing import Any

_PLACES = {
    "ActionClasses": "classes",
    "CalibrationSettings": "classes",
    "ProbeObserver": "probe",
    "classes_for": "measuring",
    "compare_play": "comparing",
    "load_classes": "stored",
    "measure_classes": "measuring",
    "read_classes": "stored",
    "shipped_classes": "stored",
    "state_partitions": "cloning",
    "visited_states": "visiting",
    "write_classes": "stored",
}

__all__ = [
    "ActionClasses",
    "CalibrationSettings",
    "ProbeObserver",
    "classes_for",
    "compare_play",
    "load_classes",
    "measure_classes",
    "read_classes",
    "shipped_classes",
    "state_partitions",
    "visited_states",
    "write_classes",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
