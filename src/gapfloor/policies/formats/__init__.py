"""Policies that other libraries saved: one prefix for each format, e.g. `sb3:model.zip`."""

from gapfloor.lazy import lazy_names

__all__ = ["FORMATS", "PolicySpec", "load_policy"]

__getattr__, __dir__ = lazy_names(
    __name__, {"FORMATS": "spec", "PolicySpec": "spec", "load_policy": "dispatch"}
)
