"""Simulated studies with known truth: families of eight games, and games with training and held-out levels.

Every world says how run values and floor episodes are drawn; the true difference is 0 unless `shift` says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gapfloor.statistics.conventions import Pair
from gapfloor.statistics.level_crossing import LevelTable

Array = np.ndarray
Draw = Callable[[tuple[int, ...], np.random.Generator], Array]
#: Per game: run values, floor episodes, and the lowest and highest episode return of the runs.
Family = list[tuple[Array, Array, Pair]]

N_GAMES = 8
N_FLOOR = 384
#: SEM over six runs and floor SEM of the paper's eight games (sampled, held-out, 8M).
SEMS = np.array([1.11, 0.39, 0.75, 0.31, 0.30, 0.13, 0.49, 0.21])
FLOOR_SEMS = np.array([0.11, 0.21, 0.06, 0.24, 0.10, 0.05, 0.05, 0.24])


@dataclass(frozen=True)
class World:
    """What the games of a study look like."""

    name: str
    n: int
    """Runs per game."""
    draw: Callable[[int, int, np.random.Generator], Family]
    """A family of so many runs and floor episodes."""
    goal: float | None = 0.05
    """The largest rate of families with a false call; None where the world has a true difference."""
    n_floor: int = N_FLOOR

    def families(self, count: int, seed: int) -> Iterator[Family]:
        """So many independent families."""
        rng = np.random.default_rng([seed, *self.name.encode(), self.n, self.n_floor])
        for _ in range(count):
            yield self.draw(self.n, self.n_floor, rng)


def normal(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Mean 0 and standard deviation 1, as all of the following."""
    return rng.standard_normal(size)


