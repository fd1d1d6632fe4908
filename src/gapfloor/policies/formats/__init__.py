"""Loaders of policies that other libraries saved, each named by a prefix, as `sb3:model.zip`."""

from gapfloor.lazy import lazy_names

__all__ = ["LOADERS", "PolicySpec", "load_policy"]

__getattr__, __dir__ = lazy_names(
    __name__, {"LOADERS": "spec", "PolicySpec": "spec", "load_policy": "dispatch"}
)
