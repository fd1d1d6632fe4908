"""Episodes gathered by run, rule and level set, in an order that does not depend on the order of rows."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gapfloor.analysis.inputs import (
    FLOOR_RULE,
    LABELS,
    Inputs,
    Label,
    combined_codes,
    natural_key,
    stable_order,
)
from gapfloor.plan.model import Plan
from gapfloor.statistics.clustered import by_level, within_level_sample
from gapfloor.statistics.conventions import Floats, Ints

AnySample = TypeVar("AnySample")
#: Between more agents there are so many differences that none is of interest: their number grows with the square.
MOST_AGENTS = 200

#: A run that shares so many unusual episodes with another one, and this share of its own, is a copy.
LEAST_SHARED, NEAR_COPY = 20, 0.8


class Place(NamedTuple):
    """A game in a mode, at a training budget."""

    game: str
    mode: str
    budget: str

    def words(self, *parts: str) -> str:
        """The place and further parts in a message; easy mode is not mentioned."""
        return ", ".join(
            part
            for part in (self.game, self.mode if self.mode != "easy" else "", self.budget, *parts)
            if part
        )


class Condition(NamedTuple):
    """Where a policy was measured."""

    game: str
    mode: str
    budget: str
    rule: str
    level_set: str

    @property
    def place(self) -> Place:
        """Game, mode and budget."""
        return Place(*self[:3])


class RunName(NamedTuple):
    """Who was measured."""

    agent: str
    seed: str

    def __str__(self) -> str:
        return (
            " ".join(part for part in (self.agent, f"seed {self.seed}" if self.seed else "") if part)
            or "the run"
        )


class ReferencePlace(NamedTuple):
    """Where a reference was measured; an empty budget serves every budget."""

    game: str
    mode: str
    budget: str
    reference: str
    level_set: str


@dataclass(frozen=True)
class RunSample:
    """The episodes of one run, or of one reference, under one rule on one level set.

    Rows are sorted by draw, level and return, so that every sum over them is the same whatever the order of
    the source.
    """

    returns: Floats
    draws: tuple[str, ...]
    """Names of the draws, in order."""
    draw: Ints
    """Index into `draws` per episode."""
    levels: Ints
    """Level seeds; empty where they are unknown."""
    is_census: bool = False
    """Whether every level was played equally often by design."""
    is_deterministic: bool = False
    """Whether these are a constant action's episodes: each is a function of its level."""
    network_means: Floats = field(default_factory=lambda: np.zeros(0))
    """Mean return of each network of a reference that has several; else empty."""
    mean: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", float(np.sort(self.returns).mean()))

    @cached_property
    def units(self) -> Floats:
        """What the mean's error comes from: a reference's networks, a census's chance within levels, or episodes."""
        if self.network_means.size > 1:
            return self.network_means
        if self.is_census and self.is_deterministic:
            return np.full(self.returns.size, self.mean)
        return within_level_sample(self.returns, self.levels) if self.is_census else self.returns

    @cached_property
    def level_units(self) -> Floats:
        """What a gap is tested on: episodes of draws, but in a census levels, since copies of one prove nothing."""
        return by_level(self.returns, self.levels).means if self.is_census else self.returns

    @cached_property
    def draw_means(self) -> dict[str, float]:
        """Mean return on each draw."""
        ends = np.searchsorted(self.draw, np.arange(1, len(self.draws)))
        parts = np.split(self.returns, ends)
        return {name: float(np.sort(part).mean()) for name, part in zip(self.draws, parts, strict=True)}

    def without_draw(self, draw: str) -> RunSample:
        """The sample without the episodes of one draw."""
        if draw not in self.draws:
            return self
        at = self.draws.index(draw)
        kept = self.draw != at
        return dataclasses.replace(
            self,
            returns=self.returns[kept],
            draws=tuple(name for name in self.draws if name != draw),
            draw=self.draw[kept] - (self.draw[kept] > at),
            levels=self.levels[kept] if self.levels.size else self.levels,
        )

    def fingerprint(self, name: str) -> bytes:
        """A hash of the episodes, by which copies are found."""
        digest = hashlib.sha256(f"{name}|{self.draws}".encode())
        for array in (self.returns, self.levels, self.draw):
            digest.update(array.tobytes())
        return digest.digest()

    def unusual_episodes(self) -> Ints:
        """A number for the draw, level and return of each episode whose return no other episode has."""
        mantissa, exponent = np.frexp(self.returns)
        rounded = np.round(mantissa * 2**20).astype(np.int64) * 4096 + exponent
        _, first, counts = np.unique(rounded, return_index=True, return_counts=True)
        kept = first[counts == 1]
        levels = self.levels[kept] if self.levels.size else 0
        return np.asarray(rounded[kept] + 1_000_003 * (levels + 1_000_003 * self.draw[kept].astype(np.int64)))

    def draw_counts(self) -> dict[str, int]:
        """Episodes per draw."""
        counts = np.bincount(self.draw, minlength=len(self.draws))
        return {name: int(counts[i]) for i, name in enumerate(self.draws)}


