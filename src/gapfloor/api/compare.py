"""Two agents on the same schedule: what `analyse` says of their runs, and the same question paired by level.

Over runs (these levels) the rows are the analysis's own. Beside them stands the difference for new runs on new levels,
in which what a level does to both agents cancels, and for single checkpoints the difference of these runs on new
levels. Holm's correction runs over the games that share a rule, a quantity and a budget.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from gapfloor.analysis.difference_results import AgentDifferenceResult
from gapfloor.analysis.difference_rows import agent_difference_rows
from gapfloor.analysis.grouping import Condition, RunName, RunSample, StudyEpisodes
from gapfloor.analysis.row_context import Context
from gapfloor.api.comparison_inputs import Asked, Place, Side, read_studies, take_side
from gapfloor.api.policy_campaign import play_policies
from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.plan.model import Plan, content_hash, paper_plan
from gapfloor.play.campaign import Campaign
from gapfloor.play.candidate import Entrant
from gapfloor.play.protocol import INFERENCE_BATCH, make_protocol
from gapfloor.play.workers import Progress
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules
from gapfloor.statistics.conventions import NAN
from gapfloor.statistics.crossed import (
    CrossedDifference,
    crossed_difference,
    levels_to_settle,
    runs_to_settle,
)
from gapfloor.statistics.detectable import POWER, minimum_detectable_effect
from gapfloor.statistics.families import holm
from gapfloor.text_tables import html_table, number, p_text, signed, text_table, with_error

Verdict = Literal["a higher", "b higher", "not distinguishable", "too few runs"]


@dataclass(frozen=True, kw_only=True)
class ComparisonRow:
    """One game, rule and quantity (train, test or gap)."""

    over_runs: AgentDifferenceResult
    """Agent a minus agent b, Welch over runs: the analysis's row. Estimand: these levels, new runs."""
    p_holm: float
    """p after Holm's correction over the family."""
    family_size: int
    """How many tests the family has."""
    by_level: CrossedDifference | None
    """Paired by level: new runs on new levels, and these runs on new levels. None without level seeds."""
    by_level_p_holm: float
    """p of new runs on new levels after Holm."""
    levels_p_holm: float
    """Holm over the p of these runs on new levels."""
    floor: float
    """The floor's return (its own gap for quantity gap); NaN without one."""
    verdict: Verdict
    """Over runs, after Holm."""
    minimum_detectable: float
    """The smallest difference that these runs find with 80% power at Holm's hardest step."""
    assumed_difference: float
    """The difference for which the next two are: the one asked for, or the observed one."""
    runs_needed: int | None
    """Runs of each agent that find it on these levels with 80% power; None: out of reach or unknown."""
    levels_needed: int | None
    """Levels on which these runs find it for the generator; None: these runs alone forbid it."""


