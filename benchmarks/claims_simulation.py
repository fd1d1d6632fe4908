"""How often the recommended calls, gaps, looks, plans and sentences are wrong, next to the paper's methods.

    python benchmarks/claims_simulation.py [--replicates 2000] [--seed 0] [--only SECTION] [--all] [--out FILE]

Prints one Markdown table. A cell is the worst of the worlds with this shape of run values (equal and 1:3 standard
deviations of two agents' runs, level shares .3 and 1, for calls also 0); `--all` prints every world in a row of its
own. The Monte Carlo error is at most .005 near .05 with 2,000 replicates.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import special, stats

from claims_worlds import (
    CALL_SHARES,
    N_EPISODES,
    N_GAMES,
    RATIOS,
    RUNS,
    SHAPES,
    Array,
    Calls,
    Gaps,
    World,
    agent_factors,
    gap_games,
    null_families,
    unit_draws,
    worlds,
)
from gapfloor.statistics.level_crossing import CrossedParts, crossed_parts, reference_slope
from gapfloor.statistics.power import (
    MAX_EPISODES,
    Effect,
    comparison_power,
    equivalence_power,
    floor_episodes_for_equivalence,
    required_runs,
)
from gapfloor.statistics.sequential import nominal_levels
from gapfloor.statistics.skewed_limits import skewed_reach
from gapfloor.statistics.skewness import (
    adjusted_skewness,
    exponential_skewness,
    null_variance,
    sample_skewness,
)
from gapfloor.statistics.welch import two_sided_p, welch
from simulated_families import simulate_paper_family, simulate_recommended_family, squared_reach

PAPER_TABLES = Path(__file__).resolve().parents[1] / "tests" / "data" / "paper_tables.json"
ALPHA = 0.05
LOOKS = (3, 6, 9, 12, 15)
#: Games simulated at once, so that a batch fits into a processor's cache and a laptop's memory.
BATCH = 250
#: Families of calls cost little: so many times the replicates are played.
CHEAP = 5


@dataclass(frozen=True)
class Measured:
    """One rate in one world."""

    section: str
    quantity: str
    world: str
    """Shape of the run values; more in `detail`."""
    detail: str
    n: int
    value: float
    target: str
    """At most or at least what; empty where a method is only shown for comparison."""
    count: int = 2000
    """Independent replicates behind the rate."""

    @property
    def error(self) -> float:
        """Monte Carlo standard error at the target."""
        bound = float(self.target.split()[1])
        return math.sqrt(bound * (1 - bound) / self.count)


# Tests, vectorised over families (last axis of p or of decisions: games).


def step_down(reject_at: Callable[[Array], Array], shape: tuple[int, int]) -> Array:
    """Holm's procedure given decisions at a level per family: (families, 1) in, (families, games) out."""
    rejected = np.zeros(shape, dtype=bool)
    while True:
        left = np.maximum(shape[1] - rejected.sum(axis=1, keepdims=True), 1)
        found = rejected | reject_at(ALPHA / left)
        if (found == rejected).all():
            return rejected
        rejected = found


def holm_rejects(p: Array) -> Array:
    """Holm's rejections from p (families, games)."""
    return step_down(lambda level: p < level, p.shape)


def call_parts(data: Calls) -> tuple[Array, Array, Array]:
    """Delta, variance parts and degrees of freedom of every game's comparison with its floor."""
    n = data.runs.shape[-1]
    variances = np.stack([data.runs.var(axis=-1, ddof=1) / n, data.floor_variance], axis=-1)
    return data.runs.mean(axis=-1) - data.floor, variances, np.array([n - 1.0, N_EPISODES - 1.0])


def paper_p(data: Calls) -> Array:
    """Welch's p of every game."""
    n = data.runs.shape[-1]
    floor_variance = data.floor_variance * N_EPISODES
    return welch(data.runs.mean(-1), data.runs.var(-1, ddof=1), n, data.floor, floor_variance, N_EPISODES).p


def recommended_rejects(data: Calls) -> Array:
    """The recommended calls, above or below."""
    return step_down(rejects_at(data), data.floor.shape)


def rejects_at(data: Calls, *, alone: bool = False) -> Callable[[Array], Array]:
    """Whether each game's interval excludes zero, given a level per family."""
    delta, _, _ = call_parts(data)
    reach_at = limits_at(data, alone=alone)

    def rejects(level: Array) -> Array:
        lower, upper = reach_at(level)
        return (delta > lower) | (delta < -upper)

    return rejects


def limits_at(data: Calls, *, alone: bool = False) -> Callable[[Array], tuple[Array, Array]]:
    """Distances of the lower and the upper limit, given a level per family; `alone`: each game is its own family."""
    _, variances, dfs = call_parts(data)
    n = data.runs.shape[-1]
    skewness = adjusted_skewness(data.runs)
    if not alone:
        skewness = np.broadcast_to(skewness.mean(axis=-1, keepdims=True), skewness.shape)
    right, left = doubted_below(data, alone=alone), doubted_above(data, alone=alone)

    def reach_at(level: Array) -> tuple[Array, Array]:
        plain = np.sqrt(squared_reach(variances, dfs, level))
        lower, upper = (
            skewed_reach(variances, df=n - 1, n=n, skewness=np.maximum(sign * skewness, 0), alpha=level)
            for sign in (-1, 1)
        )
        return np.where(left, lower, plain), np.where(right, upper, plain)

    return reach_at


