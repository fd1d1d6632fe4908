"""Ways to keep intervals honest for skewed run values, side by side: what each costs and what it gains.

    python benchmarks/skewed_limits.py [--replicates 2000] [--seed 0]

Families of eight games as in `claims_simulation.py`. A way says where a limit is moved outwards (never, always, where
right skew is not ruled out), which degrees of freedom it takes there, and whose skewness Johnson's correction uses. A
cell is the worst of the worlds with this shape of run values, at 3 / 6 / 12 runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from claims_simulation import ALPHA, call_parts, doubted_above, doubted_below, step_down
from claims_worlds import CALL_SHARES, N_EPISODES, RUNS, Array, Calls, World, null_families, worlds
from gapfloor.statistics.skewed_limits import skewed_reach
from gapfloor.statistics.skewness import adjusted_skewness
from simulated_families import squared_reach


@dataclass(frozen=True)
class Way:
    """How the limits are set."""

    name: str
    where: str
    """never, always, or doubt: where right skew is not ruled out."""
    takes_run_df: bool
    skewness: str = "none"
    """none, own, or family."""
    both: bool = False
    """Whether the lower limit is treated in the same way, where left skew is established."""


WAYS = (
    Way("Banerjee", "never", False),
    Way("n - 1 df, both limits", "always", True, both=True),
    Way("n - 1 df, upper limit", "always", True),
    Way("Johnson, own skewness", "always", False, "own"),
    Way("Johnson, family's skewness", "always", False, "family"),
    Way("n - 1 df in doubt", "doubt", True),
    Way("n - 1 df and Johnson, family's skewness", "always", True, "family"),
    Way("the same with own skewness in doubt", "doubt", True, "own"),
    Way("the same with the family's in doubt", "doubt", True, "family"),
    Way("the last, both limits: recommended", "doubt", True, "family", both=True),
)


def limits_of(way: Way, data: Calls) -> Callable[[Array], tuple[Array, Array]]:
    """Distances of the lower and the upper limit, given a level per family."""
    _, variances, dfs = call_parts(data)
    n, games = data.runs.shape[-1], data.floor.shape
    own = adjusted_skewness(data.runs)
    found = {"none": 0 * own, "own": own, "family": own.mean(axis=-1, keepdims=True)}[way.skewness]
    moved = {"never": False, "always": True, "doubt": doubted_below(data)}[way.where]
    lower_moved = (doubted_above(data) if way.where == "doubt" else moved) if way.both else False

    def at(level: Array) -> tuple[Array, Array]:
        plain = np.sqrt(squared_reach(variances, dfs, level))
        ends = []
        for sign, here in ((-1, lower_moved), (1, moved)):
            skewness = np.broadcast_to(np.maximum(sign * found, 0), games)
            wide = skewed_reach(variances, df=n - 1, n=n, skewness=skewness, alpha=level)
            if not way.takes_run_df:
                # Johnson's correction in proportion to Banerjee's half-width.
                wide *= plain / skewed_reach(variances, df=n - 1, n=n, skewness=0.0, alpha=level)
            ends.append(np.where(here, wide, plain))
        return ends[0], ends[1]

    return at


def rejects(way: Way, data: Calls) -> Callable[[Array], Array]:
    """Whether each game's interval excludes zero, given a level per family."""
    delta, at = call_parts(data)[0], limits_of(way, data)

    def found(level: Array) -> Array:
        lower, upper = at(level)
        return (delta > lower) | (delta < -upper)

    return found


def bounded_variance(data: Calls) -> Array:
    """Parts of the variance in which that of the runs is at least the one of their 0-or-10 episodes."""
    _, variances, _ = call_parts(data)
    n = data.runs.shape[-1]
    episodes = (data.runs * (10 - data.runs)).mean(axis=-1) / (N_EPISODES * n)
    return np.stack([np.maximum(variances[..., 0], episodes), variances[..., 1]], axis=-1)


def print_bounded(families: int, rng: np.random.Generator) -> None:
    """What such a bound does for Banerjee's interval, which needs no shape."""
    for n in RUNS:
        data = null_families(World("0-or-10", 1.0, 0.0), n, families, rng)
        delta, variances, dfs = call_parts(data)
        bounded = bounded_variance(data)
        rates = [
            step_down(lambda level, v=v, d=delta, f=dfs: d**2 > squared_reach(v, f, level), delta.shape)
            .any(axis=1)
            .mean()
            for v in (variances, bounded)
        ]
        binds = (bounded[..., 0] > variances[..., 0]).mean()
        print(
            f"0-or-10, {n} runs: FWER {rates[0]:.3f}, with a variance of at least that of episodes {rates[1]:.3f} "
            f"(binds in {binds:.1%} of games)"
        )


def main() -> None:
    """Print one table, and a line per number of runs for a bound on the variance."""
    parser = argparse.ArgumentParser(description="Ways to treat skewed run values, side by side.")
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    rates: dict[tuple[str, str, int], list[float]] = {}

    def note(way: Way, quantity: str, n: int, value: float) -> None:
        rates.setdefault((way.name, quantity, n), []).append(value)

    for n in RUNS:
        for world in worlds(CALL_SHARES):
            data = null_families(world, n, arguments.replicates, rng)
            for way in WAYS:
                decide = rejects(way, data)
                any_false = step_down(decide, data.floor.shape).any(axis=1).mean()
                note(way, f"FWER {world.shape}", n, float(any_false))
                covers = 1 - decide(np.full((1, 1), ALPHA)).mean()
                note(way, f"coverage {world.shape}", n, float(covers))
        data = null_families(World("normal", 1.0, 0.3), n, arguments.replicates, rng)
        for sign in (2, -2):
            moved = replace(data, runs=data.runs + sign * data.run_sd[:, None])
            for way in WAYS:
                power = step_down(rejects(way, moved), data.floor.shape).mean()
                note(way, f"power at {sign} SD", n, float(power))
    columns = (
        "FWER normal",
        "FWER 0-or-10",
        "FWER log-normal",
        "coverage log-normal",
        "power at 2 SD",
        "power at -2 SD",
    )
    print(f"| limits | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for way in WAYS:
        cells = []
        for column in columns:
            worst = max if column.startswith("FWER") else min
            cells.append(" / ".join(f"{worst(rates[way.name, column, n]):.3f}".lstrip("0") for n in RUNS))
        print(f"| {way.name} | {' | '.join(cells)} |")
    print()
    print_bounded(3 * arguments.replicates, rng)


if __name__ == "__main__":
    main()
