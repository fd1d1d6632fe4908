"""A study with the plan that is applied to it, and the rows that need no test: floors, returns, normalised scores.

The plan decides which runs a row is about and what its status is. Each row resamples with its own random numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gapfloor.analysis.grouping import Place, RunSample, StudyEpisodes
from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.analysis.rows import ReturnRow, ScoreRow, Status
from gapfloor.plan.lock import LockedPlan, load_plan
from gapfloor.plan.model import Method, Plan, content_hash
from gapfloor.statistics.conventions import NAN, MarginRule, sem
from gapfloor.statistics.families import holm
from gapfloor.statistics.normalised import between, published_scale

AnyRow = TypeVar("AnyRow")
BOTH = ("train", "test")
#: 0.25 of the range from 0 to 10.
_SHARE_OF_RANGE = 0.025


class Naming(NamedTuple):
    """Which plan or addendum names a row, and what the row may be called."""

    status: Status
    plan_hash: str
    reason: str
    family: str
    """Prefix of the row's family: the addendum's name, "exploratory", or nothing."""

    def family_of(self, kind: str, *parts: str) -> str:
        """A family in words: "floor: sampled, test, 8M", led by the addendum's name if it is one's."""
        name = f"{kind}: {', '.join(part for part in parts if part)}"
        return f"{self.family}, {name}" if self.family else name


@dataclass(frozen=True)
class PlannedStudy:
    """The study with the plan that is applied to it."""

    study: StudyEpisodes
    plan: Plan
    locked: LockedPlan | None = None
    """None: no plan was given, the built-in one is used."""
    pools: tuple[str | None, ...] = (None,)
    """Whose runs are one sample: an agent's, or (None) those of all agents together."""

    @cached_property
    def plan_hash(self) -> str:
        """The hash of what the plan says."""
        return self.locked.hash if self.locked is not None else content_hash(self.plan)

    @property
    def method(self) -> Method:
        """Which method makes the calls: the plan's; recommended where no plan was given."""
        # A plan without the setting was written for the paper's tests.
        return self.plan.method or ("recommended" if self.locked is None else "paper")

    def margin(self, *samples: RunSample) -> MarginRule:
        """The plan's margin of equivalence for these samples of returns.

        The paper's smallest margin, 0.25, is for returns from 0 to 10. Where no plan is given it is at most the same
        share of the range of the returns: on returns from 0 to 1 it would call almost anything equivalent.
        """
        smallest = self.plan.floor.margin_minimum
        if self.locked is None and samples:
            ends = [(sample.returns.min(), sample.returns.max()) for sample in samples]
            spread = float(max(high for _, high in ends) - min(low for low, _ in ends))
            smallest = min(smallest, _SHARE_OF_RANGE * spread)
        return MarginRule(self.plan.floor.margin_fraction, smallest)

    def resampling(self, seed: int) -> dict[str, Any]:
        """The plan's interval settings and a row's own generator, as keyword arguments of the statistics."""
        settings = self.plan.intervals
        return {
            "rng": np.random.default_rng(seed),
            "confidence": settings.confidence,
            "n_resamples": settings.resamples,
        }

    @cached_property
    def for_calls(self) -> PlannedStudy:
        """The same for calls alone, without resampled intervals."""
        return replace(self, plan=replace(self.plan, intervals=replace(self.plan.intervals, resamples=1)))

    def naming(
        self, place: Place, rules: Sequence[str], level_sets: Sequence[str] = BOTH, *, unnamed: str = ""
    ) -> Naming:
        """Who names a result about these rules on these level sets.

        `unnamed` says why neither a plan nor an addendum can name this kind of result; empty where they can.
        """
        plan, lock = self.plan, self.locked.lock if self.locked is not None else None
        if unnamed and lock is not None:
            return Naming("exploratory", self.plan_hash, unnamed, "exploratory")
        new = [rule for rule in rules if rule not in plan.scope.rules]
        not_named = [
            *(f"the rule '{rule}'" for rule in new if rule != plan.floor.reference),
            *(f"the level set '{level_set}'" for level_set in level_sets if level_set not in BOTH),
        ]
        if place.game != "mean" and not plan.names(game=place.game, budget=place.budget):
            not_named.append(f"{place.game} at {place.budget or 'this budget'}")
        for addendum, text in self.locked.addenda if not_named and new and self.locked is not None else ():
            if (
                set(new) <= set(addendum.rules)
                and set(level_sets) <= set(addendum.level_sets)
                and addendum.names(game=place.game, budget=place.budget)
            ):
                return Naming(text.status, text.hash, "", addendum.name)
        reason = f"the plan does not name {not_named[0]}" if not_named else ""
        if self.locked is None:
            reason = "no plan was given: the built-in plan was used"
        elif lock is None:
            reason = "the plan is not locked"
        elif not reason:
            return Naming(lock.plan.status, self.plan_hash, "", "")
        return Naming("exploratory", self.plan_hash, reason, "exploratory" if not_named else "")

    def row(
        self,
        kind: str,
        place: Place,
        *,
        n: int,
        rules: Sequence[str],
        level_sets: Sequence[str] = BOTH,
        agent: str | None = None,
        names: Sequence[str] = (),
        unnamed: str = "",
    ) -> dict[str, Any]:
        """The fields that every result shares, as keyword arguments; a row about both level sets names none.

        Its seed is the plan's, mixed with the row's names, so that no row depends on another; it stays below 2^53, the
        largest whole number that every JSON reader keeps.
        """
        naming = self.naming(place, rules, level_sets, unnamed=unnamed)
        text = "|".join((str(self.plan.intervals.seed), kind, *place, *rules, *level_sets, *names))
        return {
            **place._asdict(),
            "agent": agent,
            "rule": rules[0],
            "level_set": level_sets[0] if len(level_sets) == 1 else "",
            "n": n,
            "seed": int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big"),
            "plan_hash": naming.plan_hash,
            "status": naming.status,
            "exploratory_reason": naming.reason,
        }


