"""How often the recommended calls, looks, gaps and sentences are wrong, in studies with known truth.

    python benchmarks/claims_simulation.py [--families 4000] [--seed 0] [--only SECTION] [--out FILE]

Prints Markdown tables. Looks are those of the package (`next_runs`); calls are too, but computed for many families at
once with the same functions. A test compares them with `call_reference_family`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from scipy import special, stats

from claims_worlds import (
    LATE,
    N_FLOOR,
    N_GAMES,
    SHAPES,
    SHIFTED,
    WORLDS,
    Array,
    Draw,
    Family,
    LevelSet,
    LevelWorld,
    World,
    exponential,
    level_sets,
    log_normal,
    normal,
    paper_like,
    successes,
    two_groups,
)
from gapfloor.statistics.behrens_fisher import FloorMean, RunsMean, floor_mean, tail_p
from gapfloor.statistics.clustered import LevelMatrix, crossed_mean
from gapfloor.statistics.components import VariancePart, components_p
from gapfloor.statistics.conventions import NO_PAIR, ROUNDING
from gapfloor.statistics.level_crossing import CrossedParts, crossed_parts, reference_slope
from gapfloor.statistics.looks import next_runs
from gapfloor.statistics.power import Effect, StudyDesign, skewed_power, smallest_design
from gapfloor.statistics.reference_calls import (
    LEAST_FLOOR,
    ReferenceCall,
    call_reference_family,
    compare_to_reference,
)
from gapfloor.statistics.run_shape import are_in_doubt, sample_skewness
from welch_arrays import welch

ALPHA = 0.05
LOOKS = (3, 6, 9, 12, 15)
#: Families at once, so that a laptop's memory is enough.
BATCH = 500
GAP_BATCH = 50


def calls_of(family: Family) -> tuple[ReferenceCall, ...]:
    """The recommended calls of a simulated family."""
    return call_reference_family(
        [compare_to_reference(runs, floor, seen=seen, is_called_later=True) for runs, floor, seen in family]
    )


def words_of(world: World, families: int, seed: int) -> tuple[Array, Array]:
    """The calls (1 above, -1 below, 0 none, NaN not tested) and p of all families."""
    drawn = world.families(families, seed)
    found = [_words_of(world, list(islice(drawn, BATCH))) for _ in range(math.ceil(families / BATCH))]
    return np.concatenate([words for words, _ in found]), np.concatenate([p for _, p in found])


def _words_of(world: World, drawn: list[Family]) -> tuple[Array, Array]:
    runs, floors = (np.array([[game[at] for game in family] for family in drawn]) for at in (0, 1))
    words, p = np.full(runs.shape[:2], np.nan), np.full(runs.shape[:2], np.nan)
    if world.n_floor < LEAST_FLOOR:
        return words, p
    # Families with a game whose runs do not differ are rare: they take the way of the package.
    plain = (np.ptp(runs, axis=-1) > ROUNDING * np.abs(runs).max(axis=-1)).all(axis=1)
    for at in np.flatnonzero(~plain):
        calls = calls_of(drawn[at])
        value = {"above": 1.0, "below": -1.0, "not tested": np.nan}
        words[at], p[at] = [value.get(c.call, 0.0) for c in calls], [c.test.p for c in calls]
    if plain.any():
        seen = np.array([[game[2] for game in family] for family in drawn])[plain]
        words[plain], p[plain] = _many_calls(runs[plain], floors[plain], seen)
    return words, p


def _many_calls(runs: Array, floors: Array, seen: Array) -> tuple[Array, Array]:
    n = runs.shape[-1]
    low = np.minimum(seen[..., 0], np.minimum(floors.min(axis=-1), runs.min(axis=-1)))
    high = np.maximum(seen[..., 1], np.maximum(floors.max(axis=-1), runs.max(axis=-1)))
    above, below = are_in_doubt(runs)
    average = sample_skewness(runs).mean(axis=-1, keepdims=True) * math.sqrt(n * (n - 1)) / (n - 2)
    skewness = (np.where(above, np.maximum(-average, 0), 0), np.where(below, np.maximum(average, 0), 0))
    mean, error = runs.mean(axis=-1), runs.std(axis=-1, ddof=1) / math.sqrt(n)
    known = RunsMean(mean, error, n - 1, n, (low, high), skewness)
    is_above = mean > floors.mean(axis=-1)
    tails = [tail_p(known, floor_mean(floors, end), sign=sign) for sign, end in ((1, high), (-1, low))]
    p = np.minimum(1.0, 2 * np.where(is_above, *tails))
    called = _step_down(lambda level: p < level)
    return np.where(called, np.where(is_above, np.where(above, np.nan, 1), np.where(below, np.nan, -1)), 0), p


def false_calls(world: World, families: int, seed: int) -> dict[str, float]:
    """Rates of a world without differences: of families with a false call, and of single games."""
    words, p = words_of(world, families, seed)
    return {
        "any": (np.abs(words) == 1).any(axis=1).mean(),
        "above": (words == 1).any(axis=1).mean(),
        "below": (words == -1).any(axis=1).mean(),
        "not tested": np.isnan(words).mean(),
        # The interval at 95% covers the truth, 0, exactly where p is at least .05.
        "covered": np.mean(p[~np.isnan(p)] >= ALPHA) if not np.isnan(p).all() else math.nan,
    }


def power_of(world: World, families: int, seed: int) -> float:
    """The rate of games that are called in the direction of their difference."""
    sign = -1 if ", -" in world.name else 1
    return float(np.mean(words_of(world, families, seed)[0] == sign))


def calls(families: int, seed: int) -> Iterator[str]:
    """Calls in worlds without a difference."""
    yield "| world | runs | any false call | above | below | not tested | interval covers | goal |"
    yield "|---|---|---|---|---|---|---|---|"
    for title, worlds in (("chosen on", WORLDS), ("chosen after the method was fixed", LATE)):
        yield f"| **worlds {title}** | | | | | | | |"
        for world in worlds:
            rates = false_calls(world, families, seed)
            cells = (_rate(rates[name]) for name in ("any", "above", "below", "not tested", "covered"))
            yield f"| {world.name} | {world.n} | {' | '.join(cells)} | {_rate(world.goal or math.nan)} |"


def power(families: int, seed: int) -> Iterator[str]:
    """Calls in worlds with a difference."""
    yield "| world | runs | called |"
    yield "|---|---|---|"
    for world in SHIFTED:
        yield f"| {world.name} | {world.n} | {_rate(power_of(world, families, seed))} |"


def looks(families: int, seed: int) -> Iterator[str]:
    """Looking at 3, 6, 9, 12 and 15 runs."""
    yield "| world | any false call over five looks | goal |"
    yield "|---|---|---|"
    worlds = (
        World("normal", LOOKS[-1], paper_like(normal)),
        World("0-or-1 returns, rate .005", LOOKS[-1], successes(0.005)),
        World("log-normal", LOOKS[-1], paper_like(log_normal)),
    )
    for world in worlds:
        wrong = 0
        for family in world.families(families // 4, seed):
            runs, floors, seen = zip(*family, strict=True)
            decisions = next_runs(runs, floors, looks=LOOKS, seen=seen)
            wrong += any(one.call in ("above", "below") for one in decisions)
        yield f"| {world.name} | {_rate(wrong / (families // 4))} | .05 |"


def gaps(families: int, seed: int) -> Iterator[str]:
    """Gaps of games without one, for new levels of the generator."""
    yield "| run values | level share | runs | paper (Fisher) | recommended | any of 8 | gap established |"
    yield "|---|---|---|---|---|---|---|"
    for world in (LevelWorld(shape, share) for shape in SHAPES for share in (0.3, 1.0)):
        cells = " | ".join(map(_rate, _mean_of(world, _gap_rates, families, seed)))
        yield f"| {world.shape} | {world.share:g} | 6 | {cells} |"


def transfers(families: int, seed: int) -> Iterator[str]:
    """Runs that score what the floor scores on new levels, where agent and floor have level effects of their own."""
    yield '| run values | held-out levels | runs | any "above" on these levels | any "the policy transfers" |'
    yield "|---|---|---|---|---|"
    places = [("normal", 10), ("normal", 30), ("normal", 100), ("0-or-10", 30), ("log-normal", 30)]
    for shape, size in places:
        world = LevelWorld(shape, 1.0, (2, size), shift=0.0, common=0.0)
        above, said = _mean_of(world, _transfer_rates, families, seed)
        yield f"| {shape} | {size} | 6 | {_rate(above)} | {_rate(said)} |"


def _mean_of(world: LevelWorld, rates: Callable[..., Sequence[Array]], families: int, seed: int) -> Array:
    """The mean over all families of what `rates` finds in some of them."""
    rng = np.random.default_rng([seed, *str(world).encode()])
    found = []
    for _ in range(math.ceil(families / GAP_BATCH)):
        found.append([np.mean(each) for each in rates(level_sets(world, 6, GAP_BATCH * N_GAMES, rng))])
    return np.mean(found, axis=0)


def _gap_rates(sets: Sequence[LevelSet]) -> tuple[Array, ...]:
    """What each of the columns of `gaps` decides, game by game or family by family."""
    tables = [each.table for each in sets]
    plain, estimated = (
        crossed_parts([(s, t.minus(slope), t.weights) for s, t in zip((1.0, -1.0), tables, strict=True)])
        for slope in (np.ones(tables[0].values.shape[0]), reference_slope(tables))
    )
    train, test = ((each.run_means, each.run_variances, N_FLOOR) for each in sets)
    fisher = stats.chi2.sf(-2 * np.log(np.maximum(welch(*train, *test).p, 1e-300)).sum(axis=-1), 2 * 6)
    holm = [_step_down(lambda level, part=part: _rejects(part, level)) for part in (estimated, plain)]
    established = holm[0] & holm[1] & (_by_family(estimated.estimate) > 0) & (_by_family(plain.estimate) > 0)
    return fisher < ALPHA, _rejects(estimated, ALPHA), holm[0].any(axis=1), established.any(axis=1)


def _transfer_rates(sets: Sequence[LevelSet]) -> tuple[Array, ...]:
    """In which families a game is called above on its held-out levels, and in which one is said to transfer."""
    held_out = sets[1]
    above = _many_calls(*map(_by_family, (held_out.run_means, held_out.floors, held_out.seen)))[0] == 1
    table = held_out.table
    found = [
        crossed_mean(LevelMatrix((values - floor)[:, weights > 0], weights[weights > 0]))
        for values, floor, weights in zip(table.values, table.reference, table.weights, strict=True)
    ]
    p, estimate = (_by_family(np.array([getattr(each, name) for each in found])) for name in ("p", "value"))
    new_levels = _step_down(lambda level: p < level) & (estimate > 0)
    return above.any(axis=1), (above & new_levels).any(axis=1)


def others(families: int, seed: int) -> Iterator[str]:
    """Sentences about agents that do not differ, and about floors that are equal on both level sets."""
    yield "| sentence | world | studies in which it is false |"
    yield "|---|---|---|"
    rng = np.random.default_rng([seed, 2])
    shapes = (
        ("normal", normal),
        ("log-normal", log_normal),
        ("exponential", exponential),
        ("two groups", two_groups(0.25)),
    )
    for name, draw in shapes:
        for sizes in ((6, 6), (3, 12)):
            differ = _agents_differ(*(draw((families, N_GAMES, n), rng) for n in sizes))
            said = _rate(differ.any(axis=1).mean())
            yield f'| "agents differ" | {name}, {sizes[0]} and {sizes[1]} runs | {said} |'
    for rate in (0.005, 0.3):
        counts = rng.binomial(N_FLOOR, rate, (2, families, N_GAMES)) / N_FLOOR
        errors = counts * (1 - counts) / (N_FLOOR - 1)
        p = [
            components_p(d, [VariancePart(float(v), N_FLOOR - 1) for v in pair])
            for d, pair in zip((counts[0] - counts[1]).ravel(), errors.reshape(2, -1).T, strict=True)
        ]
        said = (np.reshape(p, (-1, N_GAMES)) * N_GAMES < ALPHA).any(axis=1).mean()
        yield f'| "random play itself scores more" | 0-or-1 returns, rate {rate:g} | {_rate(said)} |'


def _agents_differ(a: Array, b: Array) -> Array:
    """Which games of which families are said to differ."""
    (first, error), (second, other) = (
        (runs.mean(axis=-1), runs.std(axis=-1, ddof=1) / math.sqrt(runs.shape[-1])) for runs in (a, b)
    )
    n, zero = a.shape[-1], np.zeros_like(first)
    known = RunsMean(np.abs(first - second), error, n - 1, n, NO_PAIR)
    p = 2 * tail_p(known, FloorMean(zero, other, zero, b.shape[-1] - 1), sign=1)
    doubts = [are_in_doubt(high)[0] | are_in_doubt(-low)[0] for high, low in ((a, b), (b, a))]
    return _step_down(lambda level: p < level) & ~np.where(first > second, *doubts)


def stated(families: int, seed: int) -> Iterator[str]:
    """The power that `gapfloor power` states for a design, and how often games of that design are called."""
    yield "| difference | runs | floor episodes | stated | normal runs | stated, exponential | exponential runs |"
    yield "|---|---|---|---|---|---|---|"
    for delta in (3.0, 1.5, -3.0, -1.5):
        effect = Effect(delta, 1.0, 3.0)
        design = smallest_design(effect, family_size=N_GAMES)
        assert design is not None
        skewed = skewed_power(effect, n_runs=design.n_runs, n_floor=design.n_floor, family_size=N_GAMES)
        found = [_first_step(draw, effect, design, families, seed) for draw in (normal, exponential)]
        cells = " | ".join(map(_rate, (design.power, found[0], skewed, found[1])))
        yield f"| {delta:+g} SD | {design.n_runs} | {design.n_floor} | {cells} |"


def _first_step(draw: Draw, effect: Effect, design: StudyDesign, families: int, seed: int) -> float:
    """How often a game is called at Holm's first step."""
    rng = np.random.default_rng([seed, 3])
    rates = []
    for _ in range(math.ceil(families / BATCH)):
        runs = effect.delta + effect.run_sd * draw((BATCH, N_GAMES, design.n_runs), rng)
        floors = effect.floor_sd * rng.standard_normal((BATCH, N_GAMES, design.n_floor))
        words, p = _many_calls(runs, floors, np.stack([runs.min(axis=-1), runs.max(axis=-1)], axis=-1))
        rates.append(np.mean((words == np.sign(effect.delta)) & (p < ALPHA / N_GAMES)))
    return float(np.mean(rates))


