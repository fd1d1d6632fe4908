"""What an analysis finds: frozen rows, each with its n, estimand, seed, plan hash and status.

The paper's own columns stand directly on a row; the sounder estimators stand `beside` them in a nested
dataclass, never instead. A number that cannot be computed (one run, no level seeds) is NaN here and null in
JSON. `AnalysisResults.to_dict()` is the document that `gapfloor analyse --json` prints.

Shared words: `ci` is always the plan's interval (percentile bootstrap), `t_interval` Student's; `status` is
"pre-registered", "pre-specified" or "exploratory"; `family` names the tests corrected together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from gapfloor.json_values import jsonable
from gapfloor.statistics.conventions import Call as Call
from gapfloor.statistics.conventions import Pair as Pair
from gapfloor.statistics.conventions import Tier as Tier

Status = Literal["pre-registered", "pre-specified", "exploratory"]
Quantity = Literal["train", "test", "gap"]

_NAN = float("nan")
_NO_PAIR: Pair = (_NAN, _NAN)


@dataclass(frozen=True, kw_only=True)
class Row:
    """What every result says about itself."""

    game: str
    mode: str
    """Distribution mode: easy, hard."""
    budget: str
    """Label such as "8M"; empty where the data have none."""
    n: int
    """Runs behind the row (episodes for a floor, games for a suite mean)."""
    estimand: str
    seed: int
    """Seed from which this row's resamples were drawn (the plan's seed mixed with the row's name)."""
    plan_hash: str
    """Of the plan; of the addendum for what an addendum names."""
    status: Status
    exploratory_reason: str = ""
    """Why the row is exploratory: no locked plan, or what the plan does not name. Empty otherwise."""


@dataclass(frozen=True, kw_only=True)
class FloorResult(Row):
    """A reference policy's return on one level set; `n` counts its episodes."""

    reference: str
    """"uniform" is THE floor; constant actions, blind and random-weight policies are stricter."""
    level_set: str
    mean: float
    sem: float
    """Per episode: sd(ddof=1)/sqrt(n), as the paper prints it."""
    n_draws: int
    n_levels: int
    """Distinct levels played; 0 where level seeds are unknown."""
    sem_clustered: float
    """Beside: standard error with episodes clustered by level (estimand: the generator)."""
    success: float
    """Share of episodes with a positive return where returns take only two values (0 and one more); else NaN."""


@dataclass(frozen=True, kw_only=True)
class FloorBeside:
    """Beside a floor comparison: estimators that stay valid where the paper's do not."""

    t_interval: Pair = _NO_PAIR
    """Welch t interval of delta, same standard error and df as the test. Estimand: these levels."""
    p_sign_flip: float = _NAN
    """Exact sign-flip p of (run value - floor mean); the floor's own error is not in it."""
    p_sign_flip_smallest: float = _NAN
    """The smallest p that the sign flip can reach at this n."""
    floor_sem_clustered: float = _NAN
    """Floor SEM clustered by level."""
    crossed_se: float = _NAN
    """Runs x levels standard error of the level-paired delta. Estimand: the generator."""
    crossed_df: float = _NAN
    crossed_p: float = _NAN
    crossed_interval: Pair = _NO_PAIR
    level_variance_share: float = _NAN
    """Between-level variance over total episode variance of the policy (0 = levels do not matter)."""
    pigeonhole_se: float = _NAN
    """Check of `crossed_se`: runs and levels resampled independently."""
    level_paired_delta: float = _NAN
    """Delta with each level's floor subtracted from the same level's return, levels weighted equally."""
    level_paired_se: float = _NAN
    level_paired_p: float = _NAN
    """Paired over levels, crossed with runs. Estimand: the generator."""
    stratified_se: float = _NAN
    """Standard error of delta with run variance taken within agents."""
    stratified_p: float = _NAN
    stratified_p_tost: float = _NAN
    stratified_p_holm: float = _NAN
    stratified_call: Call | None = None
    """The call if agents are strata instead of one pool."""
    minimum_detectable: float = _NAN
    """Smallest |delta| found with 80% power at the family's hardest Holm step (alpha / m)."""
    equivalence_unreachable: bool = False
    """True when the floor's SEM alone forbids TOST at this margin, however many runs there are."""
    iqm: float = _NAN
    """Interquartile mean of the run values."""
    iqm_ci: Pair = _NO_PAIR
    p_improvement: float = _NAN
    """P(a policy's episode beats a floor's) + half of ties, mean over runs."""
    p_improvement_ci: Pair = _NO_PAIR


