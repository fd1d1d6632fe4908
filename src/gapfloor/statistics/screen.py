"""Tiers of residual entropy, their sweep, and the share of entropy on equivalent actions.

Merged entropies are compared with the same fractions of their own maximum: they are scaled to the raw maximum
first, H_game / ln(k) * ln(actions) and mean(H_s) / mean(ln k_s) * ln(actions), and then meet the same cuts.

References:
    Shannon, C. E. (1948). A mathematical theory of communication. Bell System Technical Journal 27, 379-423 (entropy,
        here in nats). The cuts are the paper's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import NAN, Tier

#: The paper's cuts in nats, and the low/intermediate cuts it sweeps.
CUTS = (2.0, 2.3)
SWEEP = (1.8, 1.9, 2.0, 2.1, 2.2)


@dataclass(frozen=True)
class Tiers:
    """The three tiers at one pair of cuts; None where a merged entropy is not known."""

    cut: float
    """The cut between low and intermediate, in nats."""
    raw: Tier
    """Tier of the raw entropy."""
    merged_state: Tier | None
    """Tier of the entropy merged by state."""
    merged_game: Tier | None
    """Tier of the entropy merged by game."""


def tier(entropy: float, *, cuts: tuple[float, float] = CUTS) -> Tier:
    """Low below the first cut, high above the second, intermediate from cut to cut inclusive.

    >>> tier(1.971), tier(2.0), tier(2.3), tier(2.301)
    ('low', 'intermediate', 'intermediate', 'high')
    """
    if math.isnan(entropy):
        raise UsageError("`entropy` must be a number, but is NaN.")
    if entropy < cuts[0]:
        return "low"
    return "high" if entropy > cuts[1] else "intermediate"


def scaled_entropy(entropy: float, *, maximum: float, to_maximum: float) -> float:
    """`entropy` at the same fraction of `to_maximum`; NaN when its own maximum is 0 or unknown."""
    if not maximum > 0:
        return NAN
    return entropy / maximum * to_maximum


def entropy_share(merged: float, raw: float) -> float:
    """1 - merged/raw, both on the same states: the fraction of entropy on equivalent actions.

    >>> round(entropy_share(0.697, 2.077), 2)
    0.66
    """
    return 1 - merged / raw if raw else NAN


def sweep_tiers(
    raw: float,
    merged_state: float,
    merged_game: float,
    *,
    cuts: tuple[float, ...] = SWEEP,
    high: float = CUTS[1],
) -> tuple[Tiers, ...]:
    """The tiers under each low/intermediate cut; merged entropies are scaled already (NaN: unknown)."""
    return tuple(
        Tiers(
            cut,
            tier(raw, cuts=(cut, high)),
            None if math.isnan(merged_state) else tier(merged_state, cuts=(cut, high)),
            None if math.isnan(merged_game) else tier(merged_game, cuts=(cut, high)),
        )
        for cut in cuts
    )
