"""Rows about the gap between training and held-out levels."""

from __future__ import annotations

from dataclasses import dataclass, field

from gapfloor.analysis.row import Row
from gapfloor.json_values import inlined
from gapfloor.plan.model import Method
from gapfloor.statistics.clustered import CrossedEstimate
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.gap_calls import GapCall, GapWord
from gapfloor.statistics.gaps import Gap, RunTest
from gapfloor.statistics.random_effects import RandomEffects
from gapfloor.statistics.signflip import SignFlip


@dataclass(frozen=True, kw_only=True)
class RunGap:
    """One run's gap and its own Welch test on episode returns."""

    agent: str
    """The agent (encoder or algorithm) by name."""
    seed: str
    """The run's seed."""
    test: RunTest = field(metadata=inlined())
    """Mean return on held-out levels."""


@dataclass(frozen=True, kw_only=True)
class RobustGapEstimates:
    """Estimators of a gap that stay valid where the paper's do not; NaN where the data do not allow one."""

    sign_flip: SignFlip = field(default_factory=SignFlip)
    """Exact sign-flip test of the runs' gaps. Estimand: these levels, new runs."""
    crossed: CrossedEstimate = field(default_factory=CrossedEstimate)
    """The gap over runs x levels of both level sets. Estimand: the generator."""
    level_variance_share: float = NAN
    """Between-level variance over total episode variance (0 = levels do not matter)."""
    random_effects: RandomEffects = field(default_factory=RandomEffects)
    """Mean and spread of the runs' true gaps, and where the gap of a new run is expected."""
    minimum_detectable: float = NAN
    """Smallest gap found with 80% power at the family's hardest Holm step (alpha / m)."""


@dataclass(frozen=True, kw_only=True)
class GapResult(Row):
    """Train - test over runs under one rule; `n` counts runs that have both halves."""

    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    agent: str | None = None
    """The agent (encoder or algorithm) by name."""
    gap: Gap = field(metadata=inlined(mean="gap"))
    """The gap over runs: means, interval and tests. In JSON its mean is called `gap`."""
    p_holm: float
    """Holm over the games' Fisher p within rule and budget."""
    floor_gap: float
    """Floor train - floor test (the paper's tab:gap2x2); NaN without a floor."""
    runs: tuple[RunGap, ...]
    """The runs, one entry each (RunGap)."""
    family: str
    """The tests that were corrected together."""
    family_size: int
    """How many tests the family has."""
    robust: RobustGapEstimates = field(default_factory=RobustGapEstimates)
    """Estimators that stay valid where those of the row itself do not."""
    paper_call: GapWord = "not tested"
    """The paper's: Fisher's p after Holm, and the sign of the gap."""
    recommended: GapCall | None = None
    """The recommended call: the excess over the floor's gap, for new runs on new levels (docs/claims.md)."""
    method: Method = "paper"
    """Which of the two makes `call`: the plan's choice; recommended where no plan was given."""
    call: GapWord = field(init=False)
    """train higher, test higher, not distinguishable or not tested, by `method`."""

    def __post_init__(self) -> None:
        use_recommended = self.method == "recommended" and self.recommended is not None
        chosen = self.recommended.call if use_recommended and self.recommended else self.paper_call
        object.__setattr__(self, "call", chosen)

    @property
    def call_label(self) -> str:
        """The call in words, with the reason where nothing was tested."""
        if self.method == "recommended" and self.recommended is not None:
            return self.recommended.label
        return self.call
