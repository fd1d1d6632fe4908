"""What a group-sequential plan says next: stop, continue, or how many more runs each game needs.

Only the planned looks count. Runs that come between two looks wait for the next one, and runs beyond the last
planned look are not used, because looking at another number of runs would spend alpha that the plan has not set
aside. The limits of an interval follow the shape of the game's own runs, not of the family's: what a look found must
not change when other games get more runs.

References:
    Jennison, C. and Turnbull, B. W. (1989). Interim analyses: the repeated confidence interval approach. Journal of
        the Royal Statistical Society B 51, 305-361.
    See also `sequential`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import ALPHA, NAN, NO_PAIR, PAPER_MARGIN, MarginRule, Pair
from gapfloor.statistics.families import holm
from gapfloor.statistics.reference_calls import (
    LEAST_RUNS,
    Doubt,
    RecommendedCall,
    ReferenceCall,
    ReferenceTest,
    call_doubt,
    compare_to_reference,
)
from gapfloor.statistics.sequential import check_looks, nominal_levels, sequential_divisors, sequential_p
from gapfloor.statistics.skewness import Skewness, family_skewness

LookAdvice = Literal["stop: called", "stop: all looks used", "continue"]


@dataclass(frozen=True)
class LookDecision:
    """One game at its last planned look."""

    n: int
    """Runs there are."""
    n_used: int
    """Runs at the last planned look that was reached, or at the look of the call; 0 before the first look."""
    call: RecommendedCall
    """Equivalent only after the last look: there the two one-sided tests are made once."""
    advice: LookAdvice
    more_runs: int
    """Runs to add before the next look; 0 if the game is finished."""
    p: float
    """Holm-adjusted sequential p: the family-wise alpha at which a look so far would have made a call."""
    divisor: int
    interval: Pair
    """Repeated confidence interval at alpha / divisor; it excludes zero exactly when a call is made."""
    test: ReferenceTest | None
    """The comparison at `n_used` runs; None before the first look."""
    doubt: Doubt = ""
    """Why an above or below call is unreliable; empty where it is not, and without a call."""
    p_tost_holm: float = NAN
    """Holm over the games' equivalence tests, where a game that has looks left counts as not equivalent."""


def next_runs(
    run_values: Sequence[npt.ArrayLike],
    reference_returns: Sequence[npt.ArrayLike],
    *,
    looks: Sequence[int],
    alpha: float = ALPHA,
    margin: MarginRule = PAPER_MARGIN,
) -> tuple[LookDecision, ...]:
    """Which games of a family have been called, and how many runs the others need before the next look.

    Args:
        run_values: per game one value per run, in the order in which the runs were planned.
        reference_returns: per game the reference's episode returns, the same at every look.
        looks: the planned numbers of runs, ascending, the first at least 3.
        alpha: family-wise level over all games and looks.
        margin: the difference that counts as equivalent after the last look.
    """
    planned = check_looks(looks)
    if planned[0] < LEAST_RUNS:
        raise UsageError(
            f"The first look needs at least {LEAST_RUNS} runs, but `looks` begins with {planned[0]}."
        )
    if len(run_values) != len(reference_returns) or not run_values:
        raise UsageError(
            "`run_values` and `reference_returns` need the same games, but have "
            f"{len(run_values)} and {len(reference_returns)}."
        )
    values = [np.asarray(one, dtype=np.float64) for one in run_values]
    tests = [
        [compare_to_reference(game[:n], reference, margin=margin) for n in planned if n <= game.size]
        for game, reference in zip(values, reference_returns, strict=True)
    ]
    p = np.full((len(values), len(planned)), NAN)
    for i, reached in enumerate(tests):
        p[i, : len(reached)] = [test.p for test in reached]
    divisors, called = sequential_divisors(p, planned, alpha=alpha)
    # A game before its first look counts in the family: it is going to be tested.
    sequential = [
        sequential_p([test.p for test in reached], planned) if reached else 1.0 for reached in tests
    ]
    adjusted = holm(sequential)
    decisions = [
        _decide(
            values[i].size, tests[i], planned, float(adjusted[i]), int(divisors[i]), int(called[i]), alpha
        )
        for i in range(len(values))
    ]
    shapes = family_skewness([one.test.run_values for one in decisions if one.test is not None])
    equivalence = holm([_final_tost(one) for one in decisions])
    return tuple(
        replace(_with_doubt(one, shapes), p_tost_holm=float(p))
        for one, p in zip(decisions, equivalence, strict=True)
    )


def call_at_look(
    decision: LookDecision, so_far: ReferenceTest, *, family_size: int, alpha: float
) -> ReferenceCall:
    """A decision in the form of a recommended call.

    Args:
        decision: what the looks say about a game.
        so_far: the comparison of all runs there are, shown where no look has been reached.
        family_size: games of the family.
        alpha: family-wise level over all games and looks.
    """
    is_tested = decision.test is not None
    return ReferenceCall(
        test=so_far if decision.test is None else decision.test,
        call=decision.call,
        p_holm=decision.p,
        p_tost_holm=decision.p_tost_holm,
        divisor=decision.divisor if is_tested else 0,
        interval=decision.interval,
        equivalent_in_family=decision.call == "equivalent" and decision.p_tost_holm < alpha,
        doubt=decision.doubt,
        family_size=family_size,
        alpha=alpha,
    )


def _decide(
    n: int,
    tests: Sequence[ReferenceTest],
    looks: tuple[int, ...],
    p: float,
    divisor: int,
    called: int,
    alpha: float,
) -> LookDecision:
    if not tests:
        return LookDecision(n, 0, "not tested", "continue", looks[0] - n, NAN, divisor, NO_PAIR, None)
    look = called if called >= 0 else len(tests) - 1
    test = tests[look]
    level = nominal_levels(looks, alpha=alpha / divisor)[look]
    interval = test.interval(alpha=level)
    if called >= 0:
        call: Literal["above", "below"] = "above" if test.delta > 0 else "below"
        return LookDecision(n, looks[look], call, "stop: called", 0, p, divisor, interval, test)
    advice: LookAdvice = "continue" if len(tests) < len(looks) else "stop: all looks used"
    more = looks[len(tests)] - n if len(tests) < len(looks) else 0
    # A game that is stopped earlier is never called equivalent, so the one test after the last look keeps its level.
    is_equivalent = not more and test.p_tost < alpha
    word: RecommendedCall = "equivalent" if is_equivalent else "not distinguishable"
    return LookDecision(n, looks[look], word, advice, more, p, divisor, interval, test)


def _final_tost(decision: LookDecision) -> float:
    is_last = decision.test is not None and decision.advice == "stop: all looks used"
    return decision.test.p_tost if is_last and decision.test is not None else 1.0


def _with_doubt(decision: LookDecision, skewness: Skewness) -> LookDecision:
    if decision.test is None or decision.call not in ("above", "below"):
        return decision
    return replace(decision, doubt=call_doubt(decision.test, skewness))
