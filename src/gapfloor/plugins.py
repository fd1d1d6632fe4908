"""Engines, policy formats and rules of other packages, found through Python entry points.

A package declares what it adds in its own `pyproject.toml`, under one of the groups below. A plugin is looked for only
where a name is not one of gapfloor's own, so it can never replace what gapfloor itself brings, and it is imported only
when it is used.
"""

from __future__ import annotations

import functools
from importlib import metadata
from typing import Any, Literal

from gapfloor.errors import UsageError

#: What a plugin can be; the entry points are `gapfloor.engines` and so on.
Group = Literal["engines", "policy_formats", "rules"]


@functools.cache
def _entry_points(group: Group) -> dict[str, metadata.EntryPoint]:
    return {point.name: point for point in metadata.entry_points(group=f"gapfloor.{group}")}


def plugin_names(group: Group) -> tuple[str, ...]:
    """The names that installed packages add, without importing any of them."""
    return tuple(_entry_points(group))


@functools.cache
def find_plugin(group: Group, name: str) -> Any:
    """What an installed package registers under `name`; None if no package does."""
    point = _entry_points(group).get(name)
    if point is None:
        return None
    package = point.dist.name if point.dist is not None else point.value
    try:
        return point.load()
    except Exception as error:
        raise UsageError(
            f"The plugin '{name}' of {package} (gapfloor.{group}) cannot be loaded ({type(error).__name__}: {error}): "
            f"repair or uninstall {package}."
        ) from error


def refuse_plugin(group: Group, name: str, reason: str) -> UsageError:
    """The error for a plugin that is not what its group needs."""
    return UsageError(
        f"The plugin '{name}' (gapfloor.{group}) cannot be used: {reason}. Tell the author of its package."
    )