@dataclass(frozen=True)
class Comparison:
    """Two agents compared."""

    agent_a: str
    """The first agent; differences are first minus second."""
    agent_b: str
    """The second agent."""
    rows: tuple[ComparisonRow, ...]
    """One row per game, budget, rule and quantity."""
    alpha: float
    """Level of the tests."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    def row(self, game: str, rule: str, quantity: str, *, budget: str | None = None) -> ComparisonRow:
        """The row of a game, rule and quantity."""
        for row in self.rows:
            over = row.over_runs
            same = (over.game, over.rule, over.quantity) == (game, rule, quantity)
            if same and budget in (None, over.budget):
                return row
        raise UsageError(f"There is no row for {game}, {rule}, {quantity}.")

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor compare --json` prints."""
        return dict(jsonable(dataclasses.asdict(self)))

    def table(self) -> tuple[list[str], list[list[str]]]:
        """The differences: over runs, and paired by level."""
        headings = [
            "game", "budget", "rule", "quantity", self.agent_a, self.agent_b, "difference", "p", "Holm",
            "by level: SE", "p", "Holm", "these runs: p", "Holm", "floor", "over runs",
        ]  # fmt: skip
        rows = []
        for row in self.rows:
            over, crossed = row.over_runs, row.by_level
            rows.append(
                [
                    over.game, over.budget, over.rule, over.quantity,
                    f"{with_error(over.test.mean_a, over.test.sem_a)} ({over.test.n_a})",
                    f"{with_error(over.test.mean_b, over.test.sem_b)} ({over.test.n_b})",
                    signed(over.test.difference), p_text(over.test.p), p_text(row.p_holm),
                    number(crossed.se) if crossed else "-", p_text(crossed.p if crossed else NAN),
                    p_text(row.by_level_p_holm), p_text(crossed.p_levels if crossed else NAN),
                    p_text(row.levels_p_holm), number(row.floor), self._words(row.verdict),
                ]
            )  # fmt: skip
        return headings, rows

    def _words(self, verdict: Verdict) -> str:
        named = {"a higher": f"{self.agent_a} higher", "b higher": f"{self.agent_b} higher"}
        return named.get(verdict, verdict)

    def settling_table(self) -> tuple[list[str], list[list[str]]]:
        """How many runs or levels would settle each difference."""
        headings = [
            "game", "budget", "rule", "quantity", "difference assumed", "detectable now", "runs each needed",
            "levels needed",
        ]  # fmt: skip
        rows = []
        for row in self.rows:
            over = row.over_runs
            n_levels = row.by_level.n_levels if row.by_level else 0
            rows.append(
                [
                    over.game, over.budget, over.rule, over.quantity, signed(row.assumed_difference),
                    number(row.minimum_detectable), _needed(row.runs_needed, over.test.n_a, over.test.n_b),
                    _needed(row.levels_needed, n_levels),
                ]
            )  # fmt: skip
        return headings, rows

    def sentences(self) -> list[str]:
        """What the columns mean and how far they reach."""
        lines = [
            f"difference: {self.agent_a} - {self.agent_b}. p: Welch over runs, for new runs on these levels. by level: "
            "paired by level, for new runs on new levels. these runs: paired by level, for exactly these runs on "
            "new levels. Holm: over the games of a rule, quantity and budget.",
            f"Needed numbers are for {POWER:.0%} power at Holm's hardest step and assume that the true difference is "
            "the one shown: where the observed one is noise they are noise too; name one that matters with --detect.",
        ]
        if any(min(row.over_runs.test.n_a, row.over_runs.test.n_b) < 2 for row in self.rows):
            lines.append(
                "An agent with one run has no run-to-run variance: those rows speak of these runs only, and their p is "
                "under 'these runs'."
            )
        return lines

    def __repr__(self) -> str:
        return "\n".join(
            [text_table(*self.table()), text_table(*self.settling_table()), *self.sentences(), *self.notes]
        )

    def _repr_html_(self) -> str:
        return html_table(*self.table()) + html_table(*self.settling_table())


def compare(
    a: Any,
    b: Any = None,
    *,
    agents: tuple[str, str] | None = None,
    budgets: Sequence[str] = (),
    games: Sequence[str] = (),
    rules: Sequence[str] = (),
    detect: float | None = None,
    batch: int = INFERENCE_BATCH,
    device: str = "cpu",
    workers: int | None = None,
    progress: Progress | None = None,
    store: str | Path | None = None,
    **protocol: Any,
) -> Comparison:
    """Agent a minus agent b on the same schedule.

    Args:
        a: a store, an episode file, runs' folders or checkpoints (a pattern or a list), or `package.module:factory`.
        b: the same for the other agent; None: both agents are in `a`, and `agents` names them.
        agents: names of the two: which to take of recorded episodes, or what to call policies.
        budgets: one budget for both, or one per agent. Empty: every budget that both have.
        games: empty for all.
        rules: empty for all that were recorded; policies are then played under sampled and greedy.
        detect: the difference for which needed runs and levels are computed; None: the observed ones.
        batch: inference batch size.
        device: where networks run.
        workers: number of processes.
        progress: what hears of episodes and cells.
        store: where policies' cells are kept; None: they are forgotten.
        protocol: the settings that `evaluate` takes.
    """
    if b is None and agents is None:
        raise UsageError("One source holds both agents: name them, e.g. --agents impala,fpn.")
    if agents is not None and b is None and agents[0] == agents[1]:
        raise UsageError(f"The agent {agents[0]} is named twice: name two agents.")
    asked = Asked(agents, tuple(budgets), tuple(games), tuple(rules))
    if len(asked.budgets) > 2:
        raise UsageError("--budgets takes one budget, or one per agent.")
    sources = [a] if b is None else [a, b]
    plan = paper_plan()
    with open_store(store) as opened:

        def play(entrants: Mapping[str, Sequence[Entrant]], rule_names: Sequence[str]) -> Campaign:
            return play_policies(
                entrants,
                rules=parse_rules(rule_names),
                protocol=make_protocol(list(entrants), **protocol),
                store=opened,
                batch=batch,
                device=device,
                workers=workers,
                progress=progress,
            )

        studies, notes = read_studies(sources, asked, plan=plan, play=play)
    return _compare(sources, studies, asked, detect, plan, notes)


