"""The gap as runs that differ: a random-effects mean and where the next run's gap is expected.

Fisher's method says that some run differs from zero; this says by how much runs differ and what their mean
is. Paule and Mandel's between-run variance and the Hartung-Knapp standard error, both from statsmodels.

References:
    Paule, R. C. & Mandel, J. (1982). Consensus values and weighting factors. Journal of Research of the National
    Bureau of Standards, 87(5), 377-385.
    Hartung, J. & Knapp, G. (2001). On tests of the overall treatment effect in meta-analysis with normally
    distributed responses. Statistics in Medicine, 20(12), 1771-1782.
    Higgins, J. P. T., Thompson, S. G. & Spiegelhalter, D. J. (2009). A re-evaluation of random-effects meta-
    analysis. Journal of the Royal Statistical Society A, 172(1), 137-159 (prediction interval).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import CONFIDENCE, NAN, NO_PAIR, THESE_LEVELS, Pair
from gapfloor.statistics.welch import t_interval


@dataclass(frozen=True)
class RandomEffects:
    """Mean of the runs' true gaps, their spread, and the prediction interval of a new run's gap."""

    n: int = 0
    """Number of runs."""
    mean: float = NAN
    """Mean gap, with the variance between runs estimated."""
    se: float = NAN
    """Its standard error (Hartung and Knapp)."""
    interval: Pair = NO_PAIR
    """Student's interval of `mean`."""
    tau: float = NAN
    """Between-run standard deviation of the true gaps."""
    prediction: Pair = NO_PAIR
    """Interval in which the gap of a new run is expected."""
    estimand: str = THESE_LEVELS
    """What the number is about: these levels, or the generator of levels."""


def random_effects_mean(
    estimates: npt.ArrayLike, variances: npt.ArrayLike, *, confidence: float = CONFIDENCE
) -> RandomEffects:
    """Random-effects mean of per-run estimates with known sampling variances."""
    values = np.asarray(estimates, dtype=np.float64)
    known = np.asarray(variances, dtype=np.float64)
    if values.shape != known.shape or values.ndim != 1 or not values.size:
        raise UsageError(
            f"`estimates` and `variances` must match, but have shapes {values.shape} and {known.shape}."
        )
    order = np.lexsort((known, values))
    values, known = values[order], known[order]
    n = values.size
    if n < 2 or not known.max() > 0:
        return RandomEffects(n, float(values.mean()))
    from statsmodels.stats.meta_analysis import combine_effects

    # A run whose episodes are all equal has no variance of its own; a weight must stay finite.
    known = np.maximum(known, 1e-9 * known.max())
    with np.errstate(divide="ignore"):  # its heterogeneity index, unused here, divides by zero for equal runs
        found = combine_effects(values, known, method_re="iterated", use_t=True)
    mean, tau_square = float(found.mean_effect_re), max(float(found.tau2), 0.0)
    se = float(np.sqrt(found.var_hksj_re))
    prediction = NO_PAIR
    if n > 2:
        reach = float(special.stdtrit(n - 2, (1 + confidence) / 2)) * float(np.sqrt(tau_square + se**2))
        prediction = (mean - reach, mean + reach)
    interval = t_interval(mean, se, n - 1, confidence=confidence)
    return RandomEffects(n, mean, se, interval, float(np.sqrt(tau_square)), prediction)
