"""How often the recommended calls, gaps and sentences are wrong, in studies with known truth.

    python benchmarks/claims_simulation.py [--families 4000] [--seed 0] [--only SECTION]

Prints the Markdown tables of docs/methods.md. A family has eight games. Every call is made by the package itself.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from gapfloor.statistics.behrens_fisher import VariancePart, two_part_p
from gapfloor.statistics.conventions import Method, Pair
from gapfloor.statistics.families import FamilyCall, call_family, holm
from gapfloor.statistics.gaps import excess_gap, gap, gap_is_established
from gapfloor.statistics.level_crossing import Episodes, crossed_mean, level_table
from gapfloor.statistics.power import PlannedComparison
from gapfloor.statistics.reference_calls import compare_to_floor, compare_to_reference
from gapfloor.statistics.run_shape import difference_doubt, family_shape

Array = np.ndarray
Random = np.random.Generator
Rows = Iterator[list[Any]]
#: Per game: run values, floor episodes, and the lowest and highest episode return of the runs.
Family = list[tuple[Array, Array, Pair]]

ALPHA, N_GAMES, N_FLOOR = 0.05, 8, 384
METHODS: tuple[Method, ...] = ("recommended", "paper")
#: SEM over six runs and floor SEM of the paper's eight games (sampled, held-out, 8M).
SEMS = np.array([1.11, 0.39, 0.75, 0.31, 0.30, 0.13, 0.49, 0.21])
FLOOR_SEMS = np.array([0.11, 0.21, 0.06, 0.24, 0.10, 0.05, 0.05, 0.24])
#: Shapes of run values or floor episodes, with mean 0 and standard deviation 1 (except the second to fourth).
SHAPES: dict[str, Callable[[tuple[int, ...], Random], Array]] = {
    "normal": lambda size, rng: rng.standard_normal(size),
    "normal +2": lambda size, rng: 2 + rng.standard_normal(size),
    "normal -2": lambda size, rng: rng.standard_normal(size) - 2,
    "hardly differ": lambda size, rng: 0.1 * rng.standard_normal(size),
    "exponential": lambda size, rng: rng.exponential(size=size) - 1,
    "gamma": lambda size, rng: (rng.gamma(0.5, size=size) - 0.5) / math.sqrt(0.5),
    "log-normal": lambda size, rng: (rng.lognormal(0, 1, size) - math.exp(0.5)) / math.sqrt((math.e - 1) * math.e),
    "mirrored log-normal": lambda size, rng: -SHAPES["log-normal"](size, rng),
    "two groups": lambda size, rng: np.where(rng.random(size) < 0.5, 1, -1) + 0.25 * rng.standard_normal(size),
    "t with 3 df": lambda size, rng: rng.standard_t(3, size) / math.sqrt(3),
    "uniform": lambda size, rng: (rng.random(size) - 0.5) * math.sqrt(12),
    # One run in ten lies five standard deviations of the others lower.
    "one in ten diverges": lambda size, rng: (
        (rng.standard_normal(size) - 5 * (rng.random(size) < 0.1) + 0.5) / math.sqrt(3.25)
    ),
    # The runs of two agents in turn, with standard deviations of 1:3.
    "two agents": lambda size, rng: (
        rng.standard_normal(size) * np.where(np.arange(size[-1]) % 2, 3.0, 1.0) / math.sqrt(5)
    ),
    # Nine in ten are equal, the others log-normal with sigma 0.5.
    "mostly zero": lambda size, rng: (
        ((rng.random(size) < 0.1) * rng.lognormal(0, 0.5, size) - 0.1 * math.exp(0.125))
        / math.sqrt(0.1 * math.exp(0.5) - 0.01 * math.exp(0.25))
    ),
}  # fmt: skip


def games(runs: Array, floors: Array) -> Family:
    """A family of run values and floor episodes; the runs' episodes are in the last of three axes, if there are any."""
    values = runs.mean(axis=2) if runs.ndim == 3 else runs
    return [(v, f, (float(r.min()), float(r.max()))) for v, f, r in zip(values, floors, runs, strict=True)]


def paper_like(n: int, n_floor: int, rng: Random, runs: str = "normal", floor: str = "normal") -> Family:
    """The spreads of the paper's games."""
    values = SEMS[:, None] * math.sqrt(6) * SHAPES[runs]((N_GAMES, n), rng)
    return games(values, FLOOR_SEMS[:, None] * math.sqrt(N_FLOOR) * SHAPES[floor]((N_GAMES, n_floor), rng))


