"""gapfloor where people already work: during training, in trackers and on the Hugging Face Hub."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "GapCallback": "stable_baselines3",
    "GapMonitor": "gap_monitor",
    "GapReading": "gap_monitor",
    "GapWarning": "gap_monitor",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
