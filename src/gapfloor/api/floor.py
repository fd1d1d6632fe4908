"""The floor: what a policy that knows nothing returns on given level draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gapfloor.analysis.evaluation import FloorMeasurement, reference_rows
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
