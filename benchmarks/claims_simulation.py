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
from collections.abc import Callable, Iterator
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
    Family,
    Gaps,
    LevelWorld,
    World,
    gap_games,
    log_normal,
    normal,
    paper_like,
    successes,
)
from gapfloor.statistics.behrens_fisher import RunsMean, floor_mean, tail_p
from gapfloor.statistics.conventions import ROUNDING
from gapfloor.statistics.level_crossing import CrossedParts, crossed_parts, reference_slope
from gapfloor.statistics.looks import next_runs
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
    """Gaps of games without one, for the generator of levels, and the sentences that need a gap."""
    names = ("paper (Fisher)", "recommended", "any of 8", '"what new levels cost"')
    yield f"| run values | level share | runs | {' | '.join(names)} |"
    yield "|---" * (len(names) + 3) + "|"
    rng = np.random.default_rng([seed, 1])
    for shape in SHAPES:
        for share in (0.3, 1.0):
            for n in (3, 6, 12):
                found: dict[str, list[Array]] = {name: [] for name in names}
                for _ in range(max(families // 1000, 1)):
                    data = gap_games(LevelWorld(shape, 1.0, share), n, 240, rng, shift=0.3)
                    for name, rates in zip(names, _gap_rates(data), strict=True):
                        found[name].append(np.ravel(rates))
                cells = (_rate(float(np.mean(np.concatenate(found[name])))) for name in names)
                yield f"| {shape} | {share:g} | {n} | {' | '.join(cells)} |"


def _gap_rates(data: Gaps) -> tuple[Array, ...]:
    """What each of the columns of `gaps` decides, game by game or family by family."""
    n = data.run_means.shape[-1]
    one = np.ones(data.run_means.shape[1])
    plain, estimated = (
        crossed_parts([(s, t.minus(slope), t.weights) for s, t in zip((1.0, -1.0), data.tables, strict=True)])
        for slope in (one, reference_slope(data.tables))
    )
    per_run = welch(
        data.run_means[0], data.run_variances[0], N_FLOOR, data.run_means[1], data.run_variances[1], N_FLOOR
    ).p
    fisher = stats.chi2.sf(-2 * np.log(np.maximum(per_run, 1e-300)).sum(axis=-1), 2 * n)
    holm = [_step_down(lambda level, part=part: _rejects(part, level)) for part in (estimated, plain)]
    established = holm[0] & holm[1] & (_by_family(estimated.estimate) > 0) & (_by_family(plain.estimate) > 0)
    return fisher < ALPHA, _rejects(estimated, ALPHA), holm[0].any(axis=1), established


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
    "calls": calls, "power": power, "looks": looks, "gaps": gaps,
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
