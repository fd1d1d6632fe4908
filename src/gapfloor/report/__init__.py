"""What a researcher takes away: tables, citable numbers, figures, the page and the gap card."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "write_report": "write",
    "load_report_source": "source",
    "build_tables": "tables.build",
    "build_numbers": "numbers",
    "build_card": "card",
    "check_card": "card_check",
    "Findings": "findings",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"gapfloor.report.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'gapfloor.report' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_HOMES))
