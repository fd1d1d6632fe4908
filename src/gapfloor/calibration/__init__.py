"""Calibration: which actions are the same, measured by cloning states in the real engine."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
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

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
