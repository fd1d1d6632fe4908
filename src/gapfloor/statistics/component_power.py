"""Power of the recommended tests, whose error is a sum of parts with their own degrees of freedom.

Given the estimated parts, the estimate is normal; the probability of a call is averaged over quantiles of the parts'
chi-square distributions, so nothing is drawn. A call below a reference is planned with the runs' degrees of freedom for
the whole error, because its limit is that far out unless skewed run values can be ruled out (`skewed_limits`).

References:
    Banerjee, S. K. (1960); see `components`. Schuirmann, D. J. (1987); see `skewed_limits`.
    Phillips, K. F. (1990). Power of the two one-sided tests procedure in bioequivalence. Journal of Pharmacokinetics
        and Biopharmaceutics 18, 137-144.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from gapfloor.errors import UsageError
from gapfloor.statistics.components import squared_reach
from gapfloor.statistics.conventions import ALPHA, GENERATOR, THESE_LEVELS, Floats
from gapfloor.statistics.detectable import POWER
from gapfloor.statistics.power import MAX_EPISODES, Effect, FamilyPower, family_power, smallest_reaching

#: Parts with more degrees of freedom than this are taken as known.
_KNOWN_FROM = 150
_QUANTILES = 48


def design_parts(
    effect: Effect, *, n_runs: int, n_floor: int, n_levels: int | None = None
) -> tuple[Floats, Floats]:
    """Variances and degrees of freedom of the parts of delta: runs, floor and, for the generator, levels.

    Without `n_levels` the claim is about these levels. With it the run part holds the residual of runs on levels.
    """
    if n_runs < 2 or n_floor < 2 or (n_levels is not None and n_levels < 2):
        raise UsageError(
            f"A design needs at least 2 runs, floor episodes and levels, not {n_runs}, {n_floor} and {n_levels}."
        )
    floor = 0.0 if math.isnan(effect.floor_sd) else effect.floor_sd**2 / n_floor
    if n_levels is None:
        return np.array([effect.run_sd**2 / n_runs, floor]), np.array([n_runs - 1.0, n_floor - 1.0])
    run = (effect.run_sd**2 + effect.residual_sd**2 / n_levels) / n_runs
    return (
        np.array([run, floor, effect.level_sd**2 / n_levels]),
        np.array([n_runs - 1.0, n_floor - 1.0, n_levels - 1.0]),
    )


def recommended_power(
    effect: Effect,
    *,
    n_runs: int,
    n_floor: int,
    n_levels: int | None = None,
    family_size: int = 1,
    alpha: float = ALPHA,
) -> float:
    """Power of the recommended comparison with a reference, at Holm's first, hardest step.

    >>> bigfish = Effect(delta=1.98, run_sd=0.75 * 6**0.5, floor_sd=0.06 * 384**0.5)
    >>> round(recommended_power(bigfish, n_runs=15, n_floor=384, family_size=8), 2)
    0.8
    """
    variances, dfs = design_parts(effect, n_runs=n_runs, n_floor=n_floor, n_levels=n_levels)
    is_below = effect.delta < 0 and n_levels is None
    return float(power_of_parts(effect.delta, variances, dfs, alpha=alpha / family_size, is_below=is_below))


def power_of_parts(
    delta: npt.ArrayLike,
    variances: npt.ArrayLike,
    dfs: npt.ArrayLike,
    *,
    alpha: float,
    is_below: bool = False,
) -> Floats:
    """Probability that Banerjee's two-sided test rejects zero, for true deltas and variance parts (last axis).

    `is_below` takes the quantile at the smallest degrees of freedom for all parts.
    """
    shift = np.asarray(delta, dtype=np.float64)[..., None]
    sd, half = _reach_quantiles(variances, dfs, alpha, one_quantile=is_below)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = special.ndtr((shift - half) / sd) + special.ndtr((-shift - half) / sd)
    return np.asarray(np.where(sd[..., 0] > 0, found.mean(axis=-1), (shift[..., 0] != 0) * 1.0))


def simulate_recommended_family(
    effects: Sequence[Effect],
    *,
    n_runs: Sequence[int],
    n_floor: int,
    rng: np.random.Generator,
    alpha: float = ALPHA,
    n_simulations: int = 2000,
) -> FamilyPower:
    """Simulate a whole family of recommended calls: normal run values and floor means, Banerjee's test, Holm."""
    designs = [design_parts(one, n_runs=n, n_floor=n_floor) for one, n in zip(effects, n_runs, strict=True)]
    true = np.array([variances for variances, _ in designs])
    dfs = np.array([df for _, df in designs])
    size = (n_simulations, len(effects))
    estimate = np.array([one.delta for one in effects]) + rng.standard_normal(size) * np.sqrt(
        true.sum(axis=-1)
    )
    parts = true * rng.chisquare(dfs, (*size, dfs.shape[-1])) / dfs
    rejected = np.zeros(size, dtype=bool)
    while True:
        # Holm: with k games rejected the others are tested at alpha / (m - k).
        left = np.maximum(len(effects) - rejected.sum(axis=-1), 1)
        level = alpha / left[:, None]
        reached = np.where(
            estimate < 0,
            squared_reach(parts, dfs.min(axis=-1, keepdims=True), level),
            squared_reach(parts, dfs, level),
        )
        new = ~rejected & (estimate**2 > reached)
        if not new.any():
            return family_power(rejected)
        rejected |= new


