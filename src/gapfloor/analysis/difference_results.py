"""Rows about differences: between rules of the same runs, and between agents."""

from __future__ import annotations

from dataclasses import dataclass, field

from gapfloor.analysis.row import Quantity, Row
from gapfloor.json_values import inlined
from gapfloor.statistics.conventions import NAN, Tier
from gapfloor.statistics.paired import AgentDifference, PairedDifference
from gapfloor.statistics.signflip import SignFlip
from gapfloor.statistics.welch import WelchTest


@dataclass(frozen=True, kw_only=True)
class RobustPairEstimates:
    """Estimators of a paired difference that stay valid where the paper's do not."""

    sign_flip: SignFlip = field(default_factory=SignFlip)
    """Exact sign-flip test of the runs' differences."""
    p_holm: float = NAN
    """Holm over the games of the same pair, quantity and budget (the paper corrects none of these)."""


@dataclass(frozen=True, kw_only=True)
class PairResult(Row):
    """A difference between two rules of the same runs: `rule_a` - `rule_b`.

    The paper's rd (sampled - greedy return) has quantity "train" or "test", its gd (sampled gap - greedy
    gap) quantity "gap", its mg (merged - greedy) the rules "merged" and "greedy".
    """

    rule_a: str
    """The first rule; differences are first minus second."""
    rule_b: str
    """The second rule."""
    quantity: Quantity
    """train, test or gap."""
    test: PairedDifference = field(metadata=inlined())
    """The difference, paired over runs. The paper's kg is `runs_b_higher`."""
    robust: RobustPairEstimates = field(default_factory=RobustPairEstimates)
    """Estimators that stay valid where those of the row itself do not."""


@dataclass(frozen=True, kw_only=True)
class DrawDifference:
    """An agent difference on one draw alone."""

    draw: str
    """Seed of the level draw."""
    test: WelchTest = field(metadata=inlined())
    """Mean return on held-out levels."""


@dataclass(frozen=True, kw_only=True)
class AgentDifferenceResult(Row):
    """`agent_a` - `agent_b` (the paper's IMPALA - FPN), Welch over runs; `n` counts both agents' runs."""

    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    quantity: Quantity
    """train, test or gap."""
    agent_a: str
    """The first agent; differences are first minus second."""
    agent_b: str
    """The second agent."""
    test: AgentDifference = field(metadata=inlined())
    """The difference over runs."""
    p_draw_min: float
    """Smallest p over the draws taken one at a time."""
    p_draw_max: float
    """The paper's encpd: smallest and largest p over the draws taken one at a time."""
    draws: tuple[DrawDifference, ...]
    """The difference on each draw alone."""
    share_from_training: float
    """For quantity "gap": difference in train / difference in gap; else NaN."""


@dataclass(frozen=True, kw_only=True)
class AgentResult(Row):
    """One agent's returns under one rule, as in the paper's per-encoder tables; `n` counts its runs."""

    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    train: float
    """Mean return on training levels."""
    train_sem: float
    """Its standard error over runs."""
    test: float
    """Mean return on held-out levels."""
    test_sem: float
    """Its standard error over runs."""
    gap: float
    """train - test, of the same runs under the same rule."""
    gap_sem: float
    """Standard error of the gap over runs."""
    z_train: float
    """Against the floor: (mean - floor) / sqrt(SEM^2 + floor SEM^2)."""
    z_test: float
    """z against the floor on held-out levels."""
    tier: Tier | None
    """Raw-entropy tier of this agent's runs; None without cell records."""
