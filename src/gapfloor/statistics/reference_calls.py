"""The recommended calls of runs against a reference (usually the random floor).

The run values and the reference's episodes are two independent parts of the error, each with its own degrees of
freedom (`components`). Where the run values may be skewed, the limit on the side of the long tail is moved outwards
(`skewed_limits`). Holm's procedure runs over the games of a family, and each row has the interval at the level at which
Holm tested it, so that the interval excludes zero exactly when a call is made.

References:
    Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6,
        65-70.
    Schuirmann, D. J. (1987), for the two one-sided tests; see `skewed_limits`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.components import VariancePart
from gapfloor.statistics.conventions import (
    ALPHA,
    NAN,
    NO_PAIR,
    PAPER_MARGIN,
    THESE_LEVELS,
    Call,
    Floats,
    Ints,
    MarginRule,
    Pair,
    finite_sample,
)
from gapfloor.statistics.families import holm
from gapfloor.statistics.skewed_limits import (
    NOT_WIDENED,
    WidenedLimits,
    limits,
    limits_p,
    limits_tost,
    widened_limits,
)
from gapfloor.statistics.skewness import Skewness, family_skewness

RecommendedCall = Call
#: Why a call is unreliable.
Doubt = Literal["", "skewed run values", "runs do not differ"]

#: With fewer runs a comparison is not tested, unless the plan says otherwise.
LEAST_RUNS = 3


@dataclass(frozen=True)
class ReferenceTest:
    """The mean over runs minus the mean of a reference, tested without regard to Holm's correction."""

    n: int
    mean: float
    reference: float
    reference_n: int
    delta: float
    se: float
    parts: tuple[VariancePart, ...]
    """Variances of the mean over runs (one part per stratum) and, last, of the reference's mean."""
    p: float
    p_tost: float
    margin: float
    run_values: tuple[float, ...]
    """In ascending order (with strata: around their agent's mean); the family's skewness is taken from them."""
    estimand: str = THESE_LEVELS
    widened: WidenedLimits = NOT_WIDENED
    """Limits that are moved outwards: by the shape of these runs, or by that of the family once it is called."""

    def interval(self, *, alpha: float) -> Pair:
        """The interval at 1 - alpha; it excludes zero exactly where p < alpha."""
        return limits(self.delta, self.parts, self.widened, n=self.n, alpha=alpha)


@dataclass(frozen=True)
class ReferenceCall:
    """A comparison's recommended call within its family."""

    test: ReferenceTest
    call: RecommendedCall
    p_holm: float
    p_tost_holm: float
    """Holm over the family's equivalence tests."""
    divisor: int
    """Holm's divisor at which this row was rejected, or at which the procedure stopped; 0 if not tested."""
    interval: Pair
    """At 1 - alpha / divisor: it excludes zero exactly when the call is above or below."""
    equivalent_in_family: bool
    """Whether the row is also called equivalent when the equivalence tests are Holm-adjusted."""
    doubt: Doubt
    """Why an above or below call is unreliable; empty where it is not, and for other calls."""
    family_size: int
    alpha: float

    @property
    def confidence(self) -> float:
        """Confidence of the interval; NaN where nothing was tested."""
        return 1 - self.alpha / self.divisor if self.divisor else NAN

    @property
    def label(self) -> str:
        """The call in words; a row that was not tested says how many runs it has."""
        if self.call != "not tested":
            return self.call
        return f"not tested ({self.test.n} run{'' if self.test.n == 1 else 's'})"


def compare_to_reference(
    run_values: npt.ArrayLike,
    reference_returns: npt.ArrayLike,
    *,
    margin: MarginRule = PAPER_MARGIN,
    least_runs: int = LEAST_RUNS,
    is_called_later: bool = False,
) -> ReferenceTest:
    """The mean over runs minus the mean over the reference's episodes, with p and TOST.

    Args:
        run_values: one value per run, its mean over all of its episodes.
        reference_returns: the reference's episode returns on the same levels.
        margin: the difference that still counts as equivalent.
        least_runs: with fewer runs the p are NaN ("not tested").
        is_called_later: whether `call_reference_family` follows, which computes limits and p again by the family's
            shape: until then the p are 1 where something is tested.

    >>> found = compare_to_reference([5.2, 6.1, 5.9], [0, 0, 2, 4, 0, 1])
    >>> round(found.delta, 2), round(found.p, 4)
    (4.57, 0.0061)
    """
    if least_runs < 2:
        raise UsageError(f"`least_runs` must be at least 2, but is {least_runs}.")
    runs = finite_sample(run_values, "run_values")
    reference = finite_sample(reference_returns, "reference_returns", minimum=2)
    mean, reference_mean = float(runs.mean()), float(reference.mean())
    own = VariancePart(_variance_of_mean(runs), runs.size - 1)
    other = VariancePart(_variance_of_mean(reference), reference.size - 1)
    parts = (own, other)
    found = ReferenceTest(
        n=runs.size,
        mean=mean,
        reference=reference_mean,
        reference_n=reference.size,
        delta=mean - reference_mean,
        se=float(np.sqrt(own.variance + other.variance)),
        parts=parts,
        p=NAN,
        p_tost=NAN,
        margin=margin.at(reference_mean),
        run_values=tuple(runs.tolist()),
    )
    if runs.size < least_runs:
        return found
    return replace(found, p=1.0, p_tost=1.0) if is_called_later else _shaped(found, family_skewness([runs]))