def resolve_plan(plan: str | Path | Plan | LockedPlan | None) -> LockedPlan | None:
    """The plan with its lock and addenda; None stands for the built-in plan of the paper."""
    if plan is None or isinstance(plan, LockedPlan):
        return plan
    if isinstance(plan, Plan):
        return LockedPlan(plan, content_hash(plan), None)
    return load_plan(Path(plan))


def other_method(method: Method) -> Method:
    """The method that was not chosen."""
    return "paper" if method == "recommended" else "recommended"


def families_of(rows: Iterable[AnyRow], family: Callable[[AnyRow], Any]) -> list[list[AnyRow]]:
    """The rows of each family of tests, in the order of their first rows."""
    found: dict[Any, list[AnyRow]] = {}
    for row in rows:
        found.setdefault(family(row), []).append(row)
    return list(found.values())


def holm_within(
    rows: Sequence[AnyRow], family: Callable[[AnyRow], Any], p: Callable[[AnyRow], float]
) -> list[float]:
    """The p of each row after Holm's correction over the rows of its family."""
    adjusted = [float("nan")] * len(rows)
    for members in families_of(range(len(rows)), lambda i: family(rows[i])):
        for i, value in zip(members, holm([p(rows[i]) for i in members]), strict=True):
            adjusted[i] = float(value)
    return adjusted


#: The name of the unweighted mean over games.
SUITE = "mean"


def floor_rows(context: PlannedStudy) -> tuple[ReturnRow, ...]:
    """Every reference on every level set."""
    study = context.study
    rows = [
        return_row(context, [sample], Place(game, mode, budget), level_set, reference=reference)
        for (game, mode, budget, reference, level_set), sample in study.references.items()
    ]
    rows.sort(
        key=lambda row: (
            row.reference != FLOOR_RULE, row.reference, study.games.index(row.game), row.budget, row.level_set
        )
    )  # fmt: skip
    return tuple(rows)


def return_row(
    context: PlannedStudy,
    samples: Sequence[RunSample],
    place: Place,
    level_set: str,
    *,
    agent: str | None = None,
    rule: str = "",
    reference: str = "",
    **more: Any,
) -> ReturnRow:
    """The return of an agent's runs under a rule, or of a reference, which is one sample."""
    values, first = np.sort([sample.mean for sample in samples]), samples[0]
    n_episodes = sum(sample.returns.size for sample in samples)
    labels = context.row(
        "floor" if reference else "return",
        place,
        n=n_episodes if reference else len(samples),
        rules=(reference or rule,),
        level_sets=(level_set,),
        agent=agent,
        names=(agent,) if agent is not None else (),
    )
    fields = {
        "rule": rule,
        "mean": float(values.mean()),
        "sem": sem(values) if len(samples) > 1 else sem(first.units),
        "n_episodes": n_episodes,
        "n_draws": len(first.draws),
        "n_levels": np.unique(np.concatenate([sample.levels for sample in samples])).size,
        "n_networks": max(1, first.network_means.size),
    }
    return ReturnRow(reference=reference, **{**labels, **fields, **more})


def normalised_rows(context: PlannedStudy) -> tuple[ScoreRow, ...]:
    """Scores of every game that has a scale, then the unweighted means over the games of a budget."""
    study, rows = context.study, []
    suites: dict[tuple[Place, str, str, str | None], list[float]] = {}
    whose: list[tuple[str | None, str]] = [(agent, rule) for agent in context.pools for rule in study.rules]

    def row(place: Place, rule: str, level_set: str, agent: str | None, n: int, **fields: Any) -> ScoreRow:
        about = context.row("score", place, n=n, rules=(rule,), level_sets=(level_set,), agent=agent)
        return ScoreRow(**about, **fields)

    for place, (agent, rule), level_set in product(
        study.places, [*whose, (None, FLOOR_RULE)], study.level_sets
    ):
        scale, floor = score_scale(context, place, level_set), study.floor(place, level_set)
        means = [sample.mean for sample in study.runs(place, rule, level_set, agent=agent).values()]
        n = len(means)
        if rule == FLOOR_RULE:
            means, n = ([floor.mean], floor.returns.size) if floor is not None else ([], 0)
        if scale is not None and n:
            score, (low, high) = between(float(np.mean(sorted(means))), *scale), map(float, scale)
            rows.append(row(place, rule, level_set, agent, n, score=score, r_min=low, r_max=high))
            suites.setdefault((place._replace(game=SUITE), rule, level_set, agent), []).append(score)
    for who, scores in suites.items():
        rows.append(row(*who, len(scores), score=float(np.mean(sorted(scores))), r_min=NAN, r_max=NAN))
    return tuple(rows)


def score_scale(context: PlannedStudy, place: Place, level_set: str) -> tuple[float, float] | None:
    """The returns that count as 0 and 1: the floor and the plan's upper reference, or the published constants."""
    upper = (context.plan.normalised.upper or {}).get(place.game)
    if upper is None:
        return published_scale(place.game, place.mode)
    floor = context.study.floor(place, level_set)
    return (floor.mean, upper) if floor is not None else None