@dataclass(frozen=True, kw_only=True)
class FloorComparisonResult(Row):
    """Runs against a reference on one level set under one rule; `n` counts runs."""

    rule: str
    level_set: str
    agent: str | None = None
    """None: all agents pooled (the paper's rows). A name: that agent alone (the paper's per-encoder z)."""
    reference: str = "uniform"
    mean: float
    sem: float
    floor: float
    floor_sem: float
    floor_n: int
    """Episodes of the floor."""
    delta: float
    ci: Pair
    """Percentile bootstrap of delta; runs and floor episodes are both resampled."""
    t: float
    df: float
    p: float
    p_holm: float
    z: float
    """The same statistic read as a normal (the paper's descriptive z)."""
    p_tost: float
    margin: float
    runs_above: int
    """k of k/n: runs whose value lies above the floor mean."""
    ratio: float
    """mean / floor; NaN where the floor is not positive."""
    success: float
    """Share of policy episodes with a positive return where returns take only two values (heist, coinrun)."""
    floor_success: float
    call: Call
    family: str
    """For example "floor: sampled, test, 8M"; an addendum's family starts with the addendum's name."""
    family_size: int
    beside: FloorBeside = field(default_factory=FloorBeside)


@dataclass(frozen=True, kw_only=True)
class RunGap:
    """One run's two halves and its own Welch test on episode returns."""

    agent: str
    seed: str
    train: float
    test: float
    gap: float
    t: float
    df: float
    p: float
    p_one_sided: float
    """One-sided p of train > test, as Stouffer takes it."""


@dataclass(frozen=True, kw_only=True)
class GapBeside:
    """Beside a gap: estimators that stay valid where the paper's do not."""

    t_interval: Pair = _NO_PAIR
    p_t: float = _NAN
    """One-sample t over runs. Estimand: these levels, new runs."""
    p_sign_flip: float = _NAN
    p_sign_flip_smallest: float = _NAN
    crossed_se: float = _NAN
    """V_run + V_level - V_residual over both level sets. Estimand: the generator."""
    crossed_df: float = _NAN
    crossed_p: float = _NAN
    crossed_interval: Pair = _NO_PAIR
    level_variance_share: float = _NAN
    pigeonhole_se: float = _NAN
    floor_gap: float = _NAN
    """The floor's own train - test difference on the same draws."""
    floor_gap_se: float = _NAN
    """Per-episode standard error of `floor_gap`."""
    excess: float = _NAN
    """gap - floor_gap: what is left when the level sets' own difference is taken out."""
    excess_se: float = _NAN
    excess_df: float = _NAN
    excess_p: float = _NAN
    excess_interval: Pair = _NO_PAIR
    random_effects_mean: float = _NAN
    random_effects_interval: Pair = _NO_PAIR
    random_effects_tau: float = _NAN
    """Between-run standard deviation of the true gaps."""
    prediction_interval: Pair = _NO_PAIR
    """Where the gap of a new run is expected."""
    minimum_detectable: float = _NAN


@dataclass(frozen=True, kw_only=True)
class GapResult(Row):
    """Train - test over runs under one rule; `n` counts runs that have both halves."""

    rule: str
    agent: str | None = None
    train: float
    train_sem: float
    test: float
    test_sem: float
    gap: float
    sem: float
    ci: Pair
    """Percentile bootstrap over runs, not stratified by agent."""
    p_fisher: float
    p_holm: float
    """Holm over the games' Fisher p within rule and budget."""
    stouffer_z: float
    """> 0: train higher."""
    p_stouffer: float
    floor_gap: float
    """Floor train - floor test (the paper's tab:gap2x2); NaN without a floor."""
    runs: tuple[RunGap, ...]
    family: str
    family_size: int
    beside: GapBeside = field(default_factory=GapBeside)


@dataclass(frozen=True, kw_only=True)
class PairBeside:
    """Beside a paired difference."""

    t_interval: Pair = _NO_PAIR
    p_sign_flip: float = _NAN
    p_sign_flip_smallest: float = _NAN
    p_holm: float = _NAN
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
    mean_a: float
    mean_b: float
    difference: float
    sem: float
    ci: Pair
    t: float
    df: float
    p: float
    runs_a_higher: int
    runs_b_higher: int
    """The paper's kg for sampled - greedy: runs in which greedy exceeds sampled."""
    runs_equal: int
    beside: PairBeside = field(default_factory=PairBeside)


@dataclass(frozen=True, kw_only=True)
class DrawDifference:
    """An agent difference on one draw alone."""

    draw: str
    difference: float
    t: float
    df: float
    p: float


@dataclass(frozen=True, kw_only=True)
class AgentDifferenceResult(Row):
    """`agent_a` - `agent_b` (the paper's IMPALA - FPN), Welch over runs; `n` counts both agents' runs."""

    rule: str
    quantity: Quantity
    agent_a: str
    agent_b: str
    n_a: int
    n_b: int
    mean_a: float
    mean_b: float
    sem_a: float
    sem_b: float
    difference: float
    ci: Pair
    t: float
    df: float
    p: float
    p_draw_min: float
    p_draw_max: float
    """The paper's encpd: smallest and largest p over the draws taken one at a time."""
    draws: tuple[DrawDifference, ...]
    share_from_training: float
    """For quantity "gap": difference in train / difference in gap; else NaN."""
    t_interval: Pair = _NO_PAIR
    """Beside: Welch t interval."""


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


