"""Welch's test for many studies at once, for simulations; `gapfloor.statistics.welch` tests one pair of samples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import Floats
from gapfloor.statistics.welch import satterthwaite, two_sided_p


@dataclass(frozen=True)
class Welch:
    """A difference of two means with its standard error, df and two-sided p (arrays or scalars)."""

    difference: Floats
    se: Floats
    t: Floats
    df: Floats
    p: Floats


def welch(
    mean_a: npt.ArrayLike,
    variance_a: npt.ArrayLike,
    n_a: npt.ArrayLike,
    mean_b: npt.ArrayLike,
    variance_b: npt.ArrayLike,
    n_b: npt.ArrayLike,
) -> Welch:
    """Welch's t of a - b; equals `scipy.stats.ttest_ind(a, b, equal_var=False)`.

    Two constant samples have no standard error: equal means then give t = 0 and p = 1, others p = 0.
    """
    difference = np.asarray(mean_a, dtype=np.float64) - np.asarray(mean_b, dtype=np.float64)
    part_a, part_b = np.divide(variance_a, n_a), np.divide(variance_b, n_b)
    square = part_a + part_b
    se = np.sqrt(square)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(square > 0, difference / se, np.where(difference == 0, 0.0, np.inf * difference))
    df = satterthwaite((part_a, part_b), (np.asarray(n_a) - 1, np.asarray(n_b) - 1))
    df = np.where(np.isnan(square), np.nan, df)
    t = np.where(np.isnan(square), np.nan, t)
    return Welch(difference, se, t, df, two_sided_p(t, df))