def mixed(n: int, n_floor: int, rng: Random, runs: str, first: int) -> Family:
    """The first games have runs of this shape, the others normal ones."""
    return [*paper_like(n, n_floor, rng, runs)[:first], *paper_like(n, n_floor, rng)[first:]]


def successes(
    n: int, n_floor: int, rng: Random, rate: float, concentration: float = math.inf, shift: float = 0.0
) -> Family:
    """Returns of 0 or 1; runs of 384 episodes with this rate (plus shift), which varies between runs as a beta."""
    own = np.full((N_GAMES, n), rate + shift)
    if math.isfinite(concentration):
        own = rng.beta(own * concentration, (1 - own) * concentration)
    family = games(
        rng.binomial(N_FLOOR, own) / N_FLOOR, (rng.random((N_GAMES, n_floor)) < rate).astype(float)
    )
    return [(v, f, (float(v.min() == 1), float(v.max() > 0))) for v, f, _ in family]


def failing_runs(n: int, n_floor: int, rng: Random, noise: float) -> Family:
    """Four in five runs score 0 (plus noise), the others so much that the mean is 1, as the floor's."""
    values = np.where(rng.random((N_GAMES, n)) < 0.8, 0.0, 5.0) + noise * rng.standard_normal((N_GAMES, n))
    return games(values, 1 + rng.standard_normal((N_GAMES, n_floor)))


def of_episodes(n: int, n_floor: int, rng: Random, returns: Callable[[Array, Random], Array]) -> Family:
    """Runs of 384 episodes; `returns` draws them, given how good the runs are (the floor's episodes are of one run)."""
    own = rng.gamma(4, 1 / 4, (N_GAMES, n, 1)) * np.ones(N_FLOOR)
    return games(returns(own, rng), returns(np.ones((N_GAMES, n_floor)), rng))


@dataclass(frozen=True)
class World:
    """What the games of a study look like."""

    name: str
    n: int
    """Runs per game."""
    draw: Callable[[int, int, Random], Family] = paper_like
    """A family of so many runs and floor episodes."""
    goal: float = 0.05
    """The largest rate of families with a false call, where there is no true difference."""
    n_floor: int = N_FLOOR

    def families(self, count: int, seed: int) -> Iterator[Family]:
        """So many independent families."""
        rng = np.random.default_rng([seed, *self.name.encode(), self.n, self.n_floor])
        for _ in range(count):
            yield self.draw(self.n, self.n_floor, rng)


#: The worlds that the method was chosen on.
WORLDS = (
    *(World("normal", n) for n in (3, 6, 20)),
    World("0-or-1 returns, rate .005", 6, partial(successes, rate=0.005)),
    World("0-or-1 returns, rate .002", 10, partial(successes, rate=0.002)),
    *(
        World(f"0-or-1 returns, rate .{rate}, varying between runs", 20,
              partial(successes, rate=int(rate) / 100, concentration=200), 0.06)
        for rate in ("02", "98")
    ),
    World("0-or-1 returns, rate .3, 5 floor episodes", 6, partial(successes, rate=0.3), n_floor=5),
    World("0-or-1 returns, rate .02, 20 floor episodes", 6, partial(successes, rate=0.02), n_floor=20),
    World("0-or-1 returns, rate .02, 50 floor episodes", 6, partial(successes, rate=0.02), n_floor=50),
    World("two groups of runs, floor between them", 3, partial(paper_like, runs="two groups"), 0.06),
    World("80% of runs at 0", 6, partial(failing_runs, noise=0.0)),
    World("80% of runs near 0", 6, partial(failing_runs, noise=0.02)),
    *(World("log-normal", n, partial(paper_like, runs="log-normal")) for n in (3, 6, 20)),
    *(World("mirrored log-normal", n, partial(paper_like, runs="mirrored log-normal")) for n in (3, 6, 20)),
    World("exponential", 6, partial(paper_like, runs="exponential")),
    World("skewed floor, runs that hardly differ", 6, partial(paper_like, runs="hardly differ", floor="gamma")),
    World("heavy-tailed runs", 6, partial(paper_like, runs="t with 3 df")),
    World("a return of 50 in one of 500 episodes", 6, partial(of_episodes, returns=lambda own, rng: (
        rng.standard_normal(own.shape) + 50 * (rng.random(own.shape) < 0.002)))),
    World("log-normal floor of 50 episodes", 10, partial(paper_like, floor="log-normal"), n_floor=50),
    World("one log-normal game of eight", 6, partial(mixed, runs="log-normal", first=1)),
    World("two agents, standard deviations 1:3", 6, partial(paper_like, runs="two agents")),
)  # fmt: skip
#: Chosen after the method was fixed, and run once.
LATE = (
    World("bounded runs, exponential floor of 60 episodes", 5, partial(paper_like, runs="uniform", floor="exponential"),
          n_floor=60),
    World("one run in ten diverges", 10, partial(paper_like, runs="one in ten diverges")),
    World("floor with 90% zeros, 200 episodes", 6, partial(paper_like, floor="mostly zero"), n_floor=200),
    World("half of the games exponential", 8, partial(mixed, runs="exponential", first=4)),
    World("Poisson returns of mean .05", 8, partial(of_episodes, returns=lambda own, rng: rng.poisson(0.05 * own))),
    World("0-or-1 returns, rate .5, 64 floor episodes", 4, partial(successes, rate=0.5, concentration=20), n_floor=64),
)  # fmt: skip
#: Worlds with a true difference in every game.
SHIFTED = (
    *(World(f"normal, {s} SD", n, partial(paper_like, runs=f"normal {s}")) for s in ("+2", "-2") for n in (3, 6, 20)),
    World("0-or-1 returns, rate .02 and .05", 6, partial(successes, rate=0.02, concentration=200, shift=0.03)),
    World("0-or-1 returns, rate .005 and .03", 6, partial(successes, rate=0.005, shift=0.025)),
    World("0-or-1 returns, rate .3 and .5, 50 floor episodes", 6,
          partial(successes, rate=0.3, concentration=50, shift=0.2), n_floor=50),
)  # fmt: skip


