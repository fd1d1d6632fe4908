"""gapfloor: what a generalization gap really measures.

The public names are imported on first use, so that `import gapfloor` loads neither torch nor an engine. Their types
are in `__init__.pyi`, which editors and type checkers read.
"""

from __future__ import annotations

from gapfloor.lazy import lazy_names

__version__ = "0.2.0"

_HOMES = {
    "Plan": "plan.model",
    "Store": "records.store",
    "Study": "study.model",
    "TrainOnLevels": "integrations.train_on_levels",
    "analyse": "api.analyse",
    "audit_ledger": "api.audit_ledger",
    "audit_registry": "api.audit_ledger",
    "audit_scan": "api.audit_scan",
    "audit_trace": "api.audit_trace",
    "audit_verify": "api.audit_ledger",
    "calibrate": "api.calibrate",
    "calibrate_box": "api.calibrate",
    "card_check": "api.card",
    "card_compare": "api.card",
    "card_export": "api.card",
    "check_levels": "api.check_levels",
    "cka": "api.cka",
    "compare": "api.compare",
    "doctor": "api.engines",
    "engines_check": "api.engines",
    "engines_list": "api.engines",
    "evaluate": "api.evaluate",
    "known_floor": "api.known_floor",
    "known_floors": "api.known_floor",
    "levels_gap": "api.levels_gap",
    "load_policy": "api.load_policy",
    "measure_floor": "api.floor",
    "plan_addendum": "api.plan_files",
    "plan_check": "api.plan_files",
    "plan_init": "api.plan_files",
    "plan_lock": "api.plan_files",
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
