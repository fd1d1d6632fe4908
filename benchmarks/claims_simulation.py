"""How often the recommended calls, looks, gaps and sentences are wrong, in studies with known truth.

    python benchmarks/claims_simulation.py [--families 4000] [--seed 0] [--only SECTION] [--out FILE]

Prints Markdown tables. Calls and looks are those of the package: every family goes through `compare_to_reference` and
`call_reference_family`, or `next_runs`.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
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
from gapfloor.statistics.level_crossing import CrossedParts, crossed_parts, reference_slope
from gapfloor.statistics.looks import next_runs
from gapfloor.statistics.reference_calls import ReferenceCall, call_reference_family, compare_to_reference
from gapfloor.statistics.welch import welch

ALPHA = 0.05
LOOKS = (3, 6, 9, 12, 15)


def calls_of(family: Family) -> tuple[ReferenceCall, ...]:
    """The recommended calls of a simulated family."""
    return call_reference_family(
        [compare_to_reference(runs, floor, seen=seen, is_called_later=True) for runs, floor, seen in family]
    )


def false_calls(world: World, families: int, seed: int) -> dict[str, float]:
    """Rates of a world without differences: of families with a false call, and of single games."""
    found: Counter[str] = Counter()
    n_tested = 0
    for family in world.families(families, seed):
        calls = calls_of(family)
        words = {call.call for call in calls}
        found["above"] += "above" in words
        found["below"] += "below" in words
        found["any"] += bool(words & {"above", "below"})
        found["not tested"] += sum(call.call == "not tested" for call in calls)
        tested = [call for call in calls if call.test.is_tested]
        n_tested += len(tested)
        # The interval at 95% covers the truth, 0, exactly where p is at least .05.
        found["covered"] += sum(call.test.p >= ALPHA for call in tested)
    rates = {name: found[name] / families for name in ("any", "above", "below")}
    rates["not tested"] = found["not tested"] / families / N_GAMES
    return rates | {"covered": found["covered"] / n_tested if n_tested else math.nan}


def power_of(world: World, families: int, seed: int) -> float:
    """The rate of games that are called in the direction of their difference."""
    word = "below" if "-" in world.name.partition(",")[2][:3] else "above"
    found = (sum(call.call == word for call in calls_of(family)) for family in world.families(families, seed))
    return sum(found) / families / N_GAMES


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
