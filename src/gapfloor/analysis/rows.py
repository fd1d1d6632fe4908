"""The rows of an analysis: one type per question, the same for every command.

A row says what it is about (game, budget, agent, rule, level set), holds an `Estimate` made by one method, and where
something was tested the `Decision`. A sweep or a training curve has the same rows at several values of `at`. A single
run is the same row with n = 1 that was not tested. A number that cannot be computed is NaN here and null in JSON.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from gapfloor.json_values import ABSENT_IF_NONE
from gapfloor.statistics.conventions import NAN, Call, Tier, Widened
from gapfloor.statistics.conventions import Estimate as Estimate
from gapfloor.statistics.gaps import GapWord
from gapfloor.statistics.screen import Tiers

Status = Literal["pre-registered", "pre-specified", "exploratory"]
Quantity = Literal["train", "test", "gap"]
DifferenceWord = Literal["first higher", "second higher", "not distinguishable", "not tested"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """What every row says about itself."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode: easy or hard."""
    budget: str
    """Label such as "8M"; empty where the data have none."""
    agent: str | None = None
    """The agent (encoder or algorithm) by name; None: all agents pooled."""
    rule: str = ""
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str = ""
    """`train` or `test` (held-out)."""
    at: float | None = field(default=None, metadata=ABSENT_IF_NONE)
    """Temperature of a sweep, or training steps of a curve; None elsewhere."""
    n: int
    """Number of runs behind the row (of episodes for a reference, of games for a suite mean)."""
    seed: int
    """Seed of the row's resamples: the plan's seed mixed with the row's name."""
    plan_hash: str
    """Hash of the plan, or of the addendum that names the row."""
    status: Status
    """pre-registered (locked before any cell was seen), pre-specified (locked later) or exploratory."""
    exploratory_reason: str = ""
    """Why the row is exploratory: no locked plan, or what the plan does not name. Empty otherwise."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a test decided within its family."""

    call: Call | GapWord | DifferenceWord = "not tested"
    """The call in words."""
    p_adjusted: float = NAN
    """p after Holm's correction over the family."""
    family: str = ""
    """The tests that were corrected together, e.g. "floor: sampled, test, 8M"."""
    family_size: int = 0
    """How many tests the family has."""
    reason: str = ""
    """Why nothing was tested, or that an equivalence does not hold after correction over games; empty otherwise."""

    @property
    def label(self) -> str:
        """The call in words, with its reason where there is one."""
        return f"{self.call} ({self.reason})" if self.reason else self.call


@dataclass(frozen=True, kw_only=True)
class ReturnRow(Row):
    """The return of runs, or of a reference, on one level set; `n` counts runs, for a reference episodes."""

    reference: str = ""
    """"uniform" is the floor; constant actions, blind and random-weight policies are stricter. Empty for runs."""
    mean: float
    """Mean return."""
    sem: float
    """Over runs (or networks) if there are several, else over episodes; in a census within levels."""
    n_episodes: int
    """Counted episodes."""
    n_draws: int
    """Level draws behind the row."""
    n_levels: int
    """Number of distinct levels played; 0 where level seeds are unknown."""
    n_networks: int = 1
    """Networks behind a reference."""
    levels: str = ""
    """The level set as a range, e.g. 0:200, or `all`; empty where it is not recorded."""
    engine: str = ""
    """The engine that played, with its version; empty where it is not recorded."""


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """The test that a return is equivalent to the reference's."""

    p: float = NAN
    """p of two one-sided tests at the margin; not corrected for the family."""
    p_adjusted: float = NAN
    """The same after Holm's correction over the family."""
    margin: float = NAN
    """How far from the reference still counts as equivalent."""
    is_reachable: bool = True
    """False where the reference's own error rules equivalence out, however many runs there are."""
    runs_allow: bool = True
    """False where the runs' own error rules it out, however many episodes the reference has."""


