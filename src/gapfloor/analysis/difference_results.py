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
    rule_b: str
    quantity: Quantity
    test: PairedDifference = field(metadata=inlined())
    """The difference, paired over runs. The paper's kg is `runs_b_higher`."""
    robust: RobustPairEstimates = field(default_factory=RobustPairEstimates)
    """Estimators that stay valid where those of the row itself do not."""


@dataclass(frozen=True, kw_only=True)
class DrawDifference:
    """An agent difference on one draw alone."""

    draw: str
    test: WelchTest = field(metadata=inlined())


@dataclass(frozen=True, kw_only=True)
class AgentDifferenceResult(Row):
    """`agent_a` - `agent_b` (the paper's IMPALA - FPN), Welch over runs; `n` counts both agents' runs."""

    rule: str
    quantity: Quantity
    agent_a: str
    agent_b: str
    test: AgentDifference = field(metadata=inlined())
    """The difference over runs."""
    p_draw_min: float
    p_draw_max: float
    """The paper's encpd: smallest and largest p over the draws taken one at a time."""
    draws: tuple[DrawDifference, ...]
    share_from_training: float
    """For quantity "gap": difference in train / difference in gap; else NaN."""


@dataclass(frozen=True, kw_only=True)
class AgentResult(Row):
    """One agent's returns under one rule, as in the paper's per-encoder tables; `n` counts its runs."""

    rule: str
    agent: str
    train: float
    train_sem: float
    test: float
    test_sem: float
    gap: float
    gap_sem: float
    z_train: float
    """Against the floor: (mean - floor) / sqrt(SEM^2 + floor SEM^2)."""
    z_test: float
    tier: Tier | None
    """Raw-entropy tier of this agent's runs; None without cell records."""
