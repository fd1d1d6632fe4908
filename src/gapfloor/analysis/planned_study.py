"""A study with the plan that is applied to it: the status of every row, and a generator of its own for each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.analysis.copies import RunCopy
from gapfloor.analysis.grouping import RunName, RunSample, StudyEpisodes
from gapfloor.analysis.rows import Status
from gapfloor.plan.lock import LockedPlan
from gapfloor.plan.model import Addendum, Method, Plan
from gapfloor.statistics.conventions import MarginRule


@dataclass(frozen=True)
class Naming:
    """Which plan or addendum names a row, and what the row may be called."""

    status: Status
    plan_hash: str
    reason: str
    family: str
    """Prefix of the row's family: the addendum's name, "exploratory", or nothing."""


@dataclass(frozen=True)
class PlannedStudy:
    """The study with the plan that is applied to it."""

    study: StudyEpisodes
    plan: Plan
    plan_hash: str
    locked: LockedPlan | None
    """None: no plan was given, the built-in one is used."""
    has_cells: bool = False
    copies: tuple[RunCopy, ...] = ()

    @property
    def floor_method(self) -> Method:
        """Which method makes the calls against a reference: the plan's; recommended where no plan was given."""
        return self._method(self.plan.floor.method)

    @property
    def gap_method(self) -> Method:
        """Which method makes the calls of gaps."""
        return self._method(self.plan.gaps.method)

    def _method(self, named: Method | None) -> Method:
        # A plan without the setting was written for the paper's tests.
        return named or ("recommended" if self.locked is None else "paper")

    def distinct(
        self, runs: dict[RunName, RunSample], *, game: str, mode: str, budget: str
    ) -> dict[RunName, RunSample]:
        """The runs without those that repeat another one of the same budget."""
        repeated = {
            copy.run
            for copy in self.copies
            if (copy.game, copy.mode, copy.budget) == (game, mode, budget)
            and copy.first_budget == budget
            and copy.first in runs
        }
        return {name: sample for name, sample in runs.items() if name not in repeated}

    @property
    def beyond_looks(self) -> str:
        """Why a test that is not a comparison with the floor is not named by a plan with looks, or nothing."""
        if self.plan.floor.looks is None:
            return ""
        return (
            "the plan's looks are about calls against the floor; here the number of runs depends on the data"
        )

    @property
    def margin(self) -> MarginRule:
        """The plan's margin of equivalence."""
        return MarginRule(self.plan.floor.margin_fraction, self.plan.floor.margin_minimum)

    @property
    def resampling(self) -> dict[str, Any]:
        """The plan's interval settings, as keyword arguments of the statistics."""
        return {"confidence": self.plan.intervals.confidence, "n_resamples": self.plan.intervals.resamples}

    def floor(self, game: str, mode: str, budget: str, level_set: str) -> RunSample | None:
        """The plan's reference on a level set."""
        return self.study.floor(game, mode, budget, level_set, reference=self.plan.floor.reference)

    def seed(self, *names: str) -> int:
        """The seed of a row: the plan's, mixed with the row's names, so that no row depends on another.

        It stays below 2^53, the largest whole number that every JSON reader keeps.
        """
        text = "|".join((str(self.plan.intervals.seed), *names))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")

    def rng(self, seed: int) -> np.random.Generator:
        """The generator of a row's resamples."""
        return np.random.default_rng(seed)

    def naming(
        self,
        *,
        game: str,
        budget: str,
        rules: tuple[str, ...],
        level_sets: tuple[str, ...],
        unnamed: str = "",
    ) -> Naming:
        """Who names a result about these rules on these level sets.

        Args:
            game: the game.
            budget: its budget.
            rules: the rules.
            level_sets: the level sets.
            unnamed: why neither a plan nor an addendum can name this kind of result; empty where they can.
        """
        if unnamed and self.locked is not None and self.locked.lock is not None:
            return Naming("exploratory", self.plan_hash, unnamed, "exploratory")
        reason = self._outside(game=game, budget=budget, rules=rules, level_sets=level_sets)
        addendum = None
        if reason and self.locked is not None:
            addendum = self._addendum(game=game, budget=budget, rules=rules, level_sets=level_sets)
        if addendum is not None:
            content, digest, status = addendum
            return Naming(status, digest, "", content.name)
        family = "exploratory" if reason else ""
        if self.locked is None:
            return Naming(
                "exploratory", self.plan_hash, "no plan was given: the built-in plan was used", family
            )
        if self.locked.lock is None:
            return Naming("exploratory", self.plan_hash, "the plan is not locked", family)
        if reason:
            return Naming("exploratory", self.plan_hash, reason, family)
        return Naming(self.locked.lock.plan.status, self.plan_hash, "", "")

    def row(
        self,
        kind: str,
        *,
        game: str,
        mode: str,
        budget: str,
        n: int,
        rules: tuple[str, ...],
        level_sets: tuple[str, ...] = ("train", "test"),
        names: tuple[str, ...] = (),
        unnamed: str = "",
    ) -> dict[str, Any]:
        """The fields that every result shares, as keyword arguments."""
        naming = self.naming(game=game, budget=budget, rules=rules, level_sets=level_sets, unnamed=unnamed)
        return {
            "game": game,
            "mode": mode,
            "budget": budget,
            "n": n,
            "seed": self.seed(kind, game, mode, budget, *rules, *level_sets, *names),
            "plan_hash": naming.plan_hash,
            "status": naming.status,
            "exploratory_reason": naming.reason,
        }

    def _outside(self, *, game: str, budget: str, rules: tuple[str, ...], level_sets: tuple[str, ...]) -> str:
        for rule in rules:
            if rule not in self.plan.scope.rules and rule != self.plan.floor.reference:
                return f"the plan does not name the rule '{rule}'"
        for level_set in level_sets:
            if level_set not in ("train", "test"):
                return f"the plan does not name the level set '{level_set}'"
        if game != "mean" and not self.plan.names(game=game, budget=budget):
            return f"the plan does not name {game} at {budget or 'this budget'}"
        return ""

    def _addendum(
        self, *, game: str, budget: str, rules: tuple[str, ...], level_sets: tuple[str, ...]
    ) -> tuple[Addendum, str, Status] | None:
        assert self.locked is not None
        for content, locked in self.locked.addenda:
            new = [rule for rule in rules if rule not in self.plan.scope.rules]
            if (
                new
                and all(rule in content.rules for rule in new)
                and all(level_set in content.level_sets for level_set in level_sets)
                and content.names(game=game, budget=budget)
            ):
                return content, locked.hash, locked.status
        return None


def family_name(kind: str, naming: Naming, *parts: str) -> str:
    """A family in words: "floor: sampled, test, 8M", led by the addendum's name if it is one's."""
    name = f"{kind}: {', '.join(part for part in parts if part)}"
    return f"{naming.family}, {name}" if naming.family else name


def floor_family(
    context: PlannedStudy, where: tuple[str, str, str, str], *, agent: str | None = None, unnamed: str = ""
) -> str:
    """The family of a comparison with the floor; `where` is its game, budget, rule and level set."""
    game, budget, rule, level_set = where
    naming = context.naming(game=game, budget=budget, rules=(rule,), level_sets=(level_set,), unnamed=unnamed)
    values = {"rule": rule, "level_set": level_set, "budget": budget}
    return family_name("floor", naming, *(values[name] for name in context.plan.floor.family), agent or "")