def _compare(
    sources: Sequence[Any],
    studies: Sequence[StudyEpisodes],
    asked: Asked,
    detect: float | None,
    plan: Plan,
    notes: list[str],
) -> Comparison:
    both = list(zip([*studies, studies[-1]], [*sources, sources[-1]], strict=True))[:2]
    sides = [take_side(study, asked, i, source=_short(source)) for i, (study, source) in enumerate(both)]
    joined = join_sides(sides[0], sides[1])
    has_levels = _check_schedules(joined)
    if not has_levels:
        notes.append("The episodes do not say their levels: nothing could be paired by level.")
    context = Context(joined, plan, content_hash(plan), None)
    differences = agent_difference_rows(context)
    sizes = Counter(_family(over) for over in differences)
    rows = [
        _row(joined, over, detect, alpha=plan.floor.alpha, family_size=sizes[_family(over)])
        for over in differences
    ]
    return Comparison(
        joined.agents[0], joined.agents[1], _correct(rows, plan.floor.alpha), plan.floor.alpha, tuple(notes)
    )


def join_sides(a: Side, b: Side) -> StudyEpisodes:
    """One study that holds both agents under two names, at the places that both have."""
    pairs = _pair_places(a, b)
    names = _names(a, b, pairs)
    policies: dict[Condition, dict[RunName, RunSample]] = {}
    for (place_a, place_b), budget in pairs.items():
        for rule, level_set in a.runs[place_a]:
            if (rule, level_set) not in b.runs[place_b]:
                continue
            condition = Condition(place_a[0], place_a[1], budget, rule, level_set)
            policies[condition] = {
                RunName(name, run.seed): sample
                for name, runs in zip(names, (a.runs[place_a], b.runs[place_b]), strict=True)
                for run, sample in runs[rule, level_set].items()
            }
    if not policies:
        raise UsageError(
            f"{a.agent} and {b.agent} were not measured under the same rule on the same level set."
        )
    kept_rules = {condition.rule for condition in policies}
    references = {**b.study.references, **a.study.references}
    return dataclasses.replace(
        a.study,
        policies=policies,
        references=references,
        budgets=tuple(dict.fromkeys(pairs.values())),
        rules=tuple(dict.fromkeys(rule for rule in (*a.study.rules, *b.study.rules) if rule in kept_rules)),
        draws=tuple(dict.fromkeys((*a.study.draws, *b.study.draws))),
        agents=names,
    )


def _pair_places(a: Side, b: Side) -> dict[tuple[Place, Place], str]:
    """Which place of a belongs to which of b, with the budget's label: the same budget, or the only one of each."""
    pairs: dict[tuple[Place, Place], str] = {}
    for budget in (*a.study.budgets, *sorted({p[2] for p in a.runs} - set(a.study.budgets))):
        for place in (p for p in a.runs if p[2] == budget and p in b.runs):
            pairs[place, place] = place[2]
    if pairs:
        return pairs
    for place in a.runs:
        mine = [p for p in a.runs if p[:2] == place[:2]]
        theirs = [p for p in b.runs if p[:2] == place[:2]]
        if len(mine) > 1 or len(theirs) > 1:
            raise UsageError(
                f"{place[0]} has several budgets and none that both agents share: name one an agent, as "
                "--budgets 8M,25M."
            )
        if theirs:
            pairs[place, theirs[0]] = " v. ".join(part or "none" for part in (place[2], theirs[0][2]))
    if not pairs:
        raise UsageError(
            f"No game was played by both agents: {a.agent} has {', '.join(sorted({p[0] for p in a.runs}))}, {b.agent} "
            f"has {', '.join(sorted({p[0] for p in b.runs}))}."
        )
    return pairs


def _names(a: Side, b: Side, pairs: dict[tuple[Place, Place], str]) -> tuple[str, str]:
    if a.agent != b.agent:
        return a.agent, b.agent
    budgets = {(first[2], second[2]) for first, second in pairs}
    if len(budgets) == 1:
        first, second = next(iter(budgets))
        if first != second:
            return f"{a.agent} {first}".strip(), f"{b.agent} {second}".strip()
    return f"{a.agent} (A)", f"{b.agent} (B)"