def levels_of(samples: Iterable[RunSample]) -> Ints:
    """The different levels that samples were played on, as far as they are known."""
    levels = [sample.levels for sample in samples if sample.levels.size]
    return np.unique(np.concatenate(levels)) if levels else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class StudyEpisodes:
    """All samples, with the labels in the order in which results are written."""

    policies: dict[Condition, dict[RunName, RunSample]]
    references: dict[ReferencePlace, RunSample]
    games: tuple[str, ...]
    modes: tuple[str, ...]
    budgets: tuple[str, ...]
    rules: tuple[str, ...]
    level_sets: tuple[str, ...]
    draws: tuple[str, ...]
    agents: tuple[str, ...]
    n_cells: int

    @property
    def labels(self) -> dict[str, Any]:
        """The names of everything that was measured, in the order of results."""
        names = ("games", "budgets", "agents", "rules", "level_sets", "draws")
        return {name: getattr(self, name) for name in names}

    def runs(
        self, place: Place, rule: str, level_set: str, *, agent: str | None = None
    ) -> dict[RunName, RunSample]:
        """The runs (of one agent, or of all) measured under a condition."""
        found = self.policies.get(Condition(*place, rule, level_set), {})
        return {name: s for name, s in found.items() if name.agent == agent} if agent is not None else found

    def halves(
        self, place: Place, rule: str, *, agent: str | None = None
    ) -> dict[RunName, tuple[RunSample, RunSample]]:
        """The training and held-out samples of the runs that have both, in the order of agents and seeds.

        A run with one episode on either level set has no variance to test and is left out.
        """
        train, test = (self.runs(place, rule, name, agent=agent) for name in ("train", "test"))
        names = [
            name
            for name in train
            if name in test and min(train[name].returns.size, test[name].returns.size) > 1
        ]
        order = {name: i for i, name in enumerate(self.agents)}
        names.sort(key=lambda name: (order.get(name.agent, 0), len(name.seed), name.seed))
        return {name: (train[name], test[name]) for name in names}

    def floor(self, place: Place, level_set: str, *, reference: str = FLOOR_RULE) -> RunSample | None:
        """The reference for a budget: one of its own, else the one that serves every budget."""
        game, mode, budget = place
        own = self.references.get(ReferencePlace(game, mode, budget, reference, level_set))
        return own or self.references.get(ReferencePlace(game, mode, "", reference, level_set))

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Every game, mode and budget that has a run, in the order of results."""
        present = {condition.place for condition in self.policies}
        every = (
            Place(game, mode, budget) for budget in self.budgets for mode in self.modes for game in self.games
        )
        return tuple(place for place in every if place in present)

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Every condition that has a run, in the order of results."""
        every = (
            Condition(*place, rule, level_set)
            for place in self.places
            for rule in self.rules
            for level_set in self.level_sets
        )
        return tuple(condition for condition in every if condition in self.policies)

    @cached_property
    def copies(self) -> tuple[RunCopy, ...]:
        """Every run whose episodes equal those of an earlier one, under every rule and on every level set."""
        prints: dict[tuple[str, str], dict[tuple[str, RunName], list[bytes]]] = {}
        varying: set[tuple[str, str, str, RunName]] = set()
        for condition in sorted(self.policies):
            game, mode, budget, rule, level_set = condition
            for run, sample in self.policies[condition].items():
                digest = sample.fingerprint(f"{rule}|{level_set}")
                prints.setdefault((game, mode), {}).setdefault((budget, run), []).append(digest)
                if (sample.returns != sample.returns[0]).any():
                    varying.add((game, mode, budget, run))
        copies = []
        for (game, mode), by_run in prints.items():
            seen: dict[tuple[bytes, ...], tuple[str, RunName]] = {}
            for (budget, run), digests in by_run.items():
                # Policies that never score are equal without being copies.
                if (game, mode, budget, run) in varying:
                    first = seen.setdefault(tuple(digests), (budget, run))
                    if first != (budget, run):
                        copies.append(RunCopy(Place(game, mode, budget), run, *first))
            found = {(copy.place.budget, copy.run) for copy in copies if copy.place[:2] == (game, mode)}
            others = [who for who in by_run if who not in found]
            copies += self._near_copies(game, mode, others) if len(others) > 1 else []
        return tuple(copies)

    def _near_copies(self, game: str, mode: str, runs: list[tuple[str, RunName]]) -> list[RunCopy]:
        """Runs that repeat almost all of an earlier run's unusual episodes, with the same level, draw and return.

        An episode counts if no other episode of its run has that return: that two policies both score 10 says nothing.
        """
        every: list[list[Ints]] = [[np.zeros(0, dtype=np.int64)] for _ in runs]
        codes: dict[tuple[str, str], int] = {}
        for condition in (c for c in sorted(self.policies) if (c.game, c.mode) == (game, mode)):
            code = codes.setdefault((condition.rule, condition.level_set), len(codes))
            for who, parts in zip(runs, every, strict=True):
                sample = self.policies[condition].get(who[1]) if condition.budget == who[0] else None
                if sample is not None:
                    parts.append(sample.unusual_episodes() + 7_368_787 * code)
        episodes = [np.concatenate(parts) for parts in every]
        owner = np.repeat(np.arange(len(runs)), [part.size for part in episodes])
        tokens = np.concatenate([np.zeros(0, dtype=np.int64), *episodes])
        order = np.argsort(tokens, kind="stable")
        repeated = np.flatnonzero(np.diff(tokens[order]) == 0)
        pairs, counts = np.unique(
            np.stack([owner[order][repeated], owner[order][repeated + 1]]), axis=1, return_counts=True
        )
        copies: dict[int, int] = {}
        for (first, second), n in zip(pairs.T.tolist(), counts, strict=True):
            if n >= max(LEAST_SHARED, NEAR_COPY * min(episodes[first].size, episodes[second].size)):
                copies.setdefault(second, copies.get(first, first))
        return [
            RunCopy(Place(game, mode, runs[second][0]), runs[second][1], *runs[first], is_exact=False)
            for second, first in copies.items()
        ]

    def distinct(self, runs: dict[RunName, AnySample], place: Place) -> dict[RunName, AnySample]:
        """The runs of a place without those that repeat another one of the same budget."""
        repeated = {
            copy.run
            for copy in self.copies
            if copy.place == place and copy.first_budget == place.budget and copy.first in runs
        }
        return {name: sample for name, sample in runs.items() if name not in repeated}


