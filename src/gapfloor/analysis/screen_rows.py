"""Rows of the entropy screen, from the cell records of a store.

Order of averaging: a cell's steps are pooled already; then means over draws, level sets and runs. The share
is the ratio of those means.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa

from gapfloor.analysis.grouping import Place, RunName
from gapfloor.analysis.planned_study import BOTH, PlannedStudy, families_of
from gapfloor.analysis.rows import ComparisonRow, DisagreementRow, GapRow, ScreenRow, ScreenSummary
from gapfloor.plan.model import Screen
from gapfloor.statistics.conventions import NAN, Tier
from gapfloor.statistics.screen import entropy_share, scaled_entropy, sweep_tiers, tier

_MEASURES = (
    "entropy_raw", "entropy_first1024", "entropy_probe", "merged_state", "merged_game", "mean_ln_k", "disagreement",
)  # fmt: skip


@dataclass(frozen=True)
class CellMeans:
    """What the cells of runs measured."""

    found: dict[tuple[Place, str], dict[RunName, dict[tuple[str, str], list[float]]]]
    """(place, rule) -> run -> (level set, measure) -> a value per draw."""
    k: dict[tuple[str, str], int]
    """(game, mode) -> distinct actions of the game."""
    n_actions: dict[tuple[str, str], int]

    def mean(
        self, place: Place, rule: str, measure: str, *, agent: str | None = None, level_set: str = ""
    ) -> float:
        """Mean over draws, over level sets (or of one), then over runs; NaN if nobody measured it."""
        keys, runs = [(name, measure) for name in ((level_set,) if level_set else BOTH)], []
        for name, found in self.found.get((place, rule), {}).items():
            if agent in (None, name.agent) and (
                values := [_mean(found[key]) for key in keys if key in found]
            ):
                runs.append(_mean(values))
        return _mean(runs) if runs else NAN

    def maximum(self, place: Place, screen: Screen) -> float:
        """The entropy of choosing among all actions alike, in nats."""
        return math.log(self.n_actions.get(place[:2], screen.actions))

    def n_runs(self, place: Place, rule: str, *, agent: str | None = None) -> int:
        """Runs that have cell records under a rule."""
        return sum(agent in (None, name.agent) for name in self.found.get((place, rule), {}))


def read_cells(cells: pa.Table | None, context: PlannedStudy) -> CellMeans:
    """The cell records of runs."""
    means = CellMeans({}, {}, {})
    spelled = {context.plan.scope.train: "train", context.plan.scope.test: "test"}
    for record in cells.to_pylist() if cells is not None else ():
        if record.get("reference") or record.get("rule") == "uniform":
            continue
        place = Place(record["game"], record.get("mode") or "easy", record.get("budget") or "")
        seed = record.get("seed")
        run = RunName(
            record.get("agent") or record.get("encoder") or "",
            "" if seed is None else str(int(seed) if isinstance(seed, float) else seed),
        )
        level_set = spelled.get(record["level_set"], record["level_set"])
        found = means.found.setdefault((place, record["rule"]), {}).setdefault(run, {})
        for measure in _MEASURES:
            value = record.get(measure)
            if value is not None and math.isfinite(value):
                found.setdefault((level_set, measure), []).append(float(value))
        if record.get("k"):
            means.k[place[:2]] = int(record["k"])
        if record.get("action_counts"):
            means.n_actions[place[:2]] = len(record["action_counts"])
    return means


def _mean(values: list[float]) -> float:
    return float(np.mean(sorted(values)))


def screen_rows(
    context: PlannedStudy, cells: CellMeans, comparisons: Iterable[ComparisonRow], gaps: Iterable[GapRow]
) -> tuple[ScreenRow, ...]:
    """The screen of every game and budget that has entropies, of each of the plan's pools."""
    calls = {(r.agent, r.game, r.mode, r.budget, r.rule, r.level_set): r.decision.call for r in comparisons}
    gap_of = {(r.agent, r.game, r.mode, r.budget, r.rule): r.gap for r in gaps}
    screen, primary, rows = context.plan.screen, context.plan.scope.primary_rule, []
    second = next((r for r in context.plan.scope.rules if r != primary), "")
    for agent, place in product(context.pools, context.study.places):
        mean = partial(cells.mean, place, screen.rule, agent=agent)
        entropy, state, probe = mean("entropy_raw"), mean("merged_state"), mean("entropy_probe")
        maximum = cells.maximum(place, screen)
        if math.isnan(entropy) or cells.n_actions.get(place[:2]) == 1:
            continue  # with one action there is nothing to screen
        n, k = cells.n_runs(place, screen.rule, agent=agent), cells.k.get(place[:2])
        labels = context.row("screen", place, n=n, rules=(screen.rule,), agent=agent, names=(agent or "",))
        per_state = scaled_entropy(state, maximum=mean("mean_ln_k"), to_maximum=maximum)
        per_game = scaled_entropy(mean("merged_game"), maximum=math.log(k) if k else NAN, to_maximum=maximum)
        sized = [
            sized_for_cuts(value, maximum=maximum, screen=screen) for value in (entropy, per_state, per_game)
        ]
        state_tier, game_tier = (_tier(value, screen) for value in sized[1:])
        rows.append(
            ScreenRow(
                **{**labels, "rule": ""},
                entropy=entropy,
                maximum=maximum,
                fraction=entropy / maximum,
                tier=tier(sized[0], cuts=screen.cuts),
                entropy_probe=probe,
                entropy_first=mean("entropy_first1024"),
                entropy_greedy=cells.mean(place, "greedy", "entropy_raw", agent=agent),
                merged_state=state,
                merged_game=mean("merged_game"),
                mean_ln_k=mean("mean_ln_k"),
                k=k,
                share=entropy_share(state, probe),
                merged_state_scaled=per_state,
                merged_game_scaled=per_game,
                merged_tier_state=state_tier,
                merged_tier_game=game_tier,
                sweep=sweep_tiers(*sized, cuts=screen.sweep, high=screen.cuts[1]),
                call=calls.get((agent, *place, primary, "test")),
                gap_primary=gap_of.get((agent, *place, primary), NAN),
                gap_secondary=gap_of.get((agent, *place, second), NAN),
            )
        )
    return tuple(rows)


