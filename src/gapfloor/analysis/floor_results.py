"""Rows about the floor: the floors themselves, runs compared with them, and how many games got which call."""

from __future__ import annotations

from dataclasses import dataclass, field

from gapfloor.analysis.row import Row
from gapfloor.json_values import inlined
from gapfloor.plan.model import Method
from gapfloor.statistics.aggregate import RunSummary
from gapfloor.statistics.clustered import CrossedEstimate
from gapfloor.statistics.conventions import NAN, Call, Pair
from gapfloor.statistics.families import FamilyCall
from gapfloor.statistics.floor import FloorComparison
from gapfloor.statistics.looks import LookAdvice
from gapfloor.statistics.reference_calls import ReferenceCall
from gapfloor.statistics.signflip import SignFlip
from gapfloor.text_tables import counted


@dataclass(frozen=True, kw_only=True)
class FloorResult(Row):
    """A reference policy's return on one level set; `n` counts its episodes."""

    reference: str
    """"uniform" is the floor; constant actions, blind and random-weight policies are stricter."""
    level_set: str
    """`train` or `test` (held-out)."""
    mean: float
    """Mean return."""
    sem: float
    """Per episode: sd(ddof=1)/sqrt(n), as in the paper."""
    n_draws: int
    """Level draws behind the row."""
    n_levels: int
    """Number of distinct levels played; 0 where level seeds are unknown."""
    sem_clustered: float
    """Robust: standard error with episodes clustered by level (estimand: the generator)."""
    success: float
    """Share of episodes with a positive return where returns take only two values (0 and one more); else NaN."""


@dataclass(frozen=True, kw_only=True)
class RobustFloorEstimates:
    """Estimators of a floor comparison that stay valid where the paper's do not; NaN where they cannot be had."""

    sign_flip: SignFlip = field(default_factory=SignFlip)
    """Exact sign-flip test of (run value - floor mean); it ignores the error of the floor itself."""
    floor_sem_clustered: float = NAN
    """Standard error of the floor with episodes clustered by level."""
    crossed: CrossedEstimate = field(default_factory=CrossedEstimate)
    """Delta over runs x levels, each level weighted by how often it was played. Estimand: the generator."""
    level_paired: CrossedEstimate = field(default_factory=CrossedEstimate)
    """Delta with each level's floor subtracted from the same level's return, levels weighted equally."""
    level_variance_share: float = NAN
    """Between-level variance over total episode variance of the policy (0 = levels do not matter)."""
    strata: FamilyCall | None = None
    """The recommended call if agents are strata instead of one pool; None where it cannot be tested."""
    minimum_detectable: float = NAN
    """Smallest |delta| found with 80% power at the family's hardest Holm step (alpha / m)."""
    equivalence_unreachable: bool = False
    """True when the floor's SEM alone rules out equivalence at this margin, however many runs there are."""
    iqm: RunSummary = field(default_factory=RunSummary)
    """Interquartile mean of the run values."""
    improvement: RunSummary = field(default_factory=RunSummary)
    """P(a policy's episode beats a floor's) + half of ties, mean over runs."""


@dataclass(frozen=True, kw_only=True)
class LookStep:
    """Where a comparison is in a plan with looks."""

    runs_used: int
    """Different runs at the look that decides, in the order of their seeds; 0 before the first look."""
    advice: LookAdvice
    """stop: called, stop: all looks used, or continue."""
    more_runs: int
    """Runs to add before the next look; 0 if there is none."""


