"""What a researcher takes away: tables, citable numbers, figures, the page and the gap card."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "write_report": "write",
    "load_report_source": "source",
    "build_tables": "tables.build",
    "build_numbers": "numbers",
    "build_card": "card",
    "Findings": "findings",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
