"""How contrasts are written: intervals, small p, level sets in words, and values that JSON can hold."""

from __future__ import annotations

import math
from typing import Any

from gapfloor.statistics.conventions import CONFIDENCE, Pair


def p_text(p: float) -> str:
    """A p value with two digits; small ones as powers of ten.

    >>> p_text(0.0312), p_text(2.5e-7), p_text(float("nan"))
    ('0.031', '2.5e-07', '-')
    """
    if not math.isfinite(p):
        return "-"
    return f"{p:.2g}" if p < 0.1 else f"{p:.2f}"


def interval_text(pair: Pair) -> str:
    """An interval with its confidence, or nothing where there is none."""
    if not all(math.isfinite(end) for end in pair):
        return "(no interval)"
    return f"[{pair[0]:+.2f}, {pair[1]:+.2f}] ({CONFIDENCE:.0%})"


def level_set_words(level_set: str) -> str:
    """A level set at the start of a sentence."""
    return {"train": "Training levels", "test": "Held-out levels"}.get(level_set, f"Levels '{level_set}'")


def jsonable(value: Any) -> Any:
    """Tuples as lists, keys as text, and null for what is no number."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value
