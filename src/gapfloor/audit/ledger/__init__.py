"""Audits done by hand: entries with their evidence lines, and checking those lines in clones."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "LedgerEntry": "entries",
    "count_ledger": "entries",
    "load_ledger": "entries",
    "verify_ledger": "verify",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
