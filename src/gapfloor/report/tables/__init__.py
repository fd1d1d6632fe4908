"""Every table of the paper by name, each with its robust estimates."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["build_tables"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(importlib.import_module("gapfloor.report.tables.build"), name)
    raise AttributeError(f"module 'gapfloor.report.tables' has no attribute '{name}'")
