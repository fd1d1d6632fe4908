"""The verdict on each game in plain words.

It says what was measured, by which rule, against which floor, what the gap supports and what it does not.

Every sentence follows from calls and intervals of the analysis by the rules below; nothing is weighed by hand. The
sentences themselves are in `templates/verdicts.j2` and `templates/headline.j2`.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.rows import ComparisonRow, GapRow, SensitivityRow
from gapfloor.report.findings import MERGED, TEST, TRAIN, Findings, GameFindings, at_budget
from gapfloor.report.text_templates import listed, template
from gapfloor.statistics.sentences import (
    FLOOR_SHARE,
    may_say_new_levels_cost,
    may_say_training_levels_learnt,
)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is said about one game at one budget."""

    place: GameFindings
    test: ComparisonRow | None
    """The held-out comparison with the floor under the primary rule."""
    gap: GapRow | None
    badge: str
    sentence: str
    """What was measured, by which rule, against which floor."""
    supports: str
    """What the gap supports, as the end of "supports ..."."""
    does_not: str
    """What it does not support, as the end of "does not support ..."."""
    reason: str
    """Why the gap may not be read as generalization; empty where it may."""
    references: tuple[ComparisonRow, ...]
    """The held-out comparisons with references that see nothing, under the primary rule."""
    remarks: tuple[str, ...]

    @property
    def call(self) -> str:
        """The call of the held-out comparison."""
        return self.test.call if self.test else "not tested"


@functools.lru_cache(maxsize=1)  # page, card and summary ask for the same ones
def build_verdicts(findings: Findings) -> tuple[Verdict, ...]:
    """One verdict per game and budget, the main budget first."""
    return tuple(_verdict(place) for budget in findings.main_first for place in findings.places(budget))


def headline(findings: Findings) -> str:
    """The report in a few sentences: the calls of every budget, the main one first, and of the second rule."""
    found = [
        counts
        for budget in findings.main_first
        for counts in findings.call_counts(budget, findings.primary, TEST)
    ]
    if not found:
        return "These data hold no held-out return together with a random floor, so nothing can be said about chance."
    if len(found) == 1 and found[0].games == 1:
        # One game needs no counting: its own sentence is the report.
        only = next(each for each in build_verdicts(findings) if each.place.budget == found[0].budget)
        where = f"{only.place.name}{at_budget(only.place.budget)}"
        return f"{where}: {only.sentence[:1].lower()}{only.sentence[1:]}"
    said = []
    for counts in found:
        others = findings.call_counts(counts.budget, findings.secondary, TEST) if findings.secondary else []
        games = (
            findings.name(place.env)
            for place in findings.places(counts.budget)
            if place.env.agent in ("", counts.agent) and place.comparison(findings.primary, TEST)
        )
        words = template("headline.j2").render(
            findings=findings,
            counts=counts,
            second=next((each for each in others if each.agent == counts.agent), None),
            game=next(games) if counts.games == 1 else "",
        )
        said.append(words.strip())
    return " ".join(said)


def decision(findings: Findings) -> str:
    """Which gaps of the main budget may be read as generalization gaps; empty where no gap was measured."""
    by_reason: dict[str, list[str]] = {}
    for verdict in build_verdicts(findings):
        if verdict.gap and verdict.place.budget == findings.main_budget:
            by_reason.setdefault(verdict.reason, []).append(verdict.place.name)
    readable = by_reason.pop("", [])
    others = [f"{listed(names)} ({reason})" for reason, names in by_reason.items()]
    return template("decision.j2").render(readable=readable, others=others).strip()


def _verdict(place: GameFindings) -> Verdict:
    findings = place.findings
    remarks: list[str] = []
    test, train = (place.comparison(findings.primary, level_set) for level_set in (TEST, TRAIN))
    gap, other = place.gap(findings.primary), place.row("sensitivity", rule=findings.primary, quantity=TEST)
    transfers, levels = _reach(findings, test, gap, other) if test and gap else (False, "")
    references = tuple(
        row
        for row in findings.results.reference_comparisons
        if (findings.env_of(row), row.budget) == (place.env, place.budget)
        and (row.rule, row.level_set) == (findings.primary, TEST)
        and row.reference != "upper"
    )
    unbeaten = [row for row in references if row.call != "above"] if test and test.call == "above" else []
    case = "unbeaten" if unbeaten else _case(test, train, gap, transfers=transfers)
    words: Any = template("verdicts.j2").make_module(
        {
            "findings": findings, "test": test, "train": train, "gap": gap, "other": other, "unbeaten": unbeaten,
            "transfers": transfers, "levels": levels, "say": remarks.append,
            "second": place.comparison(findings.secondary, TEST) if findings.secondary else None,
            "merged": place.comparison(MERGED, TEST), "screen": place.screen,
            "differences": place.differences(findings.primary, TEST),
            # The floor's own gap is established and a part of the gap worth naming.
            "floor_has_share": gap is not None
            and abs(gap.floor_gap) >= FLOOR_SHARE * abs(gap.gap)
            and gap.floor_gap_p < findings.plan.alpha,
        }
    )  # fmt: skip
    if test is not None:
        words.remarks()
    return Verdict(
        place=place,
        test=test,
        gap=gap,
        badge=words.badges[test.call] if test else "no floor",
        sentence=words.sentence().strip()
        if test
        else "There is no random floor on the held-out levels that these runs played.",
        supports=words.supports(case).strip(),
        does_not=words.does_not(case).strip(),
        reason="" if transfers and case not in ("unbeaten", "shared") else words.reason(case).strip(),
        references=references,
        remarks=tuple(remarks),
    )


def _case(
    test: ComparisonRow | None, train: ComparisonRow | None, gap: GapRow | None, *, transfers: bool
) -> str:
    """The case of `verdicts.j2` that says what the gap supports."""
    if test is None or gap is None:
        return "no floor" if test is None else "no gap"
    if test.call == "not tested" or gap.n_shared:
        return "not tested" if test.call == "not tested" else "shared"
    is_trained = train is not None and train.call == "above"
    if test.call == "above":
        if gap.call == "not tested":
            return "gap not tested"
        if not gap.levels_differ:
            return "open gap"
        if gap.gap < 0:
            return "negative gap"
        may_cost = may_say_new_levels_cost(gap.is_established, train="above", test="above")
        return "cost" if is_trained and transfers and may_cost else "gap"
    if test.call == "below":
        return "below"
    if is_trained:
        is_learnt = may_say_training_levels_learnt(gap.is_established, train="above", test=test.call)
        return "learnt" if is_learnt else "not learnt"
    return "differ" if gap.levels_differ else "nothing"


def _reach(
    findings: Findings, test: ComparisonRow, gap: GapRow, other: SensitivityRow | None
) -> tuple[bool, str]:
    """Whether held-out return may be said to transfer to new levels, and the levels that the sentence is about.

    A call is about the levels that were played. About new levels of the generator it takes the test that has runs and
    levels crossed, and level sets that are known to be disjoint.
    """
    if gap.n_shared is None:
        return False, "the levels that the data call held-out (they do not say which levels were played)"
    n_levels = gap.n_levels_played[1]
    levels = f"these {n_levels} held-out levels" if n_levels > 1 else "this one held-out level"
    if other is None or not other.generator_p_adjusted < findings.plan.alpha or other.generator.value <= 0:
        return False, levels
    return test.call == "above", f"{levels} and new levels of the generator"