class RunCopy(NamedTuple):
    """A run and the one that it repeats: one checkpoint under two names."""

    place: Place
    run: RunName
    first_budget: str
    first: RunName
    is_exact: bool = True
    """Whether every episode is equal; else almost every one."""

    @property
    def episodes(self) -> str:
        """Which of its episodes equal the other's, in words."""
        return "every episode" if self.is_exact else "almost every episode"


def group(inputs: Inputs, plan: Plan) -> StudyEpisodes:
    """Gather the episodes of a source."""
    labels = {**inputs.labels, "level_set": _named_level_sets(inputs, plan)}
    rows = _SortedEpisodes(inputs, [labels[name] for name in LABELS])
    policies: dict[Condition, dict[RunName, RunSample]] = {}
    pooled: dict[ReferencePlace, list[range]] = {}
    for cells in rows.groups():
        first = rows.first_row(cells.start)
        game, mode, budget, agent, seed, reference, rule, level_set = (
            labels[name][1][labels[name][0][first]] for name in LABELS[:-1]
        )
        if reference:
            # A floor has no agent or seed that would tell its episodes apart.
            pooled.setdefault(ReferencePlace(game, mode, budget, reference, level_set), []).append(cells)
        else:
            condition = Condition(game, mode, budget, rule, level_set)
            sample = rows.sample([cells], is_census=(game, mode, level_set) in inputs.census)
            policies.setdefault(condition, {})[RunName(agent, seed)] = sample
    references = {}
    for place, parts in pooled.items():
        sample = rows.sample(parts, is_census=(place.game, place.mode, place.level_set) in inputs.census)
        sample = dataclasses.replace(sample, is_deterministic="constant" in place.reference)
        means = np.sort([float(np.sort(rows.returns[rows.span(part)]).mean()) for part in parts])
        has_networks = len({labels["seed"][0][rows.first_row(part.start)] for part in parts}) > 1
        references[place] = dataclasses.replace(sample, network_means=means) if has_networks else sample
    return StudyEpisodes(
        policies=policies,
        references=references,
        games=_ordered(labels["game"][1], [g for games in plan.scope.games.values() for g in games]),
        modes=labels["mode"][1],
        budgets=_ordered({c.budget for c in policies}, list(plan.scope.games)),
        rules=_ordered({c.rule for c in policies}, plan.scope.rules),
        level_sets=_ordered(labels["level_set"][1], ("train", "test")),
        draws=labels["draw"][1],
        agents=_agents(inputs, plan),
        n_cells=rows.n_cells,
    )


