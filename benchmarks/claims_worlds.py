"""Simulated studies with known truth, many at once, for `claims_simulation.py`.

A world says what run values look like (normal, 0-or-10 episodes, log-normal), whether the runs of two agents have equal
standard deviations or 1:3, and what share of an episode's variance belongs to its level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gapfloor.statistics.level_crossing import LevelTable

Array = np.ndarray

SHAPES = ("normal", "0-or-10", "log-normal")
RATIOS = (1.0, 3.0)
SHARES = (0.3, 1.0)
#: For calls about the played levels a share of 0 is the hardest: then all of the floor's SEM is error.
CALL_SHARES = (0.0, 0.3, 1.0)
RUNS = (3, 6, 12)

#: SEM over six runs and floor SEM of the paper's eight games (sampled, held-out, 8M); success rates of 0-or-10 games.
SEMS = np.array([1.11, 0.39, 0.75, 0.31, 0.30, 0.13, 0.49, 0.21])
FLOOR_SEMS = np.array([0.11, 0.21, 0.06, 0.24, 0.10, 0.05, 0.05, 0.24])
SUCCESS = np.array([0.33, 0.315, 0.1, 0.5, 0.2, 0.05, 0.6, 0.4])
N_GAMES = 8
N_EPISODES = 384
LEVELS = (200, 100)
#: Between runs on one level set, in standard deviations of an episode: small enough that levels matter as much.
RUN_SD = 0.15


@dataclass(frozen=True)
class World:
    """What the runs of a simulated study look like."""

    shape: str
    ratio: float
    share: float


@dataclass(frozen=True)
class Calls:
    """Families of eight games: run values (families, games, runs), the floor's mean and the square of its SEM."""

    runs: Array
    floor: Array
    floor_variance: Array
    run_sd: Array
    """Per game, to express effects in standard deviations."""


def worlds(shares: tuple[float, ...] = SHARES) -> list[World]:
    """All worlds: three shapes, two ratios of standard deviations, and the shares of levels."""
    return [World(shape, ratio, share) for shape in SHAPES for ratio in RATIOS for share in shares]


def agent_factors(n: int, ratio: float) -> Array:
    """Standard deviations of the runs of two agents in turn, 1:ratio, with a mean square of one."""
    factors = np.where(np.arange(n) % 2 == 0, 1.0, ratio)
    return factors / math.sqrt((np.array([1.0, ratio]) ** 2).mean())


