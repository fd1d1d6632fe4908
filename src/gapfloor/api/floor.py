"""The floor: what a policy that knows nothing returns on given level draws, measured now or before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapfloor.analysis.evaluation import FloorMeasurement, reference_rows
from gapfloor.analysis.known_floors import (
    FloorRegistry,
    RegisteredEnvironment,
    find_entry,
    shipped_registry,
)
from gapfloor.api.keyword_settings import names_of, read_settings, takes
from gapfloor.api.policy_campaign import CampaignSettings, play_policies
from gapfloor.play.protocol import expand_games
from gapfloor.play.references import UNIFORM
from gapfloor.records.store import open_store


@takes(CampaignSettings)
def floor(
    games: str | Sequence[str],
    *,
    references: Sequence[str] = (UNIFORM,),
    **settings: Any,
) -> FloorMeasurement:
    """Measure the random floor of games: what policies that know nothing return on each level set.

    The uniform reference is the floor: what random play returns on the same levels. Cells that the store already
    holds are read, not played again.

    Args:
        games: One or more games: a name of ProcGen, gym:ID, envpool:ID, package.module:make, or a group: paper (the
            paper's eight) or all (all sixteen).
        references: Policies that know nothing: uniform (the floor), zero, constant:A, best-constant, sticky:P,
            random-weights:ENCODER:COUNT, blind:RUN or upper:POLICY.
        **settings: The fields of `CampaignSettings`.

    Returns:
        A row per game, level set and reference.

    Command line:
        gapfloor floor starpilot
        gapfloor floor paper --json
        gapfloor floor coinrun --mode hard --option use_backgrounds=false
        gapfloor floor heist --design census --repeats 4
        gapfloor floor starpilot --reference uniform --reference best-constant
        gapfloor floor envpool:Pong-v5 --design census --train none --test 1000:1020

    Examples:
        >>> import gapfloor
        >>> floor = gapfloor.floor("starpilot", draws=0, episodes=32, progress=False)
        >>> floor
        game       levels  reference  range      mean   SEM  episodes
        -------------------------------------------------------------
        starpilot  train   uniform    0:200      1.72  0.34        32
        starpilot  test    uniform    1000:1100  1.62  0.36        32
        >>> floor.to_arrow().column_names[:4]
        ['game', 'mode', 'budget', 'agent']
    """
    asked = read_settings(CampaignSettings, settings)
    named = expand_games([games] if isinstance(games, str) else games)
    with open_store(asked.store) as opened:
        campaign = play_policies(
            dict.fromkeys(named, ()),
            asked=asked,
            store=opened,
            references=names_of(references),
        )
        rows = reference_rows(
            cells=campaign.stored_cells(campaign.reference_cells),
            deterministic_rules=campaign.deterministic_rules,
        )
        design = str(campaign.protocol.design)
        return FloorMeasurement(tuple(rows), design=design, redone=campaign.damaged)


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
