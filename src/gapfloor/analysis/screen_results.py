"""Rows of the entropy screen: entropies and tiers, disagreement with plain argmax, and counts of flagged games."""

from __future__ import annotations

from dataclasses import dataclass

from gapfloor.analysis.row import Row
from gapfloor.statistics.conventions import Call, Tier
from gapfloor.statistics.screen import Tiers


@dataclass(frozen=True, kw_only=True)
class ScreenResult(Row):
    """The entropy screen of one game and budget; needs cell records. Entropies in nats."""

    agent: str | None = None
    """None: all agents pooled."""
    entropy: float
    """H: all counted steps of sampled evaluation, mean over draws, level sets, runs."""
    maximum: float
    """ln(number of actions)."""
    fraction: float
    """entropy / maximum."""
    tier: Tier
    entropy_probe: float
    """Raw entropy on the probe states, the ones that merged entropies are measured on."""
    entropy_first: float
    """Raw entropy on the first 1024 states of a cell."""
    entropy_greedy: float
    """Raw entropy on the states of greedy evaluation."""
    merged_state: float
    merged_game: float
    mean_ln_k: float
    """Mean of ln(classes) over probe states."""
    k: int | None
    """Distinct actions of the game (per-game partition); None if not calibrated."""
    share: float
    """1 - merged_state / entropy_probe: the fraction of entropy on equivalent actions."""
    merged_state_scaled: float
    """merged_state / mean_ln_k * maximum: what the cuts are compared with."""
    merged_game_scaled: float
    merged_tier_state: Tier | None
    merged_tier_game: Tier | None
    sweep: tuple[Tiers, ...]
    call: Call | None
    """Primary-rule, test-level call of this game (the above-floor check)."""
    gap_primary: float
    """Pooled gap under the plan's primary rule (sampled)."""
    gap_secondary: float
    """Pooled gap under the plan's second rule (greedy)."""


@dataclass(frozen=True, kw_only=True)
class DisagreementResult(Row):
    """Share of counted steps on which a rule's choice falls in another class than plain argmax."""

    rule: str
    level_set: str
    share: float


@dataclass(frozen=True, kw_only=True)
class ScreenSummary:
    """How many games the screen flags (tier other than low), and the range of the share."""

    budget: str
    games: int
    raw: int
    merged_state: int
    merged_game: int
    share_min: float
    share_max: float