def unit_draws(shape: str, size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Mean zero and standard deviation one; log-normal with sigma 1 has skewness 6."""
    if shape == "log-normal":
        return (rng.lognormal(0, 1, size) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e)
    return rng.standard_normal(size)


def null_families(world: World, n: int, families: int, rng: np.random.Generator) -> Calls:
    """Families in which every game's true mean over runs is that of its floor on the levels played.

    The levels are given, so the floor variance that belongs to them does not add error to its mean; its SEM
    over episodes counts it all the same.
    """
    size = (families, N_GAMES)
    factors = agent_factors(n, world.ratio)
    if world.shape == "0-or-10":
        return _success_families(world, n, size, factors, rng)
    sd = SEMS * math.sqrt(6)
    runs = unit_draws(world.shape, (*size, n), rng) * factors * sd[:, None]
    floor = rng.standard_normal(size) * FLOOR_SEMS * math.sqrt(1 - world.share)
    variance = FLOOR_SEMS**2 * rng.chisquare(N_EPISODES - 1, size) / (N_EPISODES - 1)
    return Calls(runs, floor, variance, sd)


def _success_families(
    world: World, n: int, size: tuple[int, int], factors: Array, rng: np.random.Generator
) -> Calls:
    """Run values are success rates times 10; between runs they vary by a quarter of an episode's standard deviation."""
    within = SUCCESS * (1 - SUCCESS)
    spread = 0.25 * factors[None, None, :]
    concentration = 1 / spread**2 - 1
    q = SUCCESS[None, :, None]
    rates = rng.beta(q * concentration, (1 - q) * concentration, (*size, n))
    noise = rng.binomial(N_EPISODES, rates) / N_EPISODES - rates
    scale = math.sqrt(1 - world.share)
    floor = SUCCESS + scale * (rng.binomial(N_EPISODES, SUCCESS, size) / N_EPISODES - SUCCESS)
    variance = floor * (1 - floor) / (N_EPISODES - 1)
    return Calls(
        10 * (rates + scale * noise),
        10 * floor,
        100 * np.maximum(variance, 1e-9),
        10 * 0.25 * np.sqrt(within),
    )


@dataclass(frozen=True)
class Gaps:
    """Games with runs on two level sets: returns by run and level, and episode moments for the paper's tests."""

    tables: tuple[LevelTable, LevelTable]
    run_means: Array
    """(sets, games, runs)"""
    run_variances: Array
    floor_means: Array
    """(sets, games)"""
    floor_variances: Array


def gap_games(
    world: World,
    n: int,
    games: int,
    rng: np.random.Generator,
    *,
    shift: float = 0.0,
    set_shift: float = 0.0,
    centred: bool = False,
) -> Gaps:
    """Games without a gap: 384 episodes on 200 training and on 100 held-out levels, the same draws for runs and floor.

    Args:
        world: of the runs; the shape is applied to a normal score of an episode, so the null holds for all three.
        n: runs.
        games: number of games.
        rng: generator.
        shift: of the runs above the floor, on the normal score.
        set_shift: by which the training levels are easier for runs and floor alike (another generator).
        centred: levels as played are equally easy in both sets (the null for these levels; normal worlds).
    """
    parts = [
        _half(world, n, games, size, shift + step, step, centred, rng)
        for size, step in zip(LEVELS, (set_shift, 0.0), strict=True)
    ]
    tables = (parts[0][0], parts[1][0])
    return Gaps(tables, *(np.stack([part[i] for part in parts]) for i in range(1, 5)))


def _half(
    world: World,
    n: int,
    games: int,
    n_levels: int,
    shift: float,
    floor_shift: float,
    centred: bool,
    rng: np.random.Generator,
) -> tuple[LevelTable, Array, Array, Array, Array]:
    # Half of the level variance is shared by the runs, half is each run's own; the floor follows the shared part.
    share = world.share
    levels = rng.integers(0, n_levels, (games, N_EPISODES))
    place = levels + np.arange(games)[:, None] * n_levels
    counts = np.bincount(place.ravel(), minlength=games * n_levels).reshape(games, n_levels)
    weights = counts / N_EPISODES
    ease = rng.standard_normal((games, n_levels))
    if centred:
        ease = ease - np.sum(weights * ease, axis=1, keepdims=True)
    own = rng.standard_normal((games, n, n_levels))
    runs = rng.standard_normal((games, n, 1)) * RUN_SD * agent_factors(n, world.ratio)[None, :, None]
    score = math.sqrt(share / 2) * (ease[:, None, :] + own) + runs + shift
    chosen = np.broadcast_to(levels[:, None, :], (games, n, N_EPISODES))
    returns = np.take_along_axis(score, chosen, axis=2)
    if share < 1:
        returns += math.sqrt(1 - share) * rng.standard_normal(returns.shape)
    # Random play is never a function of the level alone.
    floor_ease = 0.7 * ease + math.sqrt(1 - 0.7**2) * rng.standard_normal(ease.shape)
    floor_score = math.sqrt(share) * floor_ease + floor_shift
    floor = np.take_along_axis(floor_score, levels, axis=1)
    floor = floor + math.sqrt(max(1 - share, 0.3)) * rng.standard_normal(floor.shape)
    returns, floor = _shaped(returns, world.shape), _shaped(floor, world.shape)
    played = np.maximum(counts, 1)
    by_run = (np.arange(n)[None, :, None] * games * n_levels + place[:, None, :]).ravel()
    sums = np.bincount(by_run, weights=returns.ravel(), minlength=n * games * n_levels)
    values = sums.reshape(n, games, n_levels).transpose(1, 0, 2) / played[:, None, :]
    reference = np.bincount(place.ravel(), weights=floor.ravel(), minlength=games * n_levels)
    table = LevelTable(values, reference.reshape(games, n_levels) / played, weights)
    return (
        table,
        returns.mean(axis=2),
        returns.var(axis=2, ddof=1),
        floor.mean(axis=1),
        floor.var(axis=1, ddof=1),
    )


def _shaped(score: Array, shape: str) -> Array:
    if shape == "0-or-10":
        return 10.0 * (score > 0.8)
    return np.exp(score) if shape == "log-normal" else score
