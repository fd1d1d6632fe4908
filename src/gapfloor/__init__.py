"""gapfloor: what a generalization gap really measures.

The public names are imported on first use, so that `import gapfloor` loads neither torch nor an engine. Their types
are in `__init__.pyi`, which editors and type checkers read.
"""

from __future__ import annotations

from gapfloor.lazy import lazy_names

__version__ = "0.1.0"

_HOMES = {
    "Plan": "plan.model",
    "Store": "records.store",
    "Study": "study.model",
    "TrainOnLevels": "integrations.train_on_levels",
    "analyse": "api.analyse",
    "audit_scan": "api.audit_scan",
    "calibrate": "api.calibrate",
    "check_levels": "api.check_levels",
    "compare": "api.compare",
    "evaluate": "api.evaluate",
    "load_policy": "api.load_policy",
    "measure_floor": "api.floor",
    "plan_next": "api.plan_next",
    "plot": "api.plot",
    "power": "api.power",
    "probe_rule": "audit.probe",
    "replay": "api.replay",
    "sweep": "api.sweep",
    "train": "api.train",
    "training_curve": "api.training_curve",
    "verify_store": "api.verify",
    "write_report": "api.report",
}

__all__ = ["__version__", *sorted(_HOMES)]
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
