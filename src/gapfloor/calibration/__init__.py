"""Calibration: which actions are the same, measured by cloning states in the real engine."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "ActionClasses": "classes",
    "CalibrationSettings": "classes",
    "ProbeObserver": "probe",
    "ProbeSettings": "probe",
    "classes_for": "class_measurement",
    "load_classes": "class_files",
    "measure_classes": "class_measurement",
    "read_classes": "class_files",
    "shipped_classes": "class_files",
    "state_partitions": "cloning",
    "visited_states": "state_samples",
    "write_classes": "class_files",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