@dataclass(frozen=True, kw_only=True)
class FloorComparisonResult(Row):
    """Runs compared with a reference on one level set under one rule; `n` counts runs."""

    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    agent: str | None = None
    """None: all agents pooled (the paper's rows). A name: that agent alone (the paper's per-encoder z)."""
    reference: str = "uniform"
    """The policy that knows nothing; `uniform` is the floor. Empty for a run."""
    test: FloorComparison = field(metadata=inlined())
    """The comparison: means, delta, its interval and its tests."""
    decision: FamilyCall = field(metadata=inlined(call="paper_call"))
    """Holm's correction within the family, and the paper's call (in JSON `paper_call`)."""
    ratio: float
    """mean / floor; NaN where the floor is not positive."""
    success: float
    """Share of policy episodes with a positive return where returns take only two values (heist, coinrun)."""
    floor_success: float
    """The same for the floor."""
    family: str
    """For example "floor: sampled, test, 8M"; an addendum's family starts with the addendum's name."""
    robust: RobustFloorEstimates = field(default_factory=RobustFloorEstimates)
    """Estimators that stay valid where those of the row itself do not."""
    recommended: ReferenceCall | None = None
    """The recommended call, over different runs, with the interval that agrees with it (docs/claims.md)."""
    method: Method = "paper"
    """Which of the two makes `call`: the plan's choice; recommended where no plan was given."""
    n_copies: int = 0
    """Runs that repeat another run; the recommended call leaves them out."""
    is_census: bool = False
    """Whether every level was played equally often by design."""
    look: LookStep | None = None
    """Which runs the recommended call is made with, if the plan has looks."""
    call: Call = field(init=False)
    """above, below, equivalent, not distinguishable or not tested, by `method`."""

    def __post_init__(self) -> None:
        chosen: Call = self.decision.call
        if self.recommended is not None and (
            self.method == "recommended" or self.recommended.call == "not tested"
        ):
            chosen = self.recommended.call
        object.__setattr__(self, "call", chosen)

    @property
    def call_label(self) -> str:
        """The call in words; a row that was not tested says how many runs it has, and how many were copies."""
        if self.call != "not tested" or self.recommended is None:
            return self.call
        if self.look is not None:
            return f"not tested ({counted(self.look.more_runs, 'run')} before the first look)"
        if not self.n_copies:
            return self.recommended.label
        left_out = f"{self.n_copies} cop{'y' if self.n_copies == 1 else 'ies'} left out"
        return self.recommended.label.replace(")", f", {left_out})")

    @property
    def call_mean(self) -> float:
        """Mean over the runs that the call's method uses."""
        use_recommended = self.method == "recommended" and self.recommended is not None
        return self.recommended.test.mean if use_recommended and self.recommended else self.test.mean

    @property
    def call_delta(self) -> float:
        """The difference that the call is about: of the runs that its method uses."""
        use_recommended = self.method == "recommended" and self.recommended is not None
        return self.recommended.test.delta if use_recommended and self.recommended else self.test.delta

    @property
    def call_interval(self) -> Pair:
        """The interval of delta by `method`; the recommended one excludes zero exactly when a call is made."""
        use_recommended = self.method == "recommended" and self.recommended is not None
        return self.recommended.interval if use_recommended and self.recommended else self.test.ci

    @property
    def call_p(self) -> float:
        """Holm's p by `method`."""
        use_recommended = self.method == "recommended" and self.recommended is not None
        return self.recommended.p_holm if use_recommended and self.recommended else self.decision.p_holm

    @property
    def doubt(self) -> str:
        """Why an above or below call is unreliable; empty where nothing speaks against it."""
        return self.recommended.doubt if self.recommended is not None else ""


@dataclass(frozen=True, kw_only=True)
class CallCount:
    """How many games of a family got which call (the paper's count.* numbers)."""

    budget: str
    """Label of the training budget, e.g. 8M; empty if there is none."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    games: int
    """Games of the family."""
    above: int
    """Games called above."""
    below: int
    """Games called below."""
    equivalent: int
    """Games called equivalent."""
    not_distinguishable: int
    """Games called not distinguishable."""
    not_tested: int = 0
    """Games that were not tested: too few different runs."""
    z_not_above: int
    """Games whose z is not > 2: at or below the floor by the normal-approximation rule."""
