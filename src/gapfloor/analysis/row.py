"""What every row of an analysis says about itself: n, estimand, seed, plan hash and status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["pre-registered", "pre-specified", "exploratory"]
Quantity = Literal["train", "test", "gap"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What every result says about itself."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode: easy or hard."""
    budget: str
    """Label such as "8M"; empty where the data have none."""
    n: int
    """Number of runs behind the row (of episodes for a floor, of games for a suite mean)."""
    estimand: str
    """What the number is about: these levels, or the generator of levels."""
    seed: int
    """Seed of the row's resamples: the plan's seed mixed with the row's name."""
    plan_hash: str
    """Hash of the plan, or of the addendum that names the row."""
    status: Status
    """pre-registered (locked before any cell was seen), pre-specified (locked later) or exploratory."""
    exploratory_reason: str = ""
    """Why the row is exploratory: no locked plan, or what the plan does not name. Empty otherwise."""