@dataclass(frozen=True, kw_only=True)
class SweepPoint:
    """The tiers if the low/intermediate cut were `cut` nats."""

    cut: float
    raw: Tier
    merged_state: Tier | None
    merged_game: Tier | None


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
    sweep: tuple[SweepPoint, ...]
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
class NormalisedResult(Row):
    """(R - R_min)/(R_max - R_min) of a pooled mean; game "mean" is the unweighted suite mean."""

    rule: str
    """A rule, or "uniform" for the floor."""
    level_set: str
    score: float
    r_min: float
    """NaN for the suite mean."""
    r_max: float


@dataclass(frozen=True, kw_only=True)
class ProfileResult(Row):
    """Beside the suite mean: IQM and performance profile of normalised run scores over all games.

    Intervals resample runs within games (stratified percentile bootstrap). `game` is "mean".
    """

    rule: str
    level_set: str
    iqm: float
    iqm_ci: Pair
    taus: tuple[float, ...]
    profile: tuple[float, ...]
    """Fraction of runs with a score above tau, games weighted equally."""
    profile_low: tuple[float, ...]
    profile_high: tuple[float, ...]
    p_improvement: float
    """Mean over games of P(policy episode > floor episode) + half of ties."""


@dataclass(frozen=True, kw_only=True)
class CallCount:
    """How many games of a family got which call (the paper's count.* numbers)."""

    budget: str
    rule: str
    level_set: str
    games: int
    above: int
    below: int
    equivalent: int
    not_distinguishable: int
    z_not_above: int
    """Games whose z is not > 2: at or below the floor by the normal-approximation rule."""


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


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something in the data that a reader must know; nothing is dropped without one."""

    kind: Literal["missing", "unbalanced", "replay", "copy", "no floor", "too few", "assumed"]
    where: str
    """The rows or the cell concerned, in words."""
    what: str


@dataclass(frozen=True, kw_only=True)
class AddendumUsed:
    """An addendum as the results used it."""

    name: str
    hash: str
    status: Status
    locked_at: str
    cells_seen: int


@dataclass(frozen=True, kw_only=True)
class PlanUsed:
    """The plan as the results used it."""

    name: str
    hash: str
    status: Status
    """Of what the plan names."""
    locked_at: str
    """ISO time, empty if never locked."""
    cells_seen: int | None
    """Cells of the study seen when it was locked; None if never locked."""
    alpha: float
    confidence: float
    resamples: int
    seed: int
    primary_rule: str
    cuts: Pair
    addenda: tuple[AddendumUsed, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SourceSummary:
    """What was read."""

    n_episodes: int
    n_cells: int
    n_runs: int
    n_floor_episodes: int
    games: tuple[str, ...]
    budgets: tuple[str, ...]
    agents: tuple[str, ...]
    """In the order differences are taken."""
    rules: tuple[str, ...]
    level_sets: tuple[str, ...]
    draws: tuple[str, ...]
    has_level_seeds: bool
    has_cell_records: bool
    extra_columns: tuple[str, ...]
    """Columns that were not needed, kept with the episodes."""


@dataclass(frozen=True, kw_only=True)
class AnalysisResults:
    """Everything `analyse` found."""

    plan: PlanUsed
    source: SourceSummary
    floors: tuple[FloorResult, ...]
    floor_comparisons: tuple[FloorComparisonResult, ...]
    """Pooled over agents: the calls."""
    agent_floor_comparisons: tuple[FloorComparisonResult, ...]
    """One agent at a time (the paper's enc.*.z); Holm within agent, rule, level set, budget."""
    reference_comparisons: tuple[FloorComparisonResult, ...]
    """Against stricter references than the uniform floor, where the data hold any; exploratory."""
    gaps: tuple[GapResult, ...]
    pairs: tuple[PairResult, ...]
    encoders: tuple[AgentDifferenceResult, ...]
    agents: tuple[AgentResult, ...]
    screen: tuple[ScreenResult, ...]
    disagreements: tuple[DisagreementResult, ...]
    normalised: tuple[NormalisedResult, ...]
    profiles: tuple[ProfileResult, ...]
    call_counts: tuple[CallCount, ...]
    screen_summaries: tuple[ScreenSummary, ...]
    problems: tuple[Problem, ...]

    def to_dict(self) -> dict[str, Any]:
        """The results as JSON-ready values: tuples become lists, NaN and infinities null."""
        plain = jsonable(self)
        assert isinstance(plain, dict)
        return plain