@dataclass(frozen=True, kw_only=True)
class ComparisonRow(Row):
    """Runs compared with a reference on one level set under one rule; `n` counts the runs that were used."""

    reference: str = "uniform"
    """The policy that knows nothing; `uniform` is the floor."""
    mean: float
    """Mean return over runs."""
    sem: float
    """Its standard error over runs; over episodes if there is one run, over levels in a sweep or a curve."""
    floor: float
    """Mean return of the reference."""
    floor_sem: float
    """Its standard error."""
    floor_n: int
    """Episodes (or networks) behind it."""
    delta: Estimate
    """mean - floor."""
    decision: Decision
    """The call against the reference."""
    equivalence: Equivalence = field(default_factory=Equivalence)
    """The test of equivalence."""
    runs_above: int = 0
    """Number of runs whose value is above the reference's mean."""
    n_copies: int = 0
    """Runs that repeat another run; the recommended method leaves them out."""
    widened: Widened = ""
    """Which limits of the interval were moved outwards because run values may be skewed."""

    @property
    def call(self) -> str:
        """above, below, equivalent, not distinguishable or not tested."""
        return self.decision.call

    @property
    def z(self) -> float:
        """The difference in standard errors (the paper's descriptive z)."""
        return self.delta.value / self.delta.se if self.delta.se > 0 else NAN

    @property
    def ratio(self) -> float:
        """Mean / floor; NaN where the floor is not positive."""
        return self.mean / self.floor if self.floor > 0 else NAN


@dataclass(frozen=True, kw_only=True)
class RunGap:
    """One run's gap and its own Welch test on episode returns."""

    agent: str
    """The agent (encoder or algorithm) by name."""
    seed: str
    """The run's seed."""
    train: float
    """Mean return on training levels."""
    test: float
    """Mean return on held-out levels."""
    gap: float
    """train - test."""
    p: float
    """Two-sided p of Welch's test."""


@dataclass(frozen=True, kw_only=True)
class HalvesRow(Row):
    """Returns on training and on held-out levels of the same runs under one rule; `n` counts runs that have both."""

    train: float
    """Mean return on training levels."""
    train_sem: float
    """Its standard error over runs."""
    test: float
    """Mean return on held-out levels."""
    test_sem: float
    """Its standard error over runs."""
    gap: float
    """Mean over runs of train - test."""
    gap_sem: float
    """Its standard error over runs; over episodes if there is one run, over levels in a sweep or a curve."""


@dataclass(frozen=True, kw_only=True)
class GapRow(HalvesRow):
    """Train - test over runs under one rule."""

    estimate: Estimate
    """What was tested: the gap (paper), or the gap minus slope times the floor's gap (recommended)."""
    decision: Decision
    """train higher, test higher, not distinguishable or not tested."""
    floor_gap: float = NAN
    """Floor train - floor test; NaN without a floor."""
    floor_gap_sem: float = NAN
    """Its standard error over floor episodes."""
    floor_gap_p: float = NAN
    """p of the floor's own gap after Bonferroni's correction over the games of the budget."""
    slope: float = NAN
    """How much of the floor's gap is subtracted; NaN where nothing is."""
    stouffer_z: float = NAN
    """The runs' one-sided tests combined; above zero: train is higher. Paper's method only."""
    n_levels: tuple[int, int] = (0, 0)
    """Training and held-out levels that every run and the floor have played. Recommended method only."""
    n_levels_played: tuple[int, int] = (0, 0)
    """Training and held-out levels that at least one run has played; 0 where level seeds are unknown."""
    n_shared: int | None = None
    """Levels that were played both as training and as held-out levels; None where level seeds are unknown."""
    is_established: bool = False
    """Whether train is higher beyond what the floor shows (recommended: with the estimated slope and with one).
    Never where the level sets share a level."""
    levels_differ: bool = False
    """Whether the runs score differently on the training and held-out levels that were played."""
    runs: tuple[RunGap, ...] = ()
    """The runs, one entry each."""

    @property
    def call(self) -> str:
        """Train higher, test higher, not distinguishable or not tested."""
        return self.decision.call


@dataclass(frozen=True, kw_only=True)
class RuleDifferenceRow(Row):
    """A difference between two rules of the same runs: `rule` - `rule_b`.

    The paper's rd (sampled - greedy return) has quantity "train" or "test", its gd (sampled gap - greedy gap)
    quantity "gap", its mg (merged - greedy) the rules "merged" and "greedy".
    """

    rule_b: str
    """The second rule; differences are first minus second."""
    quantity: Quantity
    """train, test or gap."""
    difference: Estimate
    """The mean difference, paired over runs."""
    p_adjusted: float = NAN
    """Holm over the games of the same pair, quantity and budget (the paper corrects none of these)."""
    runs_first_higher: int = 0
    """Number of runs in which the first rule gives more (the paper's ks)."""
    runs_second_higher: int = 0
    """Number of runs in which the second rule gives more (the paper's kg)."""


