"""The gap as runs that differ: a random-effects mean and where the next run's gap is expected.

Fisher's method says that some run differs from zero; this says by how much runs differ and what their mean
is, with Paule and Mandel's variance between runs and Hartung and Knapp's standard error.

References:
    Paule, R. C. & Mandel, J. (1982). Consensus values and weighting factors. Journal of Research of the National
    Bureau of Standards, 87(5), 377-385.
    DerSimonian, R. & Kacker, R. (2007). Random-effects model for meta-analysis of clinical trials: an update.
    Contemporary Clinical Trials, 28(2), 105-114 (the iteration, Appendix A.8).
    Hartung, J. & Knapp, G. (2001). On tests of the overall treatment effect in meta-analysis with normally
    distributed responses. Statistics in Medicine, 20(12), 1771-1782.
    Higgins, J. P. T., Thompson, S. G. & Spiegelhalter, D. J. (2009). A re-evaluation of random-effects meta-
    analysis. Journal of the Royal Statistical Society A, 172(1), 137-159 (prediction interval).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import CONFIDENCE, NAN, NO_PAIR, Floats, Pair


class RandomEffects(NamedTuple):
    """Mean of the runs' true gaps, their spread, and the prediction interval of a new run's gap."""

    mean: float
    """Mean gap, with the variance between runs estimated."""
    se: float = NAN
    """Its standard error (Hartung and Knapp)."""
    tau: float = NAN
    """Between-run standard deviation of the true gaps."""
    prediction: Pair = NO_PAIR
    """Interval in which the gap of a new run is expected."""


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
        return RandomEffects(float(values.mean()))
    # A run whose episodes are all equal has no variance of its own; a weight must stay finite.
    known = np.maximum(known, 1e-9 * known.max())
    tau_square = variance_between(values, known)
    weights = 1 / (known + tau_square)
    weights /= weights.sum()
    mean = float((weights * values).sum())
    se = float(np.sqrt((weights * (values - mean) ** 2).sum() / (n - 1)))
    prediction = NO_PAIR
    if n > 2:
        reach = float(special.stdtrit(n - 2, (1 + confidence) / 2)) * float(np.sqrt(tau_square + se**2))
        prediction = (mean - reach, mean + reach)
    return RandomEffects(mean, se, float(np.sqrt(tau_square)), prediction)


def variance_between(values: Floats, variances: Floats) -> float:
    """Paule and Mandel's variance between runs: that at which sum(w (y - mean)^2) = n - 1, with w = 1 / (v + tau^2).

    Newton's method from 0, which rises to the root; 0 where the runs differ less than their variances let expect.
    """
    tau_square = 0.0
    for _ in range(50):
        weights = 1 / (variances + tau_square)
        squares = (values - weights.dot(values) / weights.sum()) ** 2
        lacking = float(weights.dot(squares)) - (values.size - 1)
        if lacking <= 1e-5:
            break
        tau_square += lacking / float((weights**2).dot(squares))
    return tau_square
