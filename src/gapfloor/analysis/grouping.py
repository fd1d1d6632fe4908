"""Episodes gathered by run, rule and level set, in an order that does not depend on the order of rows."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gapfloor.analysis.inputs import FLOOR_RULE, Inputs, combined_codes, natural_key, stable_order
from gapfloor.plan.model import Plan
from gapfloor.records.stored_cell import LABELS
from gapfloor.statistics.conventions import Floats, Ints
from gapfloor.statistics.level_crossing import by_level, within_level_sample

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
    """Where a policy or a reference was measured."""

    game: str
    mode: str
    budget: str
    """A reference without a budget serves every budget."""
    rule: str
    """The name of a reference."""
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

    def without_draw(self, draw: str) -> RunSample | None:
        """The sample without the episodes of one draw; None where fewer than two remain, or the parts are not draws."""
        if draw not in self.draws:
            return self
        at = self.draws.index(draw)
        kept = self.draw != at
        if self.is_census or self.network_means.size > 1 or np.count_nonzero(kept) < 2:
            return None
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


#: A run with its budget.
Who = tuple[str, RunName]
#: The samples of a run by rule and level set.
Samples = dict[tuple[str, str], RunSample]


def levels_of(samples: Iterable[RunSample]) -> Ints:
    """The different levels that samples were played on, as far as they are known."""
    levels = [sample.levels for sample in samples if sample.levels.size]
    return np.unique(np.concatenate(levels)) if levels else np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class StudyEpisodes:
    """All samples, with the labels in the order in which results are written."""

    policies: dict[Condition, dict[RunName, RunSample]]
    references: dict[Condition, RunSample]
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
        where = Condition(*place, reference, level_set)
        return self.references.get(where) or self.references.get(where._replace(budget=""))

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Every condition that has a run, in the order of results: by budget, mode, game, rule and level set."""
        order = (self.budgets, self.modes, self.games, self.rules, self.level_sets)
        labels = attrgetter("budget", "mode", "game", "rule", "level_set")
        return tuple(
            sorted(
                self.policies,
                key=lambda one: [names.index(name) for names, name in zip(order, labels(one), strict=True)],
            )
        )

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Every game, mode and budget that has a run, in the order of results."""
        return tuple(dict.fromkeys(condition.place for condition in self.conditions))

    @cached_property
    def copies(self) -> tuple[RunCopy, ...]:
        """Every run that repeats an earlier one's episodes, or almost all, under every rule and on every level set."""
        games: dict[tuple[str, str], dict[Who, Samples]] = {}
        for condition in sorted(self.policies):
            for run, sample in self.policies[condition].items():
                samples = games.setdefault(condition[:2], {}).setdefault((condition.budget, run), {})
                samples[condition.rule, condition.level_set] = sample
        copies = []
        for (game, mode), runs in games.items():
            if len(runs) < 2:
                continue
            seen: dict[tuple[bytes, ...], Who] = {}
            found: dict[Who, tuple[Who, bool]] = {}
            for who, samples in runs.items():
                # Policies that never score are equal without being copies.
                if any((sample.returns != sample.returns[0]).any() for sample in samples.values()):
                    prints = (each.fingerprint("|".join(name)) for name, each in samples.items())
                    first = seen.setdefault(tuple(prints), who)
                    if first != who:
                        found[who] = first, True
            others = {who: samples for who, samples in runs.items() if who not in found}
            found |= {who: (first, False) for who, first in near_copies(others).items()}
            copies += [
                RunCopy(Place(game, mode, budget), run, *first, is_exact)
                for (budget, run), (first, is_exact) in found.items()
            ]
        return tuple(copies)

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


def near_copies(runs: dict[Who, Samples]) -> dict[Who, Who]:
    """Runs that repeat almost all of an earlier run's unusual episodes, with the same level, draw and return.

    An episode counts if no other episode of its run has that return: that two policies both score 10 says nothing.
    """
    if len(runs) < 2:
        return {}
    names, who = sorted({name for samples in runs.values() for name in samples}), list(runs)
    episodes = [
        np.concatenate(
            [7_368_787 * names.index(name) + each.unusual_episodes() for name, each in one.items()]
        )
        for one in runs.values()
    ]
    owner = np.repeat(np.arange(len(runs)), [part.size for part in episodes])
    tokens = np.concatenate(episodes)
    order = np.argsort(tokens, kind="stable")
    repeated = np.flatnonzero(np.diff(tokens[order]) == 0)
    pairs, counts = np.unique(
        np.stack([owner[order][repeated], owner[order][repeated + 1]]), axis=1, return_counts=True
    )
    copies: dict[int, int] = {}
    for (first, second), n in zip(pairs.T.tolist(), counts, strict=True):
        if n >= max(LEAST_SHARED, NEAR_COPY * min(episodes[first].size, episodes[second].size)):
            copies.setdefault(second, copies.get(first, first))
    return {who[second]: who[first] for second, first in copies.items()}


