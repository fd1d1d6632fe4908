"""gapfloor: what a generalization gap really measures.

The public names are imported on first use, so that `import gapfloor` loads neither torch nor an engine.
"""

from __future__ import annotations

from gapfloor.lazy import lazy_names

__version__ = "0.1.0"

_HOMES = {
    "calibrate": "api.calibrate",
    "check_levels": "api.check_levels",
    "compare": "api.compare",
    "evaluate": "api.evaluate",
    "measure_floor": "api.floor",
    "plan_next": "api.plan_next",
    "power": "api.power",
    "probe_rule": "audit.probe",
    "replay": "api.replay",
    "sweep": "api.sweep",
    "training_curve": "api.training_curve",
    "verify_store": "api.verify",
}

__all__ = ["__version__", *sorted(_HOMES)]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