def _rejects(found: CrossedParts, level: Array | float) -> Array:
    """Whether Banerjee's interval excludes zero; with a level per family, by families of eight."""
    if np.ndim(level):
        found = CrossedParts(
            *(_by_family(getattr(found, name)) for name in ("estimate", "by_run", "variances", "dfs"))
        )
    quantiles = special.stdtrit(found.dfs, np.asarray(level)[..., None] / 2)
    return found.estimate**2 > (found.variances * quantiles**2).sum(axis=-1)


def _by_family(values: Array) -> Array:
    return values.reshape(-1, N_GAMES, *values.shape[1:])


def _step_down(rejects_at: Callable[[Array], Array]) -> Array:
    """Holm's procedure, given decisions at a level per family."""
    rejected = rejects_at(np.full((1, 1), ALPHA / N_GAMES))
    while True:
        left = np.maximum(N_GAMES - rejected.sum(axis=1, keepdims=True), 1)
        found = rejected | rejects_at(ALPHA / left)
        if (found == rejected).all():
            return rejected
        rejected = found


def _rate(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}".removeprefix("0")


SECTIONS: dict[str, Callable[[int, int], Iterator[str]]] = {
    "calls": calls, "power": power, "looks": looks, "gaps": gaps, "transfers": transfers, "others": others,
    "stated": stated,
}  # fmt: skip


def main() -> None:
    """Print or write the tables."""
    parser = argparse.ArgumentParser(description="How often the recommended methods and sentences are wrong.")
    parser.add_argument(
        "--families", type=int, default=4000, help="Families per world (a quarter for looks)."
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(SECTIONS))
    parser.add_argument("--out", type=Path, help="Also write the tables to this file.")
    arguments = parser.parse_args()
    lines: list[str] = []
    for name in [arguments.only] if arguments.only else SECTIONS:
        started = time.process_time()
        for line in SECTIONS[name](arguments.families, arguments.seed):
            print(line, flush=True)
            lines.append(line)
        lines.append("")
        print(f"\n{name}: {time.process_time() - started:.0f} s", file=sys.stderr)
    if arguments.out:
        arguments.out.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
