"""Calibration: which actions are the same, measured by cloning states in the real engine."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "ActionClasses": "classes",
    "CalibrationSettings": "classes",
    "ProbeObserver": "probe",
    "ProbeSettings": "probe",
    "classes_for": "class_measurement",
    "load_classes": "classes",
    "measure_classes": "class_measurement",
    "read_classes": "classes",
    "shipped_classes": "classes",
    "state_partitions": "cloning",
    "visited_states": "class_measurement",
    "write_classes": "classes",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
