"""Satterthwaite's degrees of freedom of a variance that is a sum of estimated variances.

Floor comparisons, agent differences, crossed estimates and power calculations all use it.

References:
    Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components. Biometrics
    Bulletin, 2(6), 110-114.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gapfloor.statistics.conventions import Floats


def satterthwaite(
    parts: Sequence[npt.ArrayLike],
    dfs: Sequence[npt.ArrayLike],
    *,
    total: npt.ArrayLike | None = None,
    without_variance: npt.ArrayLike | None = None,
) -> Floats:
    """Degrees of freedom of a sum of independent variance estimates, (sum v_i)^2 / sum(v_i^2 / df_i).

    Args:
        parts: the variances v_i, each a number or an array.
        dfs: the degrees of freedom of each.
        total: the variance whose df is wanted, where it is not the sum of all parts (an estimator may subtract one).
        without_variance: the answer where every part is 0 (default: the sum of `dfs`).

    >>> float(satterthwaite([0.5, 0.5], [4, 4]))
    8.0
    """
    variances = [np.asarray(part, dtype=np.float64) for part in parts]
    whole = sum(variances) if total is None else np.asarray(total, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A part of 0 adds nothing, even where its df is 0 too.
        terms = [
            np.where(part > 0, part**2 / np.asarray(df), 0.0) for part, df in zip(variances, dfs, strict=True)
        ]
        below = sum(terms)
        found = whole**2 / below
    otherwise = sum(np.asarray(df, dtype=np.float64) for df in dfs)
    if without_variance is not None:
        otherwise = np.asarray(without_variance, dtype=np.float64)
    return np.where(np.asarray(below) > 0, found, otherwise)