def log_normal(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Skewness 6."""
    return (rng.lognormal(0, 1, size) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e)


def exponential(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Skewness 2."""
    return rng.exponential(size=size) - 1


def mirrored(draw: Draw) -> Draw:
    """The same with the long tail on the left."""
    return lambda size, rng: -draw(size, rng)


def two_groups(spread: float, share: float = 0.5) -> Draw:
    """A share of the runs above the mean, the others below it; `spread` within a group."""
    above = math.sqrt((1 - share) / share)

    def draw(size: tuple[int, ...], rng: np.random.Generator) -> Array:
        return np.where(rng.random(size) < share, above, -1 / above) + spread * rng.standard_normal(size)

    return draw


def paper_like(
    runs: Draw, floor: Draw = normal, *, shift: float = 0.0, ratio: float = 1.0
) -> Callable[..., Family]:
    """The spreads of the paper's eight games; `shift` in standard deviations of runs, `ratio` of their spread."""

    def draw(n: int, n_floor: int, rng: np.random.Generator) -> Family:
        spread = ratio * SEMS[:, None] * math.sqrt(6)
        values = spread * (runs((N_GAMES, n), rng) + shift)
        episodes = floor((N_GAMES, n_floor), rng) * FLOOR_SEMS[:, None] * math.sqrt(N_FLOOR)
        return [(v, e, (float(v.min()), float(v.max()))) for v, e in zip(values, episodes, strict=True)]

    return draw


def successes(rate: float, *, concentration: float = math.inf, shift: float = 0.0) -> Callable[..., Family]:
    """Returns of 0 or 1; runs of 384 episodes with this rate (plus shift), which varies between runs as a beta."""

    def draw(n: int, n_floor: int, rng: np.random.Generator) -> Family:
        own = np.full((N_GAMES, n), rate + shift)
        if math.isfinite(concentration):
            own = rng.beta(own * concentration, (1 - own) * concentration)
        counts = rng.binomial(N_FLOOR, own)
        episodes = (rng.random((N_GAMES, n_floor)) < rate).astype(float)
        return [
            (c / N_FLOOR, e, (float(c.min() == N_FLOOR), float(c.max() > 0)))
            for c, e in zip(counts, episodes, strict=True)
        ]

    return draw


def failing_runs(share: float, noise: float = 0.0, floor_spread: float = 1.0) -> Callable[..., Family]:
    """This share of the runs scores 0 (plus noise), the others score so much that the mean is 1, as the floor's."""

    def draw(n: int, n_floor: int, rng: np.random.Generator) -> Family:
        values = np.where(rng.random((N_GAMES, n)) < share, 0.0, 1 / (1 - share))
        values = values + noise * rng.standard_normal(values.shape)
        episodes = 1 + floor_spread * rng.standard_normal((N_GAMES, n_floor))
        return [(v, e, (float(v.min()), float(v.max()))) for v, e in zip(values, episodes, strict=True)]

    return draw


def jackpots(rate: float, size: float = 50.0) -> Callable[..., Family]:
    """Normal returns, and now and then a very large one; runs of 384 episodes."""

    def draw(n: int, n_floor: int, rng: np.random.Generator) -> Family:
        def episodes(shape: tuple[int, ...]) -> Array:
            return rng.standard_normal(shape) + size * (rng.random(shape) < rate)

        runs = episodes((N_GAMES, n, N_FLOOR))
        return [
            (r.mean(axis=1), e, (float(r.min()), float(r.max())))
            for r, e in zip(runs, episodes((N_GAMES, n_floor)), strict=True)
        ]

    return draw


def one_skewed_game(n: int, n_floor: int, rng: np.random.Generator) -> Family:
    """One game with log-normal runs among seven with normal ones."""
    return [*paper_like(log_normal)(n, n_floor, rng)[:1], *paper_like(normal)(n, n_floor, rng)[1:]]


def unequal_agents(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """The runs of two agents in turn, with standard deviations of 1:3."""
    return rng.standard_normal(size) * np.where(np.arange(size[-1]) % 2, 3.0, 1.0) / math.sqrt(5)


def gamma_half(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Skewness 2.8."""
    return (rng.gamma(0.5, size=size) - 0.5) / math.sqrt(0.5)


def heavy_tails(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Student's t with three degrees of freedom."""
    return rng.standard_t(3, size) / math.sqrt(3)


def uniform(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Bounded on both sides."""
    return (rng.random(size) - 0.5) * math.sqrt(12)


def diverging_runs(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """One run in ten lies five standard deviations of the others lower."""
    return (rng.standard_normal(size) - 5 * (rng.random(size) < 0.1) + 0.5) / math.sqrt(3.25)


def mostly_zero(size: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Nine in ten are equal, the others log-normal with sigma 0.5."""
    first, second = math.exp(0.125), math.exp(0.5)
    values = (rng.random(size) < 0.1) * rng.lognormal(0, 0.5, size)
    return (values - 0.1 * first) / math.sqrt(0.1 * second - 0.01 * first**2)


def half_skewed(n: int, n_floor: int, rng: np.random.Generator) -> Family:
    """Four games with exponential runs, four with normal ones."""
    return [*paper_like(exponential)(n, n_floor, rng)[:4], *paper_like(normal)(n, n_floor, rng)[4:]]


def counts(rate: float, shape: float) -> Callable[..., Family]:
    """Poisson returns; runs of 384 episodes, whose rate varies between runs as a gamma with this shape."""

    def draw(n: int, n_floor: int, rng: np.random.Generator) -> Family:
        own = rng.gamma(shape, rate / shape, (N_GAMES, n))
        runs = rng.poisson(own[..., None], (N_GAMES, n, N_FLOOR))
        episodes = rng.poisson(rate, (N_GAMES, n_floor)).astype(float)
        return [
            (r.mean(axis=1), e, (float(r.min()), float(r.max()))) for r, e in zip(runs, episodes, strict=True)
        ]

    return draw


#: The worlds that the method was chosen on.
WORLDS = (
    *(World("normal", n, paper_like(normal)) for n in (3, 6, 20)),
    World("0-or-1 returns, rate .005", 6, successes(0.005)),
    World("0-or-1 returns, rate .002", 10, successes(0.002)),
    World("0-or-1 returns, rate .02, varying between runs", 20, successes(0.02, concentration=200), 0.06),
    World("0-or-1 returns, rate .98, varying between runs", 20, successes(0.98, concentration=200), 0.06),
    World("0-or-1 returns, rate .3, 5 floor episodes", 6, successes(0.3), n_floor=5),
    World("0-or-1 returns, rate .02, 20 floor episodes", 6, successes(0.02), n_floor=20),
    World("0-or-1 returns, rate .02, 50 floor episodes", 6, successes(0.02), n_floor=50),
    World("two groups of runs, floor between them", 3, paper_like(two_groups(0.25)), 0.06),
    World("80% of runs at 0", 6, failing_runs(0.8)),
    World("80% of runs near 0", 6, failing_runs(0.8, noise=0.02)),
    *(World("log-normal", n, paper_like(log_normal)) for n in (3, 6, 20)),
    *(World("mirrored log-normal", n, paper_like(mirrored(log_normal))) for n in (3, 6, 20)),
    World("exponential", 6, paper_like(exponential)),
    World("skewed floor, runs that hardly differ", 6, paper_like(normal, gamma_half, ratio=0.1)),
    World("heavy-tailed runs", 6, paper_like(heavy_tails)),
    World("a return of 50 in one of 500 episodes", 6, jackpots(0.002)),
    World("log-normal floor of 50 episodes", 10, paper_like(normal, log_normal), n_floor=50),
    World("one log-normal game of eight", 6, one_skewed_game),
    World("two agents, standard deviations 1:3", 6, paper_like(unequal_agents)),
)
#: Worlds with a true difference in every game.
SHIFTED = (
    *(World(f"normal, {s:+g} SD", n, paper_like(normal, shift=s), None) for s in (2, -2) for n in (3, 6, 20)),
    World("0-or-1 returns, rate .02 and .05", 6, successes(0.02, concentration=200, shift=0.03), None),
    World("0-or-1 returns, rate .005 and .03", 6, successes(0.005, shift=0.025), None),
    World(
        "0-or-1 returns, rate .3 and .5, 50 floor episodes",
        6,
        successes(0.3, concentration=50, shift=0.2),
        None,
        50,
    ),
)
#: Chosen after the method was fixed, and run once.
LATE = (
    World("bounded runs, exponential floor of 60 episodes", 5, paper_like(uniform, exponential), n_floor=60),
    World("one run in ten diverges", 10, paper_like(diverging_runs)),
    World("floor with 90% zeros, 200 episodes", 6, paper_like(normal, mostly_zero), n_floor=200),
    World("half of the games exponential", 8, half_skewed),
    World("Poisson returns of mean .05", 8, counts(0.05, 4)),
    World("0-or-1 returns, rate .5, 64 floor episodes", 4, successes(0.5, concentration=20), n_floor=64),
)


#: Between runs on one level set, in standard deviations of an episode: small enough that levels matter as much.
RUN_SD = 0.15
#: Returns by the normal score of an episode.
SHAPES: dict[str, Callable[[Array], Array]] = {
    "normal": lambda score: score,
    "0-or-10": lambda score: 10.0 * (score > 0.8),
    "log-normal": np.exp,
}


@dataclass(frozen=True)
class LevelWorld:
    """Games without a gap; the shape is applied to a normal score of an episode, so this holds for all of them."""

    shape: str
    share: float
    """Of the variance between episodes that lies between levels."""
    levels: tuple[int, int] = (200, 100)
    """Training and held-out levels."""
    shift: float = 0.3
    """Of the runs above the floor, on the normal score; without it they score what the floor does on new levels."""
    common: float = 0.7
    """Correlation of how easy a level is for the floor with how easy it is for the runs."""


@dataclass(frozen=True)
class LevelSet:
    """What games look like on one level set, with 384 episodes per run and the same draws for the floor."""

    table: LevelTable
    run_means: Array
    """(games, runs)"""
    run_variances: Array
    floors: Array
    """(games, episodes)"""
    seen: Array
    """The lowest and highest episode return of the runs (games, 2)."""


def level_sets(world: LevelWorld, n: int, games: int, rng: np.random.Generator) -> tuple[LevelSet, LevelSet]:
    """Games with n runs on training and on held-out levels."""
    first, second = (_level_set(world, size, n, games, rng) for size in world.levels)
    return first, second


def _level_set(world: LevelWorld, n_levels: int, n: int, games: int, rng: np.random.Generator) -> LevelSet:
    # Half of the level variance is shared by the runs, half is each run's own; the floor follows the shared part.
    levels = rng.integers(0, n_levels, (games, N_FLOOR))
    place = levels + np.arange(games)[:, None] * n_levels
    counts = np.bincount(place.ravel(), minlength=games * n_levels).reshape(games, n_levels)
    ease = rng.standard_normal((games, n_levels))
    own = rng.standard_normal((games, n, n_levels))
    score = math.sqrt(world.share / 2) * (ease[:, None, :] + own) + world.shift
    score += RUN_SD * rng.standard_normal((games, n, 1))
    returns = np.take_along_axis(score, np.broadcast_to(levels[:, None, :], (games, n, N_FLOOR)), axis=2)
    returns += math.sqrt(1 - world.share) * rng.standard_normal(returns.shape)
    # Random play is never a function of the level alone, but its scores vary as much as those of a run.
    floor_ease = world.common * ease + math.sqrt(1 - world.common**2) * rng.standard_normal(ease.shape)
    share = min(world.share, 0.7)
    floor = math.sqrt(share) * np.take_along_axis(floor_ease, levels, axis=1)
    floor += math.sqrt(1 + RUN_SD**2 - share) * rng.standard_normal(floor.shape)
    returns, floor = SHAPES[world.shape](returns), SHAPES[world.shape](floor)
    played = np.maximum(counts, 1)
    by_run = (np.arange(n)[None, :, None] * games * n_levels + place[:, None, :]).ravel()
    sums = np.bincount(by_run, weights=returns.ravel(), minlength=n * games * n_levels)
    values = sums.reshape(n, games, n_levels).transpose(1, 0, 2) / played[:, None, :]
    reference = np.bincount(place.ravel(), weights=floor.ravel(), minlength=games * n_levels)
    return LevelSet(
        LevelTable(values, reference.reshape(games, n_levels) / played, counts / N_FLOOR),
        returns.mean(axis=2),
        returns.var(axis=2, ddof=1),
        floor,
        np.stack([returns.min(axis=(1, 2)), returns.max(axis=(1, 2))], axis=-1),
    )