def called(family: Family) -> tuple[FamilyCall, ...]:
    """The recommended calls of a family."""
    return call_family(
        [compare_to_reference(runs, floor, seen=seen, is_called_later=True) for runs, floor, seen in family]
    )


def rates(one: Callable[[Random], Any], families: int, *seed: int | str) -> Array:
    """The mean over families of what `one` finds in a family."""
    rng = np.random.default_rng(
        [n for part in seed for n in (part.encode() if isinstance(part, str) else [part])]
    )
    return np.asarray(np.mean([one(rng) for _ in range(families)], axis=0))


def false_calls(world: World, families: int, seed: int) -> list[float]:
    """Families with a false call, with one above and below; games that are not tested, and whose interval covers 0."""
    found = [called(family) for family in world.families(families, seed)]
    words = np.array([[call.call for call in calls] for calls in found])
    above, below = (words == word for word in ("above", "below"))
    # The interval at 95% covers 0 exactly where p is at least .05.
    p = np.array([call.test.p for calls in found for call in calls if not call.test.not_tested])
    covered = float(np.mean(p >= ALPHA)) if p.size else math.nan
    by_family = (float(each.any(axis=1).mean()) for each in (above | below, above, below))
    return [*by_family, float((words == "not tested").mean()), covered]


def calls(families: int, seed: int) -> Rows:
    """Calls in worlds without a difference."""
    for title, worlds in (("chosen on", WORLDS), ("chosen after the method was fixed", LATE)):
        yield [f"**worlds {title}**", *[""] * 7]
        for world in worlds:
            yield [world.name, world.n, *false_calls(world, families, seed), world.goal]


def power_of(world: World, families: int, seed: int) -> float:
    """The rate of games that are called in the direction of their difference."""
    word = "below" if ", -" in world.name else "above"
    return float(np.mean([[c.call == word for c in called(each)] for each in world.families(families, seed)]))


def power(families: int, seed: int) -> Rows:
    """Calls in worlds with a difference."""
    for world in SHIFTED:
        yield [world.name, world.n, power_of(world, families, seed)]


#: Returns by the normal score of an episode.
RETURNS: dict[str, Callable[[Array], Array]] = {
    "normal": lambda score: score, "0-or-10": lambda score: 10.0 * (score > 0.8), "log-normal": np.exp,
}  # fmt: skip
#: Between runs on one level set, in standard deviations of an episode: small enough that levels matter as much.
RUN_SD = 0.15


