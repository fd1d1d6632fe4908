"""Floors that were measured before: one environment of the registry, one family, or all of them."""

from __future__ import annotations

from gapfloor.analysis.known_floors import (
    FloorRegistry,
    RegisteredEnvironment,
    find_entry,
    shipped_registry,
)


def known_floor(game: str | None = None, *, mode: str | None = None) -> RegisteredEnvironment | FloorRegistry:
    """Show the floors that come with gapfloor, with their provenance.

    Nothing is played. Use `floor` for other seeds, versions, options or environments.

    Args:
        game: An environment, e.g. gym:CartPole-v1, envpool:Pong-v5 or coinrun, or a family of environments, e.g. mujoco
            (default: every floor).
        mode: ProcGen's mode (default: the first one of the registry, easy).

    Returns:
        The entry of an environment, whose `.floor` is the uniform floor and whose `.floors` has the other references
        too; or the registry of a family, or all of it.

    Command line:
        gapfloor known-floor
        gapfloor known-floor mujoco
        gapfloor known-floor gym:CartPole-v1

    Examples:
        >>> import gapfloor
        >>> entry = gapfloor.known_floor("gym:CartPole-v1")
        >>> round(entry.floor.mean), entry.floor.n_episodes, entry.family
        (22, 1000, 'classic control')
        >>> len(gapfloor.known_floor().families) >= 5
        True
    """
    registry = shipped_registry()
    if game is None:
        return registry
    if ":" in game or any(entry.game == game for entry in registry.entries):
        return find_entry(registry.entries, game, mode)
    return registry.of_family(game)