def group(inputs: Inputs, plan: Plan) -> StudyEpisodes:
    """Gather the episodes of a source."""
    # Levels written as the plan writes them (0:200) get the plan's name for them.
    codes, names = inputs.labels["level_set"]
    spelled = {plan.scope.train: "train", plan.scope.test: "test"}
    renamed = [spelled.get(name, name) for name in names]
    level_sets = tuple(dict.fromkeys(renamed))
    level_set_codes = np.array([level_sets.index(name) for name in renamed])[codes]
    labels = {**inputs.labels, "level_set": (level_set_codes, level_sets)}
    columns = [labels[name] for name in LABELS]
    cell = combined_codes(columns)
    order, ends = stable_order(cell), np.r_[0, np.cumsum(np.bincount(cell))]
    # In the order of cells, and within a cell of levels and returns. Samples are views of them.
    returns, levels, first = inputs.returns[order], inputs.level_seed[order], order[ends[:-1]]
    for start, stop in pairwise(ends):
        within = np.lexsort((returns[start:stop], levels[start:stop]))
        returns[start:stop], levels[start:stop] = returns[start:stop][within], levels[start:stop][within]
    draws, draw_names = columns[-1][0][first], columns[-1][1]

    def sample(where: Condition, parts: list[slice], **about: Any) -> RunSample:
        cells = np.concatenate([np.arange(part.start, part.stop) for part in parts])
        present, index = np.unique(draws[cells], return_inverse=True)
        draw = np.repeat(index.astype(np.int32), np.diff(ends)[cells])
        spans = [slice(int(ends[part.start]), int(ends[part.stop])) for part in parts]
        own, seeds = returns[spans[0]], levels[spans[0]]
        if len(parts) > 1:
            own, seeds = (np.concatenate([each[span] for span in spans]) for each in (returns, levels))
            together = np.lexsort((own, seeds, draw))
            own, seeds, draw = own[together], seeds[together], draw[together]
            # A floor has no agent or seed that would tell its episodes apart; other references have networks.
            if len({labels["seed"][0][first[part.start]] for part in parts}) > 1:
                about["network_means"] = np.sort([float(np.sort(returns[span]).mean()) for span in spans])
        has_levels = bool((seeds >= 0).all())
        is_census = has_levels and (where.game, where.mode, where.level_set) in inputs.census
        names = tuple(draw_names[code] for code in present)
        return RunSample(own, names, draw, seeds if has_levels else seeds[:0], is_census, **about)

    policies: dict[Condition, dict[RunName, RunSample]] = {}
    pooled: dict[Condition, list[slice]] = {}
    # Cells that differ in nothing but the draw follow one another.
    group_of = combined_codes([(codes[first], names) for codes, names in columns[:-1]])
    for start, stop in pairwise((0, *(np.flatnonzero(np.diff(group_of)) + 1).tolist(), first.size)):
        game, mode, budget, agent, seed, reference, rule, level_set = (
            names[codes[first[start]]] for codes, names in columns[:-1]
        )
        where, cells = Condition(game, mode, budget, reference or rule, level_set), slice(start, stop)
        if reference:
            pooled.setdefault(where, []).append(cells)
        else:
            policies.setdefault(where, {})[RunName(agent, seed)] = sample(where, [cells])
    references = {
        where: sample(where, parts, is_deterministic="constant" in where.rule)
        for where, parts in pooled.items()
    }
    leading = [name for name in plan.agents.order if name in inputs.agent_order]
    return StudyEpisodes(
        policies=policies,
        references=references,
        games=_ordered(labels["game"][1], [g for games in plan.scope.games.values() for g in games]),
        modes=labels["mode"][1],
        budgets=_ordered({c.budget for c in policies}, list(plan.scope.games)),
        rules=_ordered({c.rule for c in policies}, plan.scope.rules),
        level_sets=_ordered(labels["level_set"][1], ("train", "test")),
        draws=draw_names,
        agents=tuple(dict.fromkeys((*leading, *inputs.agent_order))),
        n_cells=first.size,
    )


def _ordered(present: Collection[str], first: Sequence[str]) -> tuple[str, ...]:
    """The names present: those of the plan in its order, then the others in natural order."""
    leading = [name for name in dict.fromkeys(first) if name in present]
    return (*leading, *sorted(set(present) - set(leading), key=natural_key))