def compare_strata_to_reference(
    values_by_agent: Sequence[npt.ArrayLike],
    reference_returns: npt.ArrayLike,
    *,
    margin: MarginRule = PAPER_MARGIN,
    least_runs: int = LEAST_RUNS,
) -> ReferenceTest:
    """The same comparison with agents as strata: the run-to-run variance is taken within agents.

    Agents that differ are then not noise. Each agent's variance keeps its own degrees of freedom, so that agents with
    unequal variances keep the level. Not tested if an agent has fewer than `least_runs` runs.
    """
    if not values_by_agent:
        raise UsageError("`values_by_agent` must hold at least one agent.")
    agents = [finite_sample(values, "values_by_agent") for values in values_by_agent]
    pooled = np.sort(np.concatenate(agents))
    tested = min(agent.size for agent in agents) >= least_runs
    found = compare_to_reference(
        pooled, reference_returns, margin=margin, least_runs=least_runs, is_called_later=tested
    )
    own = [
        VariancePart((agent.size / pooled.size) ** 2 * _variance_of_mean(agent), agent.size - 1)
        for agent in agents
    ]
    parts = (*own, found.parts[-1])
    # The shape is that of the runs around their agents' means.
    centred = np.sort(np.concatenate([agent - agent.mean() for agent in agents])) + pooled.mean()
    found = replace(
        found,
        se=float(np.sqrt(sum(part.variance for part in parts))),
        parts=parts,
        p=NAN,
        p_tost=NAN,
        run_values=tuple(float(value) for value in centred),
    )
    return _shaped(found, family_skewness([centred])) if tested else found


def call_reference_family(
    tests: Sequence[ReferenceTest], *, alpha: float = ALPHA
) -> tuple[ReferenceCall, ...]:
    """The recommended calls of a family, in the order given.

    Holm p < alpha: above or below; else TOST p < alpha (not adjusted): equivalent; else not distinguishable. Rows
    that were not tested do not count in the family.
    """
    skewness = family_skewness([test.run_values for test in tests if not np.isnan(test.p)])
    tests = [test if np.isnan(test.p) else _shaped(test, skewness) for test in tests]
    p_values = np.array([test.p for test in tests])
    adjusted, divisors = holm(p_values), holm_divisors(p_values, alpha=alpha)
    equivalent = holm([test.p_tost for test in tests])
    size = int(np.count_nonzero(~np.isnan(p_values)))
    return tuple(
        _call(test, float(p), float(q), int(divisor), skewness, size=size, alpha=alpha)
        for test, p, q, divisor in zip(tests, adjusted, equivalent, divisors, strict=True)
    )


def holm_divisors(p_values: npt.ArrayLike, *, alpha: float = ALPHA) -> Ints:
    """Holm's divisor of each row: p < alpha / divisor exactly for the rejected rows.

    A rejected row has the divisor of its own step; all others have that of the step at which the procedure stopped.
    NaN rows (not tested) have 0.

    >>> holm_divisors([0.001, 0.2, 0.02, float("nan")]).tolist()
    [3, 1, 2, 0]
    """
    p = np.asarray(p_values, dtype=np.float64)
    divisors = np.zeros(p.shape, dtype=np.int64)
    known = np.flatnonzero(~np.isnan(p))
    if not known.size:
        return divisors
    order = known[np.argsort(p[known], kind="stable")]
    steps = np.arange(order.size, 0, -1)
    rejected = np.logical_and.accumulate(p[order] < alpha / steps)
    stopped = max(order.size - int(rejected.sum()), 1)
    divisors[order] = np.where(rejected, steps, stopped)
    return divisors


def call_doubt(test: ReferenceTest, skewness: Skewness) -> Doubt:
    """Why an above or below call of this comparison is unreliable; empty if nothing speaks against it."""
    if not any(part.variance > 0 for part in test.parts[:-1]):
        return "runs do not differ"
    return "skewed run values" if skewness.doubts(test.delta, test.run_values) else ""


def _call(
    test: ReferenceTest,
    p_holm: float,
    p_tost_holm: float,
    divisor: int,
    skewness: Skewness,
    *,
    size: int,
    alpha: float,
) -> ReferenceCall:
    call: RecommendedCall = "not distinguishable"
    interval = NO_PAIR
    if divisor == 0:
        call = "not tested"
    else:
        interval = test.interval(alpha=alpha / divisor)
        # Holm's adjusted p and the divisor say the same; the unadjusted p is compared so that rounding cannot part
        # them.
        if test.p < alpha / divisor:
            call = "above" if test.delta > 0 else "below"
        elif test.p_tost < alpha:
            call = "equivalent"
    doubt: Doubt = call_doubt(test, skewness) if call in ("above", "below") else ""
    return ReferenceCall(
        test=test,
        call=call,
        p_holm=p_holm,
        p_tost_holm=p_tost_holm,
        divisor=divisor,
        interval=interval,
        equivalent_in_family=bool(call == "equivalent" and p_tost_holm < alpha),
        doubt=doubt,
        family_size=size,
        alpha=alpha,
    )


def _shaped(test: ReferenceTest, skewness: Skewness) -> ReferenceTest:
    """The comparison with the limits and p that this skewness asks for."""
    widened = widened_limits(skewness, test.run_values)
    return replace(
        test,
        widened=widened,
        p=limits_p(test.delta, test.parts, widened, n=test.n),
        p_tost=limits_tost(test.delta, test.parts, widened, n=test.n, margin=test.margin),
    )


def _variance_of_mean(values: Floats) -> float:
    return float(values.var(ddof=1) / values.size) if values.size > 1 else NAN
