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
    """low, intermediate or high: raw entropy against the plan's cuts, as fractions of the maximum."""
    entropy_probe: float
    """Raw entropy on the probe states, the ones that merged entropies are measured on."""
    entropy_first: float
    """Raw entropy on the first 1024 states of a cell."""
    entropy_greedy: float
    """Raw entropy on the states of greedy evaluation."""
    merged_state: float
    """Entropy over each probe state's own classes of equal actions, in nats."""
    merged_game: float
    """Entropy over the game's classes of equal actions, in nats."""
    mean_ln_k: float
    """Mean of ln(classes) over probe states."""
    k: int | None
    """Distinct actions of the game (per-game partition); None if not calibrated."""
    share: float
    """1 - merged_state / entropy_probe: the fraction of entropy on equivalent actions."""
    merged_state_scaled: float
    """merged_state / mean_ln_k * maximum: what the cuts are compared with."""
    merged_game_scaled: float
    """merged_game / ln(k) * maximum: what the cuts are compared with."""
    merged_tier_state: Tier | None
    """Tier of `merged_state_scaled`."""
    merged_tier_game: Tier | None
    """Tier of `merged_game_scaled`."""
    sweep: tuple[Tiers, ...]
    """The tiers with the lower cut moved; one entry per cut."""
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
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    share: float
    """Share of counted steps on which the rule chose another class than argmax."""


@dataclass(frozen=True, kw_only=True)
class ScreenSummary:
    """How many games the screen flags (tier other than low), and the range of the share."""

    budget: str
    """Label of the training budget, e.g. 8M; empty if there is none."""
    games: int
    """Games screened."""
    raw: int
    """Games whose raw entropy is not in the low tier."""
    merged_state: int
    """Games whose merged entropy (classes of each state) is not low."""
    merged_game: int
    """Games whose merged entropy (classes of the game) is not low."""
    share_min: float
    """Smallest share of entropy on equivalent actions over the games."""
    share_max: float
    """Largest share of entropy on equivalent actions over the games."""