@dataclass(frozen=True, kw_only=True)
class AgentDifferenceRow(Row):
    """`agent` - `agent_b` (the paper's IMPALA - FPN), Welch over runs; `n` counts both agents' runs."""

    agent_b: str
    """The second agent; differences are first minus second."""
    quantity: Quantity
    """train, test or gap."""
    mean: float
    """Mean of the first agent's runs."""
    sem: float
    """Its standard error."""
    mean_b: float
    """Mean of the second agent's runs."""
    sem_b: float
    """Its standard error."""
    n_runs: tuple[int, int]
    """Runs of either agent."""
    difference: Estimate
    """The difference over runs."""
    decision: Decision
    """first higher, second higher, not distinguishable or not tested; Holm over games and pairs of agents."""
    p_draw_min: float = NAN
    """Smallest p over the draws taken one at a time."""
    p_draw_max: float = NAN
    """Largest p over the draws taken one at a time."""
    share_from_training: float = NAN
    """For quantity "gap": difference in train / difference in gap; else NaN."""


@dataclass(frozen=True, kw_only=True)
class AgentRow(HalvesRow):
    """One agent's returns under one rule, as in the paper's per-encoder tables; `n` counts its runs."""

    z_train: float
    """Against the floor: (mean - floor) / sqrt(SEM^2 + floor SEM^2)."""
    z_test: float
    """z against the floor on held-out levels."""
    tier: Tier | None
    """Raw-entropy tier of this agent's runs; None without cell records."""


@dataclass(frozen=True, kw_only=True)
class OtherCall:
    """The call that a comparison gets under another choice of the analysis."""

    choice: str
    """The choice in words, e.g. "the paper's tests" or "without seed 3"."""
    call: str
    """The call under it; "not tested" where the shape of the runs forbids the call that the test would make."""


@dataclass(frozen=True, kw_only=True)
class SensitivityRow(Row):
    """What new levels and other choices say about a comparison with the floor (train, test) or about a gap."""

    quantity: Quantity
    """train, test or gap."""
    generator: Estimate
    """The same difference with runs and levels crossed. Estimand: the generator of levels."""
    generator_p_adjusted: float = NAN
    """Its p after Holm's correction over the family."""
    level_variance_share: float = NAN
    """Between-level variance over total episode variance of the policy (0 = levels do not matter)."""
    minimum_detectable: float = NAN
    """Smallest difference above the reference (or gap) found with 80% power at the family's hardest Holm step (alpha /
    m), by the method that makes the calls; NaN where there is none."""
    is_census: bool = False
    """Whether every level was played equally often by design."""
    call: str = "not tested"
    """The call of the comparison or gap by the plan."""
    n_choices: int = 0
    """Other choices under which it can be tested: the other method, agents pooled or not, each run and each draw left
    out in turn, and new levels of the generator."""
    flips: tuple[OtherCall, ...] = ()
    """The choices under which the call is another one."""

    @property
    def n_stays(self) -> int:
        """Choices under which the call stays."""
        return self.n_choices - len(self.flips)


@dataclass(frozen=True, kw_only=True)
class ScreenRow(Row):
    """The entropy screen of one game and budget; needs cell records. Entropies in nats."""

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
    call: str | None
    """Primary-rule, test-level call of this game (the above-floor check)."""
    gap_primary: float
    """Pooled gap under the plan's primary rule (sampled)."""
    gap_secondary: float
    """Pooled gap under the plan's second rule (greedy)."""


@dataclass(frozen=True, kw_only=True)
class DisagreementRow(Row):
    """Share of counted steps on which a rule's choice falls in another class than plain argmax."""

    share: float
    """Share of counted steps on which the rule chose another class than argmax."""


@dataclass(frozen=True, kw_only=True)
class ScoreRow(Row):
    """(R - R_min)/(R_max - R_min) of a mean; game "mean" is the unweighted suite mean, rule "uniform" the floor."""

    score: float
    """(mean - r_min) / (r_max - r_min)."""
    sem: float = NAN
    """Standard error of the mean return on the same scale; that of the floor is not in it."""
    r_min: float
    """The return that counts as 0: the published constant, or the floor; NaN for the suite mean."""
    r_max: float
    """The return that counts as 1: the published constant, or the stated upper reference; NaN for the suite mean."""
    upper: str = ""
    """Where a stated upper reference comes from."""


@dataclass(frozen=True, kw_only=True)
class CallCount:
    """How many games of a family got which call (the paper's count.* numbers)."""

    agent: str | None = None
    """The agent; None: all agents pooled."""
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
