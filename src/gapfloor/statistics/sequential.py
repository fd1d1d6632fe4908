"""Group-sequential looks: adding runs until a call, without paying for it with false calls.

The plan names the numbers of runs at which the data are looked at. A spending function of O'Brien and Fleming's type
(Lan and DeMets) says how much of alpha may have been spent by each look; the boundaries follow by numerical
integration over the normal process (Armitage, McPherson and Rowe). They are used as nominal levels of the test at
each look, which carries them over to few degrees of freedom (Pocock; Jennison and Turnbull, section 4.4). Over
games, Holm's procedure is applied to the spending levels alpha / m, alpha / (m - 1), ... (Maurer and Bretz).

References:
    Armitage, P., McPherson, C. K. and Rowe, B. C. (1969). Repeated significance tests on accumulating data. Journal
        of the Royal Statistical Society A 132, 235-244.
    O'Brien, P. C. and Fleming, T. R. (1979). A multiple testing procedure for clinical trials. Biometrics 35,
        549-556.
    Lan, K. K. G. and DeMets, D. L. (1983). Discrete sequential boundaries for clinical trials. Biometrika 70,
        659-663.
    Jennison, C. and Turnbull, B. W. (2000). Group Sequential Methods with Applications to Clinical Trials. Chapman &
        Hall.
    Maurer, W. and Bretz, F. (2013). Multiple testing in group sequential trials using graphical approaches.
        Statistics in Biopharmaceutical Research 5, 311-320.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import ALPHA, NAN, Floats

#: Grid points of the normal process between the boundaries; the fifth digit of a boundary does not change beyond.
_GRID = 257
#: Where nothing has been spent yet no result stops a look.
_NOTHING = 1e-12


def spent_alpha(fraction: npt.ArrayLike, *, alpha: float = ALPHA) -> Floats:
    """Two-sided alpha spent when `fraction` of the runs have been seen (Lan-DeMets, O'Brien-Fleming type).

    Each tail spends 2 - 2 Phi(z / sqrt(fraction)), with z the normal quantile at 1 - alpha / 4.

    >>> [round(float(x), 5) for x in spent_alpha([0.2, 0.6, 1.0])]
    [0.0, 0.00762, 0.05]
    """
    t = np.asarray(fraction, dtype=np.float64)
    return np.asarray(4 * special.ndtr(special.ndtri(alpha / 4) / np.sqrt(t)))


def nominal_levels(looks: Sequence[int], *, alpha: float = ALPHA) -> tuple[float, ...]:
    """The level of the two-sided test at each look, so that all looks together spend `alpha`.

    Args:
        looks: the planned numbers of runs, ascending; the last is the most that will be trained.
        alpha: of all looks together.

    >>> [round(-float(special.ndtri(p / 2)), 3) for p in nominal_levels((3, 6, 9, 12, 15))]
    [4.877, 3.357, 2.68, 2.29, 2.031]
    """
    planned = check_looks(looks)
    if not 0 < alpha < 1:
        raise UsageError(f"`alpha` must lie between 0 and 1, but is {alpha}.")
    return _levels(planned, float(alpha))


def check_looks(looks: Sequence[int]) -> tuple[int, ...]:
    """`looks` as a tuple, refused unless they are ascending numbers of at least two runs."""
    planned = tuple(int(n) for n in looks)
    if not planned or planned[0] < 2 or any(b <= a for a, b in pairwise(planned)):
        raise UsageError(f"`looks` must be ascending numbers of at least 2 runs, but are {list(looks)}.")
    return planned


def sequential_p(p_by_look: Sequence[float], looks: Sequence[int]) -> float:
    """The smallest alpha at which one of the looks so far would have rejected; it is a valid p at every look.

    Args:
        p_by_look: the ordinary two-sided p at the looks reached so far, in order.
        looks: all planned looks.

    NaN where no look has been reached.
    """
    planned = check_looks(looks)
    if len(p_by_look) > len(planned):
        raise UsageError(f"There are {len(p_by_look)} p for {len(planned)} planned looks.")
    if not p_by_look:
        return NAN

    def crosses(log_alpha: float) -> float:
        levels = _levels(planned, math.exp(log_alpha))
        # Differences of logarithms have a sign change where the first look crosses.
        return max(
            math.log(level) - math.log(max(p, 1e-300)) for p, level in zip(p_by_look, levels, strict=False)
        )

    low, high = math.log(1e-10), math.log(0.999)
    if crosses(high) < 0:
        return 1.0
    if crosses(low) >= 0:
        return math.exp(low)
    from scipy import optimize  # few commands need it

    return math.exp(float(optimize.brentq(crosses, low, high, xtol=1e-6)))


@lru_cache(maxsize=512)
def _levels(looks: tuple[int, ...], alpha: float) -> tuple[float, ...]:
    """Nominal levels, one look after the other: each spends what the function allows by then."""
    fractions = np.array(looks) / looks[-1]
    spend = np.diff(np.concatenate([[0.0], spent_alpha(fractions, alpha=alpha)]))
    levels: list[float] = []
    score = density = None
    for k, (fraction, amount) in enumerate(zip(fractions, spend, strict=True)):
        if amount < _NOTHING:
            bound = float(-special.ndtri(_NOTHING / 2))
        elif k == 0 or score is None or density is None:
            bound = float(-special.ndtri(amount / 2))
        else:
            bound = _bound(score, density, fractions[k - 1], fraction, amount)
        levels.append(float(2 * special.ndtr(-bound)))
        score, density = _advance(score, density, fractions[k - 1] if k else 0.0, fraction, bound)
    return tuple(levels)


def _bound(score: Floats, density: Floats, before: float, now: float, amount: float) -> float:
    """The z beyond which the process, not stopped so far, lies with probability `amount`."""
    from scipy import optimize

    step = np.sqrt(now - before)

    def lacking(z: float) -> float:
        reach = z * np.sqrt(now)
        tails = special.ndtr((score - reach) / step) + special.ndtr((-reach - score) / step)
        return float(density @ tails) - amount

    return float(optimize.brentq(lacking, 0.0, 40.0, xtol=1e-10))


def _advance(
    score: Floats | None, density: Floats | None, before: float, now: float, bound: float
) -> tuple[Floats, Floats]:
    """Grid and weighted density of the score process (z * sqrt(fraction)) that has not been stopped."""
    reach = min(bound, 9.0) * np.sqrt(now)
    grid = np.linspace(-reach, reach, _GRID)
    weights = np.full(_GRID, 2.0)
    weights[1::2], weights[0], weights[-1] = 4.0, 1.0, 1.0  # Simpson's rule
    weights *= (grid[1] - grid[0]) / 3
    if score is None or density is None:
        height = np.exp(-(grid**2) / (2 * now)) / np.sqrt(2 * np.pi * now)
    else:
        step = now - before
        kernel = np.exp(-((grid[:, None] - score[None, :]) ** 2) / (2 * step)) / np.sqrt(2 * np.pi * step)
        height = kernel @ density
    return grid, height * weights
