"""What a comparison could have found: the smallest detectable effect, and equivalence that cannot be reached.

References:
    Lenth, R. V. (2001). Some practical guidelines for effective sample size determination. The American
    Statistician, 55(3), 187-193 (power from the noncentral t).
    Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power approach for assessing
    the equivalence of average bioavailability. Journal of Pharmacokinetics and Biopharmaceutics, 15(6), 657-680.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special

from gapfloor.statistics.conventions import ALPHA, NAN

POWER = 0.8


def power_of_t(effect: float, *, se: float, df: float, alpha: float) -> float:
    """Power of a two-sided t-test for a true `effect` (noncentral t).

    >>> round(power_of_t(0.0, se=1.0, df=10, alpha=0.05), 3)
    0.05
    """
    return _power(effect / se, df=df, critical=float(special.stdtrit(df, 1 - alpha / 2)))


def _power(shift: float, *, df: float, critical: float) -> float:
    if abs(shift) > 35:
        # Beyond this the noncentral t loses its digits; a normal with the same shift is exact enough.
        return float(special.ndtr(abs(shift) - critical))
    upper, lower = _upper_tail(critical, df, shift), float(special.nctdtr(df, shift, -critical))
    return (0.0 if math.isnan(upper) else upper) + (0.0 if math.isnan(lower) else lower)


def _upper_tail(critical: float, df: float, shift: float) -> float:
    """`stats.nct.sf`, whose checks of arguments take fifty times as long as the number itself.

    Importing `scipy.stats` takes as long as the analysis of a small study.
    """
    tail = getattr(special._ufuncs, "_nct_sf", None)
    if tail is None:  # another version of scipy
        from scipy import stats

        tail = stats.nct._sf
    with np.errstate(over="ignore"):
        return min(max(float(tail(critical, df, shift)), 0.0), 1.0)


def minimum_detectable_effect(
    *, se: float, df: float, alpha: float = ALPHA, family_size: int = 1, power: float = POWER
) -> float:
    """The smallest |effect| found with this power at Holm's first, hardest step (alpha / family size)."""
    level = alpha / max(1, family_size)
    critical = float(special.stdtrit(df, 1 - level / 2))
    if not (0 < se < math.inf and 0 < df < math.inf and critical < math.inf):
        return NAN

    def lacking(effect: float) -> float:
        return _power(effect / se, df=df, critical=critical) - power

    high = se * (critical + 3)
    while lacking(high) < 0:
        high *= 2
        if not high < 1e9 * se:
            return NAN
    return float(optimize.brentq(lacking, 0.0, high, xtol=1e-6 * se))


def equivalence_unreachable(*, margin: float, floor_sem: float, floor_n: int, alpha: float = ALPHA) -> bool:
    """Whether the floor's SEM alone forbids TOST, however many runs there are and however well they agree.

    >>> equivalence_unreachable(margin=0.315, floor_sem=0.24, floor_n=384)
    True
    >>> equivalence_unreachable(margin=0.25, floor_sem=0.10, floor_n=384)
    False
    """
    return bool(floor_sem > 0 and margin / floor_sem <= special.stdtrit(floor_n - 1, 1 - alpha))