def doubted_below(data: Calls, *, alone: bool = False) -> Array:
    """Games whose "below" would be marked: the family's average skewness or the game's own is too large."""
    n = data.runs.shape[-1]
    own = sample_skewness(data.runs)
    average, error = _average_skewness(data, alone=alone)
    bound = exponential_skewness(n) + special.ndtri(0.05) * error
    return (average > bound) | (own > math.sqrt(null_variance(n)))


def doubted_above(data: Calls, *, alone: bool = False) -> Array:
    """Games whose "above" would be marked: left skew is established."""
    average, error = _average_skewness(data, alone=alone)
    return np.broadcast_to(average < special.ndtri(0.05) * error, data.floor.shape)


def _average_skewness(data: Calls, *, alone: bool) -> tuple[Array, float]:
    own, null = sample_skewness(data.runs), null_variance(data.runs.shape[-1])
    if alone:
        return own, math.sqrt(null)
    return own.mean(axis=-1, keepdims=True), math.sqrt(null / own.shape[-1])


def percentile_covers(
    values: Array, truth: float, rng: np.random.Generator, extra: Array | None = None
) -> Array:
    """Whether the 95% percentile bootstrap interval of the mean over the last axis covers; `extra`: the floor's SEM."""
    n, resamples = values.shape[-1], 1000
    counts = rng.multinomial(n, np.full(n, 1 / n), size=resamples) / n
    flat = values.reshape(-1, n)
    covered = np.empty(flat.shape[0], dtype=bool)
    errors = None if extra is None else np.sqrt(extra).reshape(-1)
    for start in range(0, flat.shape[0], 2000):
        part = slice(start, start + 2000)
        means = flat[part] @ counts.T
        if errors is not None:
            means = means - errors[part, None] * rng.standard_normal(means.shape)
        low, high = np.quantile(means, [0.025, 0.975], axis=1)
        covered[part] = (low <= truth) & (truth <= high)
    return covered.reshape(values.shape[:-1])


# Sections.