def equivalence_power(
    effect: Effect,
    *,
    n_runs: int | None,
    n_floor: int,
    margin: float,
    family_size: int = 1,
    alpha: float = ALPHA,
) -> float:
    """Power of the recommended equivalence test (TOST) at the true `effect.delta`.

    Args:
        effect: the true difference (0 where equivalence holds) and the standard deviations.
        n_runs: None takes the runs' mean as known, which is the best that any number of runs can do.
        n_floor: floor episodes.
        margin: of equivalence.
        family_size: Bonferroni's divisor, for the family-wise version.
        alpha: of each one-sided test.
    """
    if not margin > 0:
        raise UsageError(f"`margin` must be positive, but is {margin}.")
    variances, dfs = design_parts(effect, n_runs=n_runs or 2, n_floor=n_floor)
    if n_runs is None:
        variances, dfs = variances[1:], dfs[1:]
    # A one-sided test at alpha uses the quantile of a two-sided one at twice alpha.
    sd, half = _reach_quantiles(variances, dfs, 2 * alpha / family_size)
    room = margin - half
    if sd[0] == 0:
        return float(abs(effect.delta) < margin)
    passed = special.ndtr((room - effect.delta) / sd) - special.ndtr((-room - effect.delta) / sd)
    return float(np.mean(np.where(room > 0, passed, 0.0)))


def floor_episodes_for_equivalence(
    effect: Effect,
    *,
    n_runs: int | None,
    margin: float,
    family_size: int = 1,
    alpha: float = ALPHA,
    power: float = POWER,
) -> int | None:
    """The fewest floor episodes with which runs that equal the floor are called equivalent with this power.

    None where the runs alone forbid it: then more runs are needed, whatever the floor.

    >>> heist = Effect(delta=0.0, run_sd=0.0, floor_sd=0.24 * 384**0.5)
    >>> floor_episodes_for_equivalence(heist, n_runs=None, margin=0.315)
    1911
    """
    return smallest_reaching(
        lambda n: equivalence_power(
            effect, n_runs=n_runs, n_floor=n, margin=margin, family_size=family_size, alpha=alpha
        ),
        power,
        MAX_EPISODES,
    )


def estimand_of(n_levels: int | None) -> str:
    """What a design with or without a number of levels makes a claim about."""
    return THESE_LEVELS if n_levels is None else GENERATOR


def _reach_quantiles(
    variances: npt.ArrayLike, dfs: npt.ArrayLike, alpha: float, *, one_quantile: bool = False
) -> tuple[Floats, Floats]:
    """True standard deviation (..., 1) and half-widths (..., quantiles) of Banerjee's interval."""
    v, df = np.asarray(variances, dtype=np.float64), np.asarray(dfs, dtype=np.float64)
    t_square = (
        np.asarray(special.stdtrit(np.full(df.shape, df.min()) if one_quantile else df, alpha / 2)) ** 2
    )
    squares = np.zeros((*np.broadcast_shapes(v.shape[:-1]), 1))
    for i in range(v.shape[-1]):
        part = v[..., i, None] * t_square[..., i]
        if df[i] <= _KNOWN_FROM:
            ratios = _chi_square_ratios(float(df[i]))
            # Every combination of quantiles: the parts are independent.
            squares = (squares[..., :, None] + part[..., None] * ratios).reshape(*squares.shape[:-1], -1)
        else:
            squares = squares + part
    return np.sqrt(v.sum(axis=-1, keepdims=True)), np.sqrt(squares)


@lru_cache(maxsize=1024)
def _chi_square_ratios(df: float) -> Floats:
    """Midpoint quantiles of chi-square over its df: equally likely values of an estimated over the true variance."""
    middle = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.asarray(special.chdtri(df, 1 - middle) / df)