def level_set(
    shape: str, share: float, n_levels: int, rng: Random, *, shift: float = 0.3, common: float = 0.7
) -> tuple[list[Episodes], Episodes]:
    """Six runs and the floor of a game without a gap, 384 episodes each on the same levels.

    `share` of the variance between episodes lies between levels: half of it is shared by the runs, half is each run's
    own. The runs are `shift` above the floor, and `common` is the correlation of how easy a level is for both.
    """
    levels, ease = rng.integers(0, n_levels, N_FLOOR), rng.standard_normal(n_levels)
    score = math.sqrt(share / 2) * (ease + rng.standard_normal((6, n_levels)))
    score += shift + RUN_SD * rng.standard_normal((6, 1))
    returns = score[:, levels] + math.sqrt(1 - share) * rng.standard_normal((6, N_FLOOR))
    # Random play is never a function of the level alone, but its scores vary as much as those of a run.
    floor_ease = common * ease + math.sqrt(1 - common**2) * rng.standard_normal(n_levels)
    within = math.sqrt(1 + RUN_SD**2 - min(share, 0.7)) * rng.standard_normal(N_FLOOR)
    floor = math.sqrt(min(share, 0.7)) * floor_ease[levels] + within
    return [(RETURNS[shape](row), levels) for row in returns], (RETURNS[shape](floor), levels)


def gaps(families: int, seed: int) -> Rows:
    """Gaps of games without one, for new levels of the generator."""

    def one(rng: Random) -> list[float]:
        tests, fisher = [], []
        for _ in range(N_GAMES):
            (train, first), (test, second) = (level_set(shape, share, size, rng) for size in (200, 100))
            tests.append(excess_gap(train, test, train_floor=first, test_floor=second))
            fisher.append(gap([r for r, _ in train], [r for r, _ in test], rng=rng, n_resamples=2).p_fisher)
        found = call_family(tests)
        is_any = any(call.call in ("train higher", "test higher") for call in found)
        p = np.array([fisher, [test.p for test in tests]])
        return [*(p < ALPHA).mean(axis=1), is_any, any(map(gap_is_established, found))]

    for shape in RETURNS:
        for share in (0.3, 1.0):
            yield [shape, f"{share:g}", 6, *rates(one, families, seed, shape, int(10 * share))]


def transfers(families: int, seed: int) -> Rows:
    """Runs that score what the floor scores on new levels, where agent and floor have level effects of their own."""

    def one(rng: Random) -> list[bool]:
        sets = [level_set(shape, 1.0, size, rng, shift=0.0, common=0.0) for _ in range(N_GAMES)]
        runs, floors = (
            np.array(each) for each in zip(*(([r for r, _ in a], b[0]) for a, b in sets), strict=True)
        )
        crossed = [crossed_mean(table) for each in sets if (table := level_table(*each))]
        above = np.array([call.call == "above" for call in called(games(runs, floors))])
        is_new = (holm([each.p for each in crossed]) < ALPHA) & [each.value > 0 for each in crossed]
        return [above.any(), (above & is_new).any()]

    for shape, size in (("normal", 10), ("normal", 30), ("normal", 100), ("0-or-10", 30), ("log-normal", 30)):
        yield [shape, size, 6, *rates(one, families, seed, shape, size)]


def agents_differ(shape: str, sizes: tuple[int, int], rng: Random, difference: float = 0.0) -> bool:
    """Whether two agents with so many runs are said to differ in a game."""
    a, b = (SHAPES[shape]((N_GAMES, n), rng) for n in sizes)
    deltas = a.mean(axis=1) + difference - b.mean(axis=1)
    parts = [
        [VariancePart(float(x.var(ddof=1) / x.size), x.size - 1) for x in pair]
        for pair in zip(a, b, strict=True)
    ]
    p = holm([two_part_p(float(delta), *each) for delta, each in zip(deltas, parts, strict=True)])
    shapes = family_shape(a), family_shape(b)
    doubts = {True: difference_doubt(*shapes), False: difference_doubt(*shapes[::-1])}
    return any(q < ALPHA and not doubts[bool(delta > 0)] for q, delta in zip(p, deltas, strict=True))


def floors_differ(rate: float, rng: Random) -> bool:
    """Whether random play with 0-or-1 returns is said to score more on one of two level sets."""
    means = rng.binomial(N_FLOOR, rate, (N_GAMES, 2)) / N_FLOOR
    parts = [[VariancePart(m * (1 - m) / (N_FLOOR - 1), N_FLOOR - 1) for m in pair] for pair in means]
    p = [two_part_p(a - b, *each) for (a, b), each in zip(means, parts, strict=True)]
    return min(p) * N_GAMES < ALPHA


def others(families: int, seed: int) -> Rows:
    """Sentences about agents that do not differ, and about floors that are equal on both level sets."""
    for shape in ("normal", "log-normal", "exponential", "two groups"):
        for sizes in ((6, 6), (3, 12)):
            wrong = rates(partial(agents_differ, shape, sizes), families, seed, shape, *sizes)
            yield ['"agents differ"', f"{shape}, {sizes[0]} and {sizes[1]} runs", float(wrong)]
    for rate in (0.005, 0.3):
        wrong = rates(partial(floors_differ, rate), families, seed, 2)
        yield ['"random play itself scores more"', f"0-or-1 returns, rate {rate:g}", float(wrong)]


