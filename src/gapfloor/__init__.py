"""gapfloor: what a generalization gap really measures.

The public names are imported on first use, so that `import gapfloor` loads neither torch nor an engine.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "measure_floor": "gapfloor.evaluation.measure",
    "evaluate": "gapfloor.evaluation.measure",
    "probe_rule": "gapfloor.audit.probe",
}

__all__ = ["__version__", *sorted(_HOMES)]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'gapfloor' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