def sized_for_cuts(entropy: float, *, maximum: float, screen: Screen) -> float:
    """The entropy at the same fraction of the maximum that the plan's cuts belong to.

    Cuts are fractions of ln n: 2.0 and 2.3 nats are 74% and 85% of ln 15. In a game with another number of actions an
    entropy meets the same fractions of its own maximum. NaN in a game with one action, where no cut means anything.
    """
    planned = math.log(screen.actions)
    return entropy if maximum == planned else scaled_entropy(entropy, maximum=maximum, to_maximum=planned)


def _tier(sized: float, screen: Screen) -> Tier | None:
    return None if math.isnan(sized) else tier(sized, cuts=screen.cuts)


def agent_tier(context: PlannedStudy, cells: CellMeans, place: Place, agent: str) -> Tier | None:
    """The raw-entropy tier of one agent's runs."""
    screen = context.plan.screen
    entropy = cells.mean(place, screen.rule, "entropy_raw", agent=agent)
    return _tier(sized_for_cuts(entropy, maximum=cells.maximum(place, screen), screen=screen), screen)


def disagreement_rows(context: PlannedStudy, cells: CellMeans) -> tuple[DisagreementRow, ...]:
    """How often a merged rule leaves the class of plain argmax."""
    rows = []
    for agent, condition in product(context.pools, context.study.conditions):
        place, rule, level_set = condition.place, condition.rule, condition.level_set
        share = cells.mean(place, rule, "disagreement", agent=agent, level_set=level_set)
        if not math.isnan(share) and rule.startswith("merged"):
            n = cells.n_runs(place, rule, agent=agent)
            labels = context.row(
                "disagreement", place, n=n, rules=(rule,), level_sets=(level_set,), agent=agent
            )
            rows.append(DisagreementRow(**labels, share=share))
    return tuple(rows)


def screen_summaries(rows: Iterable[ScreenRow]) -> tuple[ScreenSummary, ...]:
    """How many games of a budget are flagged, and how far the share ranges."""
    summaries = []
    for members in families_of(rows, lambda row: row.budget):
        shares = [row.share for row in members if not math.isnan(row.share)]
        summaries.append(
            ScreenSummary(
                budget=members[0].budget,
                games=len(members),
                raw=sum(row.tier != "low" for row in members),
                merged_state=sum(row.merged_tier_state not in ("low", None) for row in members),
                merged_game=sum(row.merged_tier_game not in ("low", None) for row in members),
                share_min=min(shares, default=NAN),
                share_max=max(shares, default=NAN),
            )
        )
    return tuple(summaries)