def first_step(
    planned: PlannedComparison, n: int, n_floor: int, rng: Random, *, shape: str = "normal"
) -> float:
    """The share of a family's games with this truth that are called at Holm's first step."""
    runs = planned.delta + planned.run_sd * SHAPES[shape]((N_GAMES, n), rng)
    floors = planned.floor_sd * rng.standard_normal((N_GAMES, n_floor))
    if planned.method == "paper":
        tests = [compare_to_floor(*game, rng=rng, n_resamples=2) for game in zip(runs, floors, strict=True)]
        return float(np.mean([one.p < ALPHA / N_GAMES and one.delta * planned.delta > 0 for one in tests]))
    word = "above" if planned.delta > 0 else "below"
    return float(
        np.mean([c.call == word and c.test.p < ALPHA / N_GAMES for c in called(games(runs, floors))])
    )


def stated(families: int, seed: int) -> Rows:
    """The power that `gapfloor power` states for a design, and how often games of that design are called."""
    for delta in (3.0, 1.5, -3.0, -1.5):
        planned = PlannedComparison(delta, 1.0, 3.0, family_size=N_GAMES)
        design = planned.smallest_design()
        assert design is not None
        size = design.n_runs, design.n_floor
        normal, skewed = (
            float(rates(partial(first_step, planned, *size, shape=shape), families // 4, seed, 3))
            for shape in ("normal", "exponential")
        )
        yield [f"{delta:+g} SD", *size, design.power, normal, planned.skewed_power(*size), skewed]


def missed(families: int, seed: int) -> Rows:
    """How often a difference of X is called, where "a difference smaller than X is missed" is said.

    Once with the X of the true standard deviations, and once with the X that each study states from its own.
    """

    def of_study(rng: Random) -> float:
        sds = (float(sd * rng.standard_normal(k).std(ddof=1)) for k, sd in ((n, 1.0), (N_FLOOR, floor_sd)))
        own = PlannedComparison(0.0, *sds, method=method, family_size=N_GAMES)
        return first_step(replace(truth, delta=own.smallest_delta(n, N_FLOOR)), n, N_FLOOR, rng)

    for method in METHODS:
        for n, floor_sd in ((6, 3.0), (6, 10.0), (20, 3.0), (20, 10.0)):
            truth = PlannedComparison(0.0, 1.0, floor_sd, method=method, family_size=N_GAMES)
            planned = replace(truth, delta=truth.smallest_delta(n, N_FLOOR))
            found = (
                rates(one, families // 4, seed, 4, n)
                for one in (partial(first_step, planned, n, N_FLOOR), of_study)
            )
            yield [method, n, f"{floor_sd:g}", planned.delta, *map(float, found)]


#: The sections with the headings of their columns.
SECTIONS: dict[str, tuple[Callable[[int, int], Rows], str]] = {
    "calls": (calls, "world | runs | any false call | above | below | not tested | interval covers | goal"),
    "power": (power, "world | runs | called"),
    "gaps": (gaps, "run values | level share | runs | paper (Fisher) | recommended | any of 8 | gap established"),
    "transfers": (
        transfers, 'run values | held-out levels | runs | any "above" on these levels | any "the policy transfers"',
    ),
    "others": (others, "sentence | world | studies in which it is false"),
    "stated": (
        stated, "difference | runs | floor episodes | stated | normal runs | stated, exponential | exponential runs",
    ),
    "missed": (missed, "calls | runs | floor SD / run SD | X / run SD | called at X | called at the X of a study"),
}  # fmt: skip


def _text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    return "" if math.isnan(value) else f"{value:.3f}".removeprefix("0")


def main() -> None:
    """Print or write the tables."""
    parser = argparse.ArgumentParser(description="How often the recommended methods and sentences are wrong.")
    parser.add_argument("--families", type=int, default=4000, help="Families (a quarter for stated power).")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(SECTIONS))
    arguments = parser.parse_args()
    for name in [arguments.only] if arguments.only else SECTIONS:
        section, heading = SECTIONS[name]
        print(f"| {heading} |", "|" + "---|" * (heading.count("|") + 1), sep="\n")
        for row in section(arguments.families, arguments.seed):
            print(f"| {' | '.join(map(_text, row))} |", flush=True)
        print()


if __name__ == "__main__":
    main()