def calls(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Calls against the floor, eight games, no difference anywhere."""
    for world in worlds(CALL_SHARES):
        for n in RUNS:
            data = null_families(world, n, CHEAP * replicates, rng)
            yield from _call_rows(world, n, data, rng)
    yield from _strata(CHEAP * replicates, rng)
    yield from _call_power(replicates, rng)
    yield from _one_skewed_game(replicates, rng)
    yield from _left_skewed_games(replicates, rng)


def _call_rows(world: World, n: int, data: Calls, rng: np.random.Generator) -> Iterator[Measured]:
    def row(quantity: str, value: object, target: str = "") -> Measured:
        detail = f"sd 1:{world.ratio:g}, level share {world.share:g}"
        rates = np.asarray(value, dtype=float)
        return Measured("calls", quantity, world.shape, detail, n, float(rates.mean()), target, rates.size)

    delta, variances, dfs = call_parts(data)
    paper, found = holm_rejects(paper_p(data)), recommended_rejects(data)
    total = variances.sum(axis=-1)
    smallest = step_down(lambda level: delta**2 > total * special.stdtrit(n - 1, level / 2) ** 2, delta.shape)
    skewed = world.shape == "log-normal"
    yield row("any false call: paper (Welch, Holm)", paper.any(axis=1))
    yield row("any false call: df = n - 1, Holm", smallest.any(axis=1))
    plain = step_down(lambda level: delta**2 > squared_reach(variances, dfs, level), delta.shape)
    yield row("any false call: Banerjee, Holm", plain.any(axis=1))
    yield row("any false call: recommended", found.any(axis=1), "" if skewed else "<= .05")
    yield row(
        'any false "above": recommended', (found & (delta > 0)).any(axis=1), "<= .08" if skewed else "<= .05"
    )
    unmarked = found & ~((delta < 0) & doubted_below(data)) & ~((delta > 0) & doubted_above(data))
    yield row("any false call without a mark: recommended", unmarked.any(axis=1), "<= .05")
    few = slice(0, data.runs.shape[0] // CHEAP // 4 + 1)
    bootstrapped = data.runs[few] - data.floor[few, :, None]
    yield row(
        "95% interval of one game covers: paper",
        percentile_covers(bootstrapped, 0.0, rng, data.floor_variance[few]),
    )
    yield row("95% interval of one game covers: Banerjee", delta**2 <= squared_reach(variances, dfs, ALPHA))
    covers = ~rejects_at(data)(np.full((1, 1), ALPHA))
    target = (">= .92" if skewed else ">= .94") if n == 6 else ""
    yield row("95% interval of one game covers: recommended", covers, target)
    alone = ~rejects_at(data, alone=True)(np.full((1, 1), ALPHA))
    yield row("95% interval of a game without a family covers: recommended", alone, target)


def _strata(families: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Two agents whose means differ by four standard deviations, with the floor in the middle; n / 2 runs each."""
    for ratio in RATIOS:
        for n in (6, 12):
            half, size = n // 2, (families, N_GAMES)
            factors = agent_factors(2, ratio)
            agents = [
                factor * rng.standard_normal((*size, half)) + shift
                for factor, shift in zip(factors, (2, -2), strict=True)
            ]
            floor = 0.1 * rng.standard_normal(size)
            delta = sum(agent.mean(axis=-1) for agent in agents) / 2 - floor
            parts = [agent.var(axis=-1, ddof=1) / half / 4 for agent in agents]
            variances = np.stack([*parts, np.full(size, 0.1**2)], axis=-1)
            dfs = np.array([half - 1.0, half - 1.0, N_EPISODES - 1.0])
            total = variances.sum(axis=-1)
            df = total**2 / np.sum(variances**2 / dfs, axis=-1)
            before = holm_rejects(two_sided_p(delta / np.sqrt(total), df))
            found = step_down(
                lambda level, d=delta, v=variances, f=dfs: d**2 > squared_reach(v, f, level), delta.shape
            )
            name, world = "any false call with agents as strata", "normal"
            detail = f"sd 1:{ratio:g}"
            yield Measured(
                "calls",
                f"{name}: before (Satterthwaite)",
                world,
                detail,
                n,
                float(before.any(axis=1).mean()),
                "",
            )
            yield Measured(
                "calls",
                f"{name}: recommended",
                world,
                detail,
                n,
                float(found.any(axis=1).mean()),
                "<= .05",
                families,
            )


def _call_power(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    world = World("normal", 1.0, 0.3)
    for n in RUNS:
        data = null_families(world, n, replicates, rng)
        for sign, where in ((1, "2 SD"), (-1, "-2 SD")):
            moved = replace(data, runs=data.runs + sign * 2 * data.run_sd[:, None])
            delta, variances, dfs = call_parts(moved)
            total = variances.sum(axis=-1)
            methods = {
                "paper (Welch, Holm)": holm_rejects(paper_p(moved)),
                "df = n - 1, Holm": step_down(
                    lambda level, d=delta, t=total, n=n: d**2 > t * special.stdtrit(n - 1, level / 2) ** 2,
                    delta.shape,
                ),
                "Banerjee, Holm": step_down(
                    lambda level, d=delta, v=variances, f=dfs: d**2 > squared_reach(v, f, level), delta.shape
                ),
                "recommended": recommended_rejects(moved),
            }
            for name, rejected in methods.items():
                value = float(rejected.mean())
                yield Measured("calls", f"power at {where}: {name}", "normal", "", n, value, "")
        # Of the last one, below the floor.
        marked = (rejected & doubted_below(moved)).sum() / max(rejected.sum(), 1)
        yield Measured("calls", 'true "below" calls that are marked', "normal", "", n, float(marked), "")
        for alone, of in ((False, "a family of 8"), (True, "a game without a family")):
            width = sum(limits_at(data, alone=alone)(np.full((1, 1), ALPHA)))
            plain = 2 * np.sqrt(squared_reach(variances, dfs, ALPHA))
            name = f"mean length of a 95% interval / Banerjee's: {of}"
            yield Measured("calls", name, "normal", "", n, float(np.mean(width) / np.mean(plain)), "")


def _one_skewed_game(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """One log-normal game among seven normal ones: the family's skewness hides it."""
    for n in RUNS:
        data = null_families(World("normal", 1.0, 0.3), n, CHEAP * replicates, rng)
        data.runs[:, 0] = unit_draws("log-normal", data.runs[:, 0].shape, rng) * data.run_sd[0]
        yield from _false_calls(data, n, "1 of 8 log-normal")


def _left_skewed_games(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """The mirror image of log-normal run values: most runs are equally good, and a few fail."""
    for n in RUNS:
        data = null_families(World("log-normal", 1.0, 0.3), n, CHEAP * replicates, rng)
        yield from _false_calls(replace(data, runs=-data.runs), n, "mirrored log-normal")


def _false_calls(data: Calls, n: int, world: str) -> Iterator[Measured]:
    delta, variances, dfs = call_parts(data)
    plain = step_down(lambda level: delta**2 > squared_reach(variances, dfs, level), delta.shape)
    found = recommended_rejects(data)
    unmarked = found & ~np.where(delta < 0, doubted_below(data), doubted_above(data))
    for name, rejected in (
        ("any false call: Banerjee, Holm", plain),
        ("any false call: recommended", found),
        ("any false call without a mark: recommended", unmarked),
    ):
        value = float(rejected.any(axis=1).mean())
        yield Measured("calls", name, world, "", n, value, "", rejected.shape[0])


def equivalence(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Eight games exactly at the margin; the floor is known well, and TOST would pass within it."""
    replicates = CHEAP * replicates
    for shape in SHAPES[::2]:
        for n in RUNS:
            margin = 1.0
            runs = margin + 0.5 * unit_draws(shape, (replicates, N_GAMES, n), rng) * agent_factors(n, 1.0)
            floor = 0.05 * rng.standard_normal((replicates, N_GAMES))
            variance = np.full(floor.shape, 0.05**2)
            data = Calls(runs, floor, variance, np.full(N_GAMES, 0.5))
            delta, _, _ = call_parts(data)
            reach_at = limits_at(data)

            def passes(
                level: Array,
                d: Array = delta,
                at: Callable[[Array], tuple[Array, Array]] = reach_at,
                m: float = margin,
            ) -> Array:
                # The two-sided level of a one-sided test is twice as large.
                lower, upper = at(2 * level)
                return (d - lower > -m) & (d + upper < m)

            test = welch(runs.mean(-1), runs.var(-1, ddof=1), n, floor, variance * N_EPISODES, N_EPISODES)
            inside = special.stdtr(test.df, (np.abs(test.difference) - margin) / test.se) < ALPHA
            alone, family = passes(np.full((replicates, 1), ALPHA)), step_down(passes, delta.shape)
            rows = {
                "false equivalence of one game: paper": (inside.mean(), ""),
                "false equivalence of one game: recommended": (alone.mean(), "<= .05"),
                "any false equivalence of 8: not adjusted": (alone.any(axis=1).mean(), ""),
                "any false equivalence of 8: family-wise": (family.any(axis=1).mean(), "<= .05"),
            }
            for quantity, (value, target) in rows.items():
                target = target if shape == "normal" else ""
                count = replicates if "any" in quantity else N_GAMES * replicates
                yield Measured("equivalence", quantity, shape, "", n, float(value), target, count)


def gaps(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Gaps of games without one, for the generator of levels; sentences that need a gap."""
    for world in worlds():
        for n in RUNS:
            batches = [gap_games(world, n, BATCH, rng, shift=0.3) for _ in range(max(replicates // BATCH, 1))]
            merged: dict[str, list[Array]] = {}
            for batch in batches:
                for name, value in _gap_rates(batch, rng).items():
                    merged.setdefault(name, []).append(np.asarray(value, dtype=float).ravel())
            detail = f"sd 1:{world.ratio:g}, level share {world.share:g}"
            for name, values in merged.items():
                quantity, _, target = name.partition("|")
                if target == "coverage":
                    target = {"log-normal": ">= .92"}.get(world.shape, ">= .94") if n == 6 else ""
                rates = np.concatenate(values)
                section = "sentences" if quantity.startswith("false sentence") else "gaps"
                yield Measured(
                    section, quantity, world.shape, detail, n, float(rates.mean()), target, rates.size
                )


def gap_tests(data: Gaps) -> tuple[CrossedParts, CrossedParts, CrossedParts]:
    """The raw gap, the excess with slope one and the excess with the estimated slope, crossed over runs and levels."""
    games = data.run_means.shape[1]
    slopes = (np.zeros(games), np.ones(games), reference_slope(data.tables))
    raw, plain, estimated = (
        crossed_parts([(s, t.minus(slope), t.weights) for s, t in zip((1.0, -1.0), data.tables, strict=True)])
        for slope in slopes
    )
    return raw, plain, estimated


def _rejects(found: CrossedParts, level: Array | float = ALPHA) -> Array:
    return found.estimate**2 > squared_reach(found.variances, found.dfs, level)


def _holm_gaps(found: CrossedParts) -> Array:
    """Holm's rejections with the games in families of eight."""
    shape = _families(found.estimate).shape
    estimate, variances, dfs = (_families(x) for x in (found.estimate, found.variances, found.dfs))
    return step_down(lambda level: estimate**2 > squared_reach(variances, dfs, level), shape)


def _families(values: Array) -> Array:
    """Games (first axis) in families of eight; what is left over is dropped."""
    whole = values.shape[0] // N_GAMES * N_GAMES
    return values[:whole].reshape(-1, N_GAMES, *values.shape[1:])


def _gap_rates(data: Gaps, rng: np.random.Generator) -> dict[str, Array]:
    _, plain, estimated = gap_tests(data)
    n = data.run_means.shape[-1]
    by_run = data.run_means[0] - data.run_means[1]
    percentile = percentile_covers(by_run, 0.0, rng)
    per_run = welch(
        data.run_means[0],
        data.run_variances[0],
        N_EPISODES,
        data.run_means[1],
        data.run_variances[1],
        N_EPISODES,
    ).p
    logs = -2 * np.log(np.maximum(per_run, 1e-300)).sum(axis=-1)
    fisher = stats.chi2.sf(logs, 2 * n)
    t = by_run.mean(-1) / (by_run.std(-1, ddof=1) / math.sqrt(n))
    p_runs = two_sided_p(t, n - 1)
    total = estimated.variances.sum(-1)
    df = total**2 / np.sum(estimated.variances**2 / estimated.dfs, axis=-1)
    satterthwaite = two_sided_p(estimated.estimate / np.sqrt(total), df) < ALPHA
    established = _holm_gaps(estimated) & _holm_gaps(plain)
    established &= (_families(estimated.estimate) > 0) & (_families(plain.estimate) > 0)
    above = [_above(data, half) for half in (0, 1)]
    old_above = [_above_paper(data, half) for half in (0, 1)]
    old_gap = ~percentile & (by_run.mean(-1) > 0)
    return {
        "false gap of one game: paper (Fisher)": fisher < ALPHA,
        "false gap of one game: t over runs": p_runs < ALPHA,
        "false gap of one game: crossed, Satterthwaite": satterthwaite,
        "false gap of one game: recommended, slope one|<= .06": _rejects(plain),
        "false gap of one game: recommended|<= .06": _rejects(estimated),
        "any false gap of 8, mean of the worlds: recommended|<= .05": _holm_gaps(estimated).any(axis=1),
        "95% interval of the gap covers: paper (percentile)": percentile,
        "95% interval of the gap covers: recommended|coverage": ~_rejects(estimated),
        # The worst case: both returns are above chance for sure.
        'false sentence "what new levels cost": before': _families(old_gap),
        'false sentence "what new levels cost": rule|<= .05': established,
        'false sentence "something was learnt about the training levels": before': old_above[0]
        & ~old_above[1],
        'false sentence "something was learnt about the training levels": rule|<= .05': established
        & above[0]
        & ~above[1],
    }


def _above(data: Gaps, half: int) -> Array:
    """The recommended call "above" on one level set, in families of eight."""
    found = _half_calls(data, half)
    return recommended_rejects(found) & (call_parts(found)[0] > 0)


def _above_paper(data: Gaps, half: int) -> Array:
    found = _half_calls(data, half)
    return holm_rejects(paper_p(found)) & (call_parts(found)[0] > 0)


def _half_calls(data: Gaps, half: int) -> Calls:
    variance = data.floor_variances[half] / N_EPISODES
    return Calls(
        _families(data.run_means[half]),
        _families(data.floor_means[half]),
        _families(variance),
        np.ones(N_GAMES),
    )


def variance(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """What the slope saves: variance of the estimate over that of the raw gap."""
    for world in worlds():
        if world.ratio != 1:
            continue
        for n in RUNS:
            found = [gap_tests(gap_games(world, n, BATCH, rng)) for _ in range(max(replicates // BATCH, 1))]
            raw, plain, estimated = (
                np.concatenate([batch[i].estimate for batch in found]).var() for i in range(3)
            )
            detail = f"level share {world.share:g}"
            name = f"{world.shape}, level share {world.share:g}"
            yield Measured(
                "gaps", "variance of excess / raw gap: slope one", name, detail, n, float(plain / raw), ""
            )
            yield Measured(
                "gaps",
                "variance of excess / raw gap: estimated slope",
                name,
                detail,
                n,
                float(estimated / raw),
                "",
            )


def sentences(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Sentences whose truth needs a world of its own."""
    yield from _other_generator(replicates, rng)
    yield from _generator_remark(replicates, rng)
    yield from _random_play(replicates, rng)
    yield from _agents(replicates, rng)


def _other_generator(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Training levels that are easier by one for runs and floor alike: no gap beyond the floor's."""
    for share in (0.3, 1.0):
        for n in RUNS:
            said, before = [], []
            for _ in range(max(replicates // BATCH, 1)):
                data = gap_games(World("normal", 1.0, share), n, BATCH, rng, shift=3.0, set_shift=1.0)
                _, plain, estimated = gap_tests(data)
                found = _holm_gaps(estimated) & _holm_gaps(plain)
                said.append(found & (_families(estimated.estimate) > 0) & (_families(plain.estimate) > 0))
                by_run = data.run_means[0] - data.run_means[1]
                before.append(~percentile_covers(by_run, 0.0, rng) & (by_run.mean(-1) > 0))
            world, detail = "normal, easier training levels", f"level share {share:g}"
            name = 'false sentence "what new levels cost"'
            yield Measured("sentences", f"{name}: before", world, detail, n, float(np.mean(before)), "")
            yield Measured("sentences", f"{name}: rule", world, detail, n, float(np.mean(said)), "<= .05")


def _generator_remark(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """No gap on the levels as played: the first half of "holds for these levels, open for new ones" is false."""
    for share in (0.3, 1.0):
        for ratio in (1.0, 3.0):
            for n in RUNS:
                said, before = [], []
                for _ in range(max(replicates // BATCH, 1)):
                    data = gap_games(World("normal", ratio, share), n, BATCH, rng, centred=True)
                    _, _, estimated = gap_tests(data)
                    by_run = data.run_means[0] - data.run_means[1]
                    t = by_run.mean(-1) / (by_run.std(-1, ddof=1) / math.sqrt(n))
                    p_runs = _families(two_sided_p(t, n - 1))
                    per_run = welch(
                        data.run_means[0], data.run_variances[0], N_EPISODES,
                        data.run_means[1], data.run_variances[1], N_EPISODES,
                    ).p  # fmt: skip
                    fisher = stats.chi2.sf(-2 * np.log(np.maximum(per_run, 1e-300)).sum(-1), 2 * n)
                    said.append(holm_rejects(p_runs) & ~_holm_gaps(estimated))
                    before.append(holm_rejects(_families(fisher)) & ~_families(_rejects(estimated)))
                name, detail = (
                    'false sentence "holds for these levels, open for new ones"',
                    f"sd 1:{ratio:g}, level share {share:g}",
                )
                yield Measured(
                    "sentences", f"{name}: before", "normal", detail, n, float(np.mean(before)), ""
                )
                yield Measured(
                    "sentences", f"{name}: rule", "normal", detail, n, float(np.mean(said)), "<= .05"
                )


def _random_play(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Level sets that are equally easy for random play, episodes drawn from them; runs do not enter."""
    for shape in SHAPES:
        for share in (0.3, 1.0):
            p = np.empty((max(replicates // 8, 1), N_GAMES))
            differences = np.empty(p.shape)
            for game in range(N_GAMES):
                moments = []
                for size in (200, 100):
                    ease = rng.standard_normal((p.shape[0], size))
                    played = np.take_along_axis(ease, rng.integers(0, size, (p.shape[0], N_EPISODES)), axis=1)
                    noise = math.sqrt(max(1 - share, 0.3))
                    score = math.sqrt(share) * played + noise * rng.standard_normal(played.shape)
                    truth = math.sqrt(share) * ease
                    if shape == "0-or-10":
                        returns, mean = 10.0 * (score > 0.8), 10 * special.ndtr((truth - 0.8) / noise)
                    elif shape == "log-normal":
                        returns, mean = np.exp(score), np.exp(truth + noise**2 / 2)
                    else:
                        returns, mean = score, truth
                    # Both sets get the same mean over their levels: the sentence is false.
                    moments.append((returns.mean(1) - mean.mean(1), returns.var(1, ddof=1)))
                test = welch(*moments[0], N_EPISODES, *moments[1], N_EPISODES)
                p[:, game], differences[:, game] = test.p, test.difference
            # Before: a tenth of the runs' gap was enough. The runs' gap has half of the floor's error here.
            gap = rng.standard_normal(p.shape) * differences.std() / 2
            printed = np.abs(differences) >= 0.1 * np.abs(gap)
            name, detail = 'false sentence "random play itself scores more"', f"level share {share:g}"
            yield Measured("sentences", f"{name}: before", shape, detail, 0, float(printed.mean()), "")
            yield Measured(
                "sentences", f"{name}: rule", shape, detail, 0, float(holm_rejects(p).mean()), "<= .05"
            )


def _agents(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Two agents of one mean, half a standard deviation to two above the floor; n runs each."""
    for shape in ("normal", "log-normal"):
        for ratio in (1.0, 3.0):
            for n in (3, 6, 12):
                size = (max(replicates // 8, 1), N_GAMES, n)
                agents = [1.0 + factor * unit_draws(shape, size, rng) for factor in agent_factors(2, ratio)]
                floor = 0.05 * rng.standard_normal(size[:2])
                known = np.full(floor.shape, 0.05**2)
                families = [Calls(runs, floor, known, np.ones(N_GAMES)) for runs in agents]
                labels = [holm_rejects(paper_p(one)) for one in families]
                difference = agents[0].mean(-1) - agents[1].mean(-1)
                parts = np.stack([a.var(-1, ddof=1) / n for a in agents], axis=-1)
                dfs = np.array([n - 1.0, n - 1.0])
                found = step_down(
                    lambda level, d=difference, v=parts, f=dfs: d**2 > squared_reach(v, f, level),
                    difference.shape,
                )
                name, detail = 'false sentence "agents differ"', f"sd 1:{ratio:g}"
                yield Measured(
                    "sentences",
                    f"{name}: before",
                    shape,
                    detail,
                    n,
                    float(np.mean(labels[0] != labels[1])),
                    "",
                )
                yield Measured("sentences", f"{name}: rule", shape, detail, n, float(found.mean()), "<= .05")


def looks(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Looking at 3, 6, 9, 12 and 15 runs: Holm each time, O'Brien-Fleming spending with Holm, and 15 runs at once."""
    for shape, ratio in (("normal", 1.0), ("normal", 3.0), ("0-or-10", 1.0), ("log-normal", 1.0)):
        for effect in (0.0, 1.0, 2.0, -1.0, -2.0):
            count = replicates if effect else CHEAP * replicates
            data = null_families(World(shape, ratio, 0.0), LOOKS[-1], count, rng)
            moved = Calls(
                data.runs + effect * data.run_sd[:, None], data.floor, data.floor_variance, data.run_sd
            )
            called, sign = sequential_calls(moved)
            naive = np.zeros(called.shape, dtype=bool)
            for n in LOOKS:
                naive |= holm_rejects(paper_p(_first(moved, n)))
            fixed = recommended_rejects(moved)
            used = np.where(called >= 0, np.array(LOOKS)[called], LOOKS[-1])
            world = f"{shape}, sd 1:{ratio:g}"
            if effect == 0:
                target = "<= .05" if shape != "log-normal" else ""
                above = ((called >= 0) & (sign > 0)).any(axis=1).mean()
                rows = {
                    "any false call over five looks: Holm each time": (naive.any(axis=1).mean(), ""),
                    "any false call over five looks: recommended": ((called >= 0).any(axis=1).mean(), target),
                    'any false "above" over five looks: recommended': (
                        above,
                        "<= .08" if not target else "<= .05",
                    ),
                    "any false call at 15 runs: recommended": (fixed.any(axis=1).mean(), target),
                }
            else:
                rows = {
                    f"power at {effect:g} SD: five looks": ((called >= 0).mean(), ""),
                    f"power at {effect:g} SD: 15 runs": (fixed.mean(), ""),
                    f"runs per game at {effect:g} SD: five looks": (used.mean(), ""),
                }
            for quantity, (value, target) in rows.items():
                yield Measured("looks", quantity, world, "", 15, float(value), target, count)


def sequential_calls(data: Calls) -> tuple[Array, Array]:
    """The look at which each game is called (-1: none), and the sign of its difference there."""
    families, games = data.floor.shape
    crossed = np.empty((games + 1, families, games, len(LOOKS)), dtype=bool)
    signs = np.empty((families, games, len(LOOKS)))
    for divisor in range(1, games + 1):
        levels = nominal_levels(LOOKS, alpha=ALPHA / divisor)
        for k, n in enumerate(LOOKS):
            found = _first(data, n)
            crossed[divisor, :, :, k] = rejects_at(found, alone=True)(np.full((1, 1), levels[k]))
            signs[..., k] = np.sign(call_parts(found)[0])
    called = np.full((families, games), -1)
    while True:
        left = np.maximum(games - (called >= 0).sum(axis=1), 1)
        now = crossed[left, np.arange(families)]
        new = (called < 0) & now.any(axis=-1)
        if not new.any():
            at = np.take_along_axis(signs, np.maximum(called, 0)[..., None], axis=-1)[..., 0]
            return called, at
        called = np.where(new, now.argmax(axis=-1), called)


def _first(data: Calls, n: int) -> Calls:
    return Calls(data.runs[..., :n], data.floor, data.floor_variance, data.run_sd)


def plans(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Pilots of 3, 6 and 12 runs: how often the advised number of runs has its 80% power, and equivalence."""
    truth = Effect(delta=1.2, run_sd=1.0, floor_sd=1.0)
    power = {
        n: comparison_power(truth, n_runs=n, n_floor=N_EPISODES, family_size=N_GAMES) for n in range(2, 1001)
    }
    for n in RUNS:
        reached = []
        for _ in range(min(replicates, 300)):
            runs = truth.delta + rng.standard_normal(n)
            pilot = Effect(float(runs.mean()), float(runs.std(ddof=1)), 1.0)
            advised = required_runs(pilot, n_floor=MAX_EPISODES, family_size=N_GAMES)
            reached.append(power[max(advised, 3)] if advised else 1.0)
        rows = {
            "advised runs have 80% power": np.mean(np.array(reached) >= 0.8),
            "advised runs have less than 50% power": np.mean(np.array(reached) < 0.5),
        }
        for quantity, value in rows.items():
            yield Measured("plans", quantity, "normal, 1.2 SD", "", n, float(value), "", len(reached))
    yield from _stated_designs(replicates, rng)
    floor = Effect(0.0, 0.0, 0.24 * math.sqrt(N_EPISODES))
    before = math.ceil((1.65 * floor.floor_sd / 0.315) ** 2)
    now = floor_episodes_for_equivalence(floor, n_runs=None, margin=0.315) or 0
    for name, episodes in (("before", before), ("now", now)):
        found = equivalence_power(floor, n_runs=None, n_floor=episodes, margin=0.315)
        target = ">= .8" if name == "now" else ""
        yield Measured(
            "plans",
            f"power of equivalence at the advised floor episodes: {name}",
            "heist",
            "",
            0,
            found,
            target,
        )


def _stated_designs(replicates: int, rng: np.random.Generator) -> Iterator[Measured]:
    """Two designs for games of the paper (training levels, 8M): what their power is depends on Holm's step."""
    tables = json.loads(PAPER_TABLES.read_text(encoding="utf-8"))
    rows = [row for row in tables["floor_calls"] if (row["budget"], row["levels"]) == ("8M", "train")]
    for game, rule, n_runs, n_floor in (("heist", "sampled", 10, 768), ("coinrun", "greedy", 27, 3072)):
        effects = {
            row["env"]: Effect(
                row[rule]["ret"]["mean"] - row["floor"]["mean"],
                row[rule]["ret"]["sem"] * math.sqrt(row["n"]),
                row["floor"]["sem"] * math.sqrt(N_EPISODES),
            )
            for row in rows
        }
        at = list(effects).index(game)
        planned = {"n_runs": n_runs, "n_floor": n_floor}
        shared = {"n_runs": [n_runs] * len(rows), "n_floor": n_floor, "n_simulations": replicates}
        found = {
            "Holm's first step": (
                comparison_power(effects[game], **planned, method="paper", family_size=len(rows)),
                comparison_power(effects[game], **planned, family_size=len(rows)),
            ),
            "other games as in the paper": tuple(
                simulate(list(effects.values()), rng=rng, **shared).rejected[at]
                for simulate in (simulate_paper_family, simulate_recommended_family)
            ),
            "not corrected": (
                comparison_power(effects[game], **planned, method="paper"),
                comparison_power(effects[game], **planned),
            ),
        }
        for step, (paper, recommended) in found.items():
            name = f"power at {n_runs} runs and {n_floor:,} floor episodes, {step}"
            yield Measured("plans", f"{name}: paper", f"{game}, {rule}", "", 0, paper, "")
            yield Measured("plans", f"{name}: recommended", f"{game}, {rule}", "", 0, recommended, "")


SECTIONS: dict[str, Callable[[int, np.random.Generator], Iterator[Measured]]] = {
    "calls": calls,
    "equivalence": equivalence,
    "gaps": gaps,
    "variance": variance,
    "sentences": sentences,
    "looks": looks,
    "plans": plans,
}


def run(name: str, *, replicates: int, seed: int) -> list[Measured]:
    """The rates of one section; its draws do not depend on which others are run."""
    rng = np.random.default_rng([seed, list(SECTIONS).index(name)])
    return list(SECTIONS[name](replicates, rng))


def misses(row: Measured, *, errors: float = 0.0) -> bool:
    """Whether a rate misses its target by more than so many Monte Carlo errors."""
    if not row.target:
        return False
    sign, bound = row.target.split()
    slack = errors * row.error
    return row.value > float(bound) + slack if sign == "<=" else row.value < float(bound) - slack


def markdown(rows: list[Measured], *, every_world: bool = False) -> str:
    """One table: a row per quantity and world, a column per number of runs, the worst of the details in a cell."""
    groups: dict[tuple[str, str, str], dict[int, list[Measured]]] = {}
    for row in rows:
        world = f"{row.world}, {row.detail}" if every_world and row.detail else row.world
        groups.setdefault((row.section, row.quantity, world), {}).setdefault(row.n, []).append(row)
    lines = [
        "| what | run values | 3 runs | 6 runs | 12 runs | as planned | target |",
        "|---|---|---|---|---|---|---|",
    ]
    for section in dict.fromkeys(row.section for row in rows):
        lines.append(f"| **{section}** | | | | | | |")
        for (part, quantity, world), by_n in groups.items():
            if part != section:
                continue
            targets = sorted({row.target for found in by_n.values() for row in found if row.target})
            cells = {n: _worst(found) for n, found in by_n.items()}
            other = [cell for n, cell in cells.items() if n not in RUNS]
            shown = [*(cells.get(n, "") for n in RUNS), *(other or [""])]
            lines.append(f"| {quantity} | {world} | {' | '.join(shown)} | {', '.join(targets)} |")
    return "\n".join(lines) + "\n"


def _worst(rows: list[Measured]) -> str:
    low = "covers" in rows[0].quantity or "power" in rows[0].quantity
    value = (min if low else max)(row.value for row in rows)
    if "mean of the worlds" in rows[0].quantity:
        value, count = float(np.mean([row.value for row in rows])), sum(row.count for row in rows)
        rows = [replace(rows[0], value=value, count=count)]
    text = f"{value:.3f}".replace("0.", ".", 1) if value < 1 else f"{value:.3g}"
    if any(misses(row, errors=2.0) for row in rows):
        return f"{text} (missed)"
    return f"{text} (at the limit)" if any(misses(row) for row in rows) else text


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description="How often the recommended methods and sentences are wrong.")
    parser.add_argument("--replicates", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(SECTIONS))
    parser.add_argument("--all", action="store_true", help="A row for every world instead of the worst.")
    parser.add_argument("--out", type=Path, help="Write the table to this file.")
    arguments = parser.parse_args()
    rows: list[Measured] = []
    for name in [arguments.only] if arguments.only else SECTIONS:
        started = time.process_time()
        rows += run(name, replicates=arguments.replicates, seed=arguments.seed)
        print(f"{name}: {time.process_time() - started:.0f} s", file=sys.stderr)
    table = markdown(rows, every_world=arguments.all)
    if arguments.out:
        arguments.out.write_text(table, encoding="utf-8")
    else:
        print(table)


if __name__ == "__main__":
    main()