class _SortedEpisodes:
    """Returns and levels in the order of cells, and within a cell of levels and returns. Samples are views of them."""

    def __init__(self, inputs: Inputs, labels: list[Label]) -> None:
        cell = combined_codes(labels)
        order = stable_order(cell)
        self.n_cells = int(cell.max()) + 1
        self._ends = np.r_[0, np.cumsum(np.bincount(cell))]
        self.returns, self.levels = inputs.returns[order], inputs.level_seed[order]
        self._first = order[self._ends[:-1]]
        for cell_number in range(self.n_cells):
            self._sort(cell_number)
        self._draw_codes, self._draw_names = labels[-1][0][self._first], labels[-1][1]
        self._group = combined_codes([(codes[self._first], names) for codes, names in labels[:-1]])

    def _sort(self, cell: int) -> None:
        span = self.span(range(cell, cell + 1))
        order = np.lexsort((self.returns[span], self.levels[span]))
        self.returns[span], self.levels[span] = self.returns[span][order], self.levels[span][order]

    def groups(self) -> Iterator[range]:
        """Cells that differ in nothing but the draw."""
        ends = np.flatnonzero(np.diff(self._group)) + 1
        for start, stop in zip((0, *ends), (*ends, self.n_cells), strict=True):
            yield range(int(start), int(stop))

    def first_row(self, cell: int) -> int:
        """A row of the source that belongs to a cell."""
        return int(self._first[cell])

    def span(self, cells: range) -> slice:
        """Where cells that follow one another lie."""
        return slice(int(self._ends[cells.start]), int(self._ends[cells.stop]))

    def sample(self, parts: list[range], *, is_census: bool) -> RunSample:
        """The episodes of groups of cells as one sample."""
        cells = [cell for part in parts for cell in part]
        present, index = np.unique(self._draw_codes[cells], return_inverse=True)
        sizes = np.diff(self._ends)[cells]
        draw = np.repeat(index.astype(np.int32), sizes)
        if len(parts) == 1:
            returns, levels = self.returns[self.span(parts[0])], self.levels[self.span(parts[0])]
        else:
            returns = np.concatenate([self.returns[self.span(part)] for part in parts])
            levels = np.concatenate([self.levels[self.span(part)] for part in parts])
            order = np.lexsort((returns, levels, draw))
            returns, levels, draw = returns[order], levels[order], draw[order]
        has_levels = bool((levels >= 0).all())
        return RunSample(
            returns=returns,
            draws=tuple(self._draw_names[code] for code in present),
            draw=draw,
            levels=levels if has_levels else levels[:0],
            is_census=is_census and has_levels,
        )


def _named_level_sets(inputs: Inputs, plan: Plan) -> tuple[Ints, tuple[str, ...]]:
    """Level sets by name: levels written as the plan writes them (0:200) get the plan's name for them."""
    codes, names = inputs.labels["level_set"]
    spelled = {plan.scope.train: "train", plan.scope.test: "test"}
    renamed = [spelled.get(name, name) for name in names]
    distinct = tuple(dict.fromkeys(renamed))
    return np.array([distinct.index(name) for name in renamed])[codes], distinct


def _ordered(present: set[str] | tuple[str, ...], first: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """The names present: those of the plan in its order, then the others in natural order."""
    leading = [name for name in dict.fromkeys(first) if name in present]
    return (*leading, *sorted(set(present) - set(leading), key=natural_key))


def _agents(inputs: Inputs, plan: Plan) -> tuple[str, ...]:
    leading = [name for name in plan.agents.order if name in inputs.agent_order]
    return (*leading, *(name for name in inputs.agent_order if name not in leading))
