"""What a group-sequential plan says next: stop, continue, or how many more runs each game needs.

Only the planned looks count. Runs that come between two looks wait for the next one, and runs beyond the last
planned look are not used, because looking at another number of runs would spend alpha that the plan has not set
aside. The shape of the runs is that of the game's own, not of the family's: what a look found must not change when
other games get more runs. A call that this shape does not allow waits for the next look.

References:
    Jennison, C. and Turnbull, B. W. (1989). Interim analyses: the repeated confidence interval approach. Journal of
        the Royal Statistical Society B 51, 305-361.
    See also `sequential`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import ALPHA, NAN, PAPER_MARGIN, Call, MarginRule, Pair
from gapfloor.statistics.families import holm
from gapfloor.statistics.reference_calls import (
    LEAST_RUNS,
    ReferenceCall,
    ReferenceTest,
    compare_to_reference,
    holm_divisors,
)
from gapfloor.statistics.sequential import check_looks, nominal_levels, sequential_p

LookAdvice = Literal["stop: called", "stop: all looks used", "continue"]


@dataclass(frozen=True)
class LookDecision:
    """One game at its last planned look."""

    n: int
    """Runs there are."""
    n_used: int
    """Runs at the last planned look that was reached, or at the look of the call; 0 before the first look."""
    advice: LookAdvice
    more_runs: int
    """Runs to add before the next look; 0 if the game is finished."""
    found: ReferenceCall | None
    """The comparison at `n_used` runs, not tested before the first look; None without runs. Its p is the family-wise
    alpha at which a look so far would have made a call, and its interval is a repeated confidence interval. It is
    called equivalent only after the last look, where the two one-sided tests are made once."""

    @property
    def call(self) -> Call:
        """The call so far."""
        return "not tested" if self.found is None else self.found.call


def next_runs(
    run_values: Sequence[npt.ArrayLike],
    reference_returns: Sequence[npt.ArrayLike],
    *,
    looks: Sequence[int],
    seen: Sequence[Pair | None] | None = None,
    alpha: float = ALPHA,
    margin: MarginRule = PAPER_MARGIN,
) -> tuple[LookDecision, ...]:
    """Which games of a family have been called, and how many runs the others need before the next look.

    Args:
        run_values: per game one value per run, in the order in which the runs were planned.
        reference_returns: per game the reference's episode returns, the same at every look.
        looks: the planned numbers of runs, ascending, the first at least 3.
        seen: per game the lowest and the highest episode return of its runs, as in `compare_to_reference`.
        alpha: family-wise level over all games and looks.
        margin: the difference that counts as equivalent after the last look.
    """
    planned = check_looks(looks)
    if planned[0] < LEAST_RUNS:
        raise UsageError(
            f"The first look needs at least {LEAST_RUNS} runs, but `looks` begins with {planned[0]}."
        )
    if len(run_values) != len(reference_returns) or not len(run_values):
        raise UsageError(
            "`run_values` and `reference_returns` need the same games, but have "
            f"{len(run_values)} and {len(reference_returns)}."
        )
    values = [np.asarray(one, dtype=np.float64) for one in run_values]
    ranges = [None] * len(values) if seen is None else list(seen)
    tests = [
        [
            compare_to_reference(game[:n], reference, seen=ends, margin=margin, least_runs=planned[0])
            for n in ([n for n in planned if n <= game.size] or [game.size] * (game.size > 0))
        ]
        for game, reference, ends in zip(values, reference_returns, ranges, strict=True)
    ]
    # A game before its first look counts in the family, because it is going to be tested; so does one in doubt.
    p_by_look = [
        [1.0 if test.doubt or not test.is_tested else test.p for test in found] or [1.0] for found in tests
    ]
    p_values = [sequential_p(found, planned) for found in p_by_look]
    divisors, adjusted = holm_divisors(p_values, alpha=alpha), holm(p_values)
    levels = [nominal_levels(planned, alpha=alpha / int(divisor)) for divisor in divisors]
    called = [
        next((look for look, (p, level) in enumerate(zip(*pair, strict=False)) if p < level), None)
        for pair in zip(p_by_look, levels, strict=True)
    ]
    reached = [sum(n <= game.size for n in planned) for game in values]
    equivalence = [
        found[-1].p_tost if n == len(planned) and look is None and found[-1].is_tested else 1.0
        for found, n, look in zip(tests, reached, called, strict=True)
    ]
    return tuple(
        _decide(
            values[i].size, tests[i], reached[i], planned, float(adjusted[i]), (equivalence[i], float(q)),
            divisor=int(divisors[i]), levels=levels[i], called=called[i], family_size=len(values), alpha=alpha,
        )
        for i, q in enumerate(holm(equivalence))
    )  # fmt: skip


def _decide(
    n: int,
    tests: Sequence[ReferenceTest],
    n_reached: int,
    looks: tuple[int, ...],
    p: float,
    equivalence: tuple[float, float],
    *,
    divisor: int,
    levels: tuple[float, ...],
    called: int | None,
    family_size: int,
    alpha: float,
) -> LookDecision:
    """Where a game is in its looks, at one of which it was `called`.

    `equivalence` is the p of the final test, alone and Holm-adjusted.
    """
    if not tests:
        return LookDecision(n, 0, "continue", looks[0], None)
    look = max(n_reached - 1, 0) if called is None else called
    test, level = tests[look], levels[look]
    call: Call = "not distinguishable"
    reason = test.not_tested
    if called is not None:
        call = "above" if test.delta > 0 else "below"
    elif test.p < level:
        reason = test.doubt
    elif equivalence[0] < alpha:
        call = "equivalent"
    if reason:
        call, p, divisor, level = "not tested", NAN, 0, NAN
    found = ReferenceCall(
        test=test,
        call=call,
        p_holm=p,
        p_tost_holm=equivalence[1],
        divisor=divisor,
        level=level,
        equivalent_in_family=call == "equivalent" and equivalence[1] < alpha,
        family_size=family_size,
        alpha=alpha,
        not_tested=reason,
    )
    n_used = looks[look] if n_reached else 0
    if called is not None:
        return LookDecision(n, n_used, "stop: called", 0, found)
    more = looks[n_reached] - n if n_reached < len(looks) else 0
    return LookDecision(n, n_used, "continue" if more else "stop: all looks used", more, found)
