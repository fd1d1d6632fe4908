"""When a census would do better than draws: the user is told, and decides."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.play.protocol import Protocol
from gapfloor.rules import Rule


def census_notes(protocol: Protocol, rules: Sequence[Rule]) -> list[str]:
    """Recommend a census where it plays no more episodes than the draws do.

    With as many repeats as the draws can pay for, a census has no draw noise at a lower cost.
    """
    if protocol.design.is_census:
        return []
    levels = sum(levels.n for _, levels in protocol.level_sets)
    drawn = protocol.design.episodes * len(protocol.draws) * len(protocol.level_sets)
    repeats = drawn // levels
    if repeats < 1:
        return []
    words = (
        f"A census would leave no draw noise: --design census{f' --repeats {repeats}' if repeats > 1 else ''} plays "
        f"{levels * repeats} episodes per rule instead of {drawn}"
    )
    if any(rule.is_deterministic for rule in rules):
        exact = ", ".join(str(rule) for rule in rules if rule.is_deterministic)
        words += f", and is exact under {exact}, where each of the {levels} levels is simulated once"
    return [f"{words}."]
