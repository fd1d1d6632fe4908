"""Rules for sentences about a study: each decides on the data whether a sentence may be printed.

A sentence is printed only if the tests behind it support every part of it. Two calls that differ are not evidence of
a difference, a gap on the played levels is not a gap of the generator, and a difference that is not tested is not
reported as a fact. `benchmarks/claims_simulation.py` measures how often each sentence is printed where it is false.

References:
    Berger, R. L. (1982). Multiparameter hypothesis testing and acceptance sampling. Technometrics 24, 295-300. (A
        sentence that needs two tests keeps the level if both are made at that level.)
    Gelman, A. and Stern, H. (2006). The difference between "significant" and "not significant" is not itself
        statistically significant. The American Statistician 60, 328-331.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy.typing as npt
from scipy import special

from gapfloor.statistics.components import VariancePart, components_p
from gapfloor.statistics.conventions import ALPHA, NAN, THESE_LEVELS, finite_sample
from gapfloor.statistics.families import holm
from gapfloor.statistics.gap_calls import GapCall
from gapfloor.statistics.power import Effect, floor_episodes_for_equivalence
from gapfloor.statistics.reference_calls import LEAST_RUNS, ReferenceCall

#: The floor's own gap is worth a sentence from this share of the runs' gap on.
FLOOR_SHARE = 0.1


def gap_is_established(gap: GapCall) -> bool:
    """Whether training return exceeds held-out return for new runs on new levels, beyond what the floor shows.

    Both slopes must agree (Berger's intersection-union test): the estimated one, and one, which takes out the whole
    difference of level sets that do not come from one generator.
    """
    return bool(gap.call == "train higher" and gap.p_plain_holm < gap.alpha and gap.test.plain_excess > 0)


def may_say_new_levels_cost(gap: GapCall, *, train: ReferenceCall, test: ReferenceCall) -> bool:
    """Whether the gap may be read as what new levels cost.

    It must be established, and it must lie between two returns above chance.
    """
    return bool(gap_is_established(gap) and _clearly_above(train) and _clearly_above(test))


def may_say_training_levels_learnt(gap: GapCall, *, train: ReferenceCall, test: ReferenceCall) -> bool:
    """Whether something was learnt about the training levels that new levels do not show.

    That training return is called above the floor and held-out return is not does not say so (Gelman and Stern): the
    gap between them must be established itself.
    """
    return bool(
        gap_is_established(gap) and _clearly_above(train) and test.call not in ("above", "not tested")
    )


def may_say_transfers(test: ReferenceCall) -> bool:
    """Whether the policy transfers: held-out return is above chance, and the call is not in doubt."""
    return _clearly_above(test)


def may_say_played_levels_differ(gap: GapCall) -> bool:
    """Whether the runs score differently on the training and held-out levels that were played (Holm over games)."""
    return bool(gap.p_runs_holm < gap.alpha)


def may_say_not_established_for_generator(gap: GapCall) -> bool:
    """Whether to say that a gap holds for the played levels but is not established for new ones.

    Both halves are tested with Holm over the games. Fisher's method does not test the first half: it asks whether
    any run differs.
    """
    return bool(may_say_played_levels_differ(gap) and gap.call == "not distinguishable")


def methods_disagree(paper: str, recommended: ReferenceCall) -> bool:
    """Whether the paper's call and the recommended one differ; a row that was not tested agrees with nothing."""
    return bool(paper != recommended.call)


@dataclass(frozen=True)
class AgentContrast:
    """Two agents on one game: the first minus the second."""

    first: str
    second: str
    difference: float
    p: float
    p_holm: float
    """Over all pairs of agents in all games."""
    differ: bool
    estimand: str = THESE_LEVELS


def agents_that_differ(
    games: Sequence[Mapping[str, npt.ArrayLike]], *, alpha: float = ALPHA, least_runs: int = LEAST_RUNS
) -> tuple[tuple[AgentContrast, ...], ...]:
    """All pairs of agents of every game, tested on their run values; "agents differ" is true where `differ` is.

    Args:
        games: per game the run values of each agent.
        alpha: family-wise level over all pairs and games.
        least_runs: a pair is not tested if one of its agents has fewer runs.
    """
    pairs = [
        (game, first, second)
        for game, agents in enumerate(games)
        for first, second in combinations(agents, 2)
    ]
    found = [_agent_test(games[game][a], games[game][b], least_runs) for game, a, b in pairs]
    adjusted = holm([p for _, p in found])
    rows: list[list[AgentContrast]] = [[] for _ in games]
    for (game, a, b), (difference, p), p_holm in zip(pairs, found, adjusted, strict=True):
        rows[game].append(AgentContrast(a, b, difference, p, float(p_holm), bool(p_holm < alpha)))
    return tuple(tuple(row) for row in rows)


@dataclass(frozen=True)
class EquivalenceReach:
    """Whether the floor's own error lets an equivalence test pass at all."""

    verdict: Literal["possible", "floor error too large", "floor error exceeds margin"]
    margin: float
    needed: float
    """The margin that the floor's error alone would need: its SEM times Student's quantile."""
    n_floor_needed: int | None
    """Floor episodes for 80% power with exactly known runs; None where it is possible already."""


def equivalence_reach(
    *, margin: float, floor_sem: float, floor_n: int, alpha: float = ALPHA
) -> EquivalenceReach:
    """Which sentence about equivalence the floor's error supports.

    "The floor's own error exceeds the margin" needs a SEM above the margin. Below it, the error can still be too
    large for the test, which needs t * SEM < margin.

    >>> equivalence_reach(margin=0.29, floor_sem=0.23, floor_n=384).verdict
    'floor error too large'
    >>> equivalence_reach(margin=0.25, floor_sem=0.10, floor_n=384).verdict
    'possible'
    """
    needed = float(special.stdtrit(floor_n - 1, 1 - alpha)) * floor_sem
    if needed < margin:
        return EquivalenceReach("possible", margin, needed, None)
    episodes = floor_episodes_for_equivalence(
        Effect(0.0, 0.0, floor_sem * floor_n**0.5), n_runs=None, margin=margin, alpha=alpha
    )
    exceeds = floor_sem > margin
    return EquivalenceReach(
        "floor error exceeds margin" if exceeds else "floor error too large", margin, needed, episodes
    )


def _clearly_above(call: ReferenceCall) -> bool:
    return call.call == "above" and not call.doubt


def _agent_test(a: npt.ArrayLike, b: npt.ArrayLike, least_runs: int) -> tuple[float, float]:
    first, second = finite_sample(a, "run values"), finite_sample(b, "run values")
    if min(first.size, second.size) < max(least_runs, 2):
        return float(first.mean() - second.mean()), NAN
    return _two_samples(first, second)


def _two_samples(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[float, float]:
    """The difference of two means, and Banerjee's p with each sample's own degrees of freedom."""
    samples = [finite_sample(values, "returns", minimum=2) for values in (a, b)]
    parts = [VariancePart(float(x.var(ddof=1) / x.size), x.size - 1) for x in samples]
    difference = float(samples[0].mean() - samples[1].mean())
    return difference, components_p(difference, parts)