def _check_schedules(study: StudyEpisodes) -> bool:
    """Refuse runs that did not play the same levels in the same draws; False where levels are unknown."""
    known = True
    for condition, runs in study.policies.items():
        (first, expected), *others = runs.items()
        for run, sample in others:
            same = sample.draws == expected.draws and sample.returns.size == expected.returns.size
            both_known = sample.levels.size and expected.levels.size
            if same and both_known:
                same = np.array_equal(sample.levels, expected.levels) and np.array_equal(
                    sample.draw, expected.draw
                )
            if not same:
                raise UsageError(
                    f"{first} and {run} did not play the same schedule on {condition.game}, {condition.rule}, "
                    f"{condition.level_set} ({_schedule(expected)} against {_schedule(sample)}): evaluate both with "
                    "the same draws, episodes and levels."
                )
            known = known and bool(both_known)
    return known


def _schedule(sample: RunSample) -> str:
    return f"{sample.returns.size} episodes in the draws {', '.join(sample.draws)}"


def _family(over: AgentDifferenceResult) -> tuple[str, ...]:
    """Rows that share one correction: the games of a rule, quantity and budget."""
    return over.mode, over.budget, over.rule, over.quantity


def _row(
    study: StudyEpisodes, over: AgentDifferenceResult, detect: float | None, *, alpha: float, family_size: int
) -> ComparisonRow:
    place = (over.game, over.mode, over.budget)
    level_sets = ("train", "test") if over.quantity == "gap" else (over.quantity,)
    runs = [study.runs(*place, over.rule, name) for name in level_sets]
    # A run that was measured on one half only has no gap.
    shared = set(runs[0]).intersection(*runs)
    crossed = crossed_difference(
        [
            (sign, *_both({run: half[run] for run in shared}, study.agents))
            for half, sign in zip(runs, (1.0, -1.0), strict=False)
        ]
    )
    floors = [study.floor(*place, name) for name in level_sets]
    floor = NAN
    if all(found is not None for found in floors):
        means = [found.mean for found in floors if found is not None]
        floor = means[0] - means[1] if len(means) == 2 else means[0]
    assumed = over.test.difference if detect is None else math.copysign(detect, over.test.difference)
    sds = [over.test.sem_a * math.sqrt(over.test.n_a), over.test.sem_b * math.sqrt(over.test.n_b)]
    se = math.hypot(over.test.sem_a, over.test.sem_b)
    return ComparisonRow(
        over_runs=over,
        p_holm=NAN,
        family_size=family_size,
        by_level=crossed,
        by_level_p_holm=NAN,
        levels_p_holm=NAN,
        floor=floor,
        verdict="too few runs",
        minimum_detectable=minimum_detectable_effect(
            se=se, df=over.test.df, alpha=alpha, family_size=family_size
        )
        if math.isfinite(se)
        else NAN,
        assumed_difference=assumed,
        runs_needed=runs_to_settle(sds[0], sds[1], assumed, family_size=family_size, alpha=alpha),
        levels_needed=levels_to_settle(crossed, assumed, family_size=family_size, alpha=alpha)
        if crossed
        else None,
    )


def _both(runs: dict[RunName, RunSample], agents: tuple[str, ...]) -> tuple[list[Any], list[Any]]:
    """Each agent's runs in the order of their seeds, which is the same on every level set."""
    first, second = (
        [(runs[run].returns, runs[run].levels) for run in sorted(runs) if run.agent == agent]
        for agent in agents
    )
    return first, second


def _correct(rows: Sequence[ComparisonRow], alpha: float) -> tuple[ComparisonRow, ...]:
    families: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(rows):
        families.setdefault(_family(row.over_runs), []).append(i)
    corrected = list(rows)
    for members in families.values():
        over_runs = holm([rows[i].over_runs.test.p for i in members])
        crossed = holm([found.p if (found := rows[i].by_level) else NAN for i in members])
        levels = holm([found.p_levels if (found := rows[i].by_level) else NAN for i in members])
        for i, p, q, r in zip(members, over_runs, crossed, levels, strict=True):
            corrected[i] = dataclasses.replace(
                rows[i],
                p_holm=float(p),
                by_level_p_holm=float(q),
                levels_p_holm=float(r),
                verdict=_verdict(float(p), rows[i].over_runs.test.difference, alpha),
            )
    return tuple(corrected)


def _verdict(p_holm: float, difference: float, alpha: float) -> Verdict:
    if math.isnan(p_holm):
        return "too few runs"
    if p_holm >= alpha:
        return "not distinguishable"
    return "a higher" if difference > 0 else "b higher"


def _needed(needed: int | None, *now: int) -> str:
    if needed is None:
        return "-"
    here = " and ".join(str(n) for n in now)
    return f"enough ({here})" if needed <= min(now) else f"{needed} (now {here})"


def _short(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"the {type(source).__name__.lower()}"
