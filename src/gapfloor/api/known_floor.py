"""Floors that were measured before: one environment of the registry, or all of them."""

from __future__ import annotations

from gapfloor.analysis.registry_entries import (
    FloorRegistry,
    RegisteredEnvironment,
    find_entry,
    shipped_registry,
)


def known_floor(game: str, *, mode: str | None = None) -> RegisteredEnvironment:
    """The floors of an environment that the package ships, with their provenance.

    Nothing is played. Use `measure_floor` for other seeds, versions, options or environments.

    Args:
        game: The environment, as gapfloor names it: `gym:CartPole-v1`, `envpool:Pong-v5`, `coinrun`.
        mode: ProcGen's mode; None: the first one of the registry, easy.

    Returns:
        The entry; `.floor` is the uniform floor, `.floors` has the other references too.

    Examples:
        >>> import gapfloor
        >>> entry = gapfloor.known_floor("gym:CartPole-v1")
        >>> round(entry.floor.mean), entry.floor.n_episodes, entry.family
        (22, 1000, 'classic control')
    """
    return find_entry(shipped_registry().entries, game, mode)


def known_floors(family: str | None = None) -> FloorRegistry:
    """Every floor that the package ships, or those of one family.

    Args:
        family: The name of a family, e.g. `MuJoCo`; None: all of them.

    Examples:
        >>> import gapfloor
        >>> len(gapfloor.known_floors().families) >= 5
        True
    """
    registry = shipped_registry()
    return registry if family is None else registry.of_family(family)
