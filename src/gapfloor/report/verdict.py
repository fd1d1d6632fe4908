"""The verdict on each game in plain words.

It says what was measured, by which rule, against which floor, what the gap supports and what it does not.

Every sentence follows from calls and intervals of the analysis by the rules below; nothing is weighed by hand.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

from gapfloor.analysis.rows import CallCount, ComparisonRow, GapRow, SensitivityRow
from gapfloor.report.findings import MERGED, TEST, TRAIN, Env, Findings, agent_name
from gapfloor.statistics.sentences import (
    FLOOR_SHARE,
    may_say_new_levels_cost,
    may_say_training_levels_learnt,
    may_say_transfers,
)
from gapfloor.tables.cells import Cell, count_word, counted, estimate, fixed, is_number, p_value

Tone = Literal["supported", "open", "unsupported"]

_AGAINST_CHANCE = {
    "above": "above chance",
    "below": "worse than random play",
    "equivalent": "equivalent to random play",
    "not distinguishable": "not distinguishable from random play",
    "not tested": "not tested against random play",
}
_BADGES = {
    "above": "above the floor",
    "below": "below the floor",
    "equivalent": "equivalent to the floor",
    "not distinguishable": "not distinguishable from the floor",
    "not tested": "not tested",
}
_AGAINST_REFERENCE = {
    "below": "below it",
    "equivalent": "equivalent to it",
    "not distinguishable": "not distinguishable from it",
    "not tested": "not tested against it",
}
#: With a larger share of the variance between levels a census saves at least a tenth of the variance.
_LEVELS_MATTER = 0.1
#: Fewer runs than this say nothing about the agent that was trained.
_FEWEST_RUNS = 3


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is said about one game at one budget."""

    env: Env
    name: str
    budget: str
    tone: Tone
    badge: str
    sentence: str
    """What was measured, by which rule, against which floor."""
    supports: str
    """What the gap supports, as the end of "supports ..."."""
    does_not: str
    """What it does not support, as the end of "does not support ..."."""
    remarks: tuple[str, ...]
    status: str


@functools.lru_cache(maxsize=1)  # page, card and summary ask for the same ones
def build_verdicts(findings: Findings) -> tuple[Verdict, ...]:
    """One verdict per game and budget, the main budget first."""
    return tuple(
        _verdict(findings, place.env, budget)
        for budget in findings.main_first
        for place in findings.places(budget)
    )


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
        budget = found[0].budget
        only = next(verdict for verdict in build_verdicts(findings) if verdict.budget == budget)
        return (
            f"{only.name}{f' at {budget}' if budget else ''}: {only.sentence[:1].lower()}{only.sentence[1:]}"
        )
    return " ".join(_counts_sentence(findings, counts) for counts in found)


def _second_counts(findings: Findings, counts: CallCount) -> CallCount | None:
    """The calls of the same runs under the second rule."""
    found = findings.call_counts(counts.budget, findings.secondary, TEST) if findings.secondary else []
    return next((each for each in found if each.agent == counts.agent), None)


def _one_game_sentence(findings: Findings, counts: CallCount) -> str:
    """The calls of a budget's only game, which need no counting."""
    budget = counts.budget
    env = next(
        env
        for env in findings.all_envs
        if env.agent in ("", counts.agent) and findings.place(env, budget).comparison(findings.primary, TEST)
    )
    at = f"At {budget}, the" if budget else "The"
    text = (
        f"{at} {findings.name(env)} runs are {_only_call(counts)} the random floor on held-out levels under "
        f"{findings.primary} actions"
    )
    second = _second_counts(findings, counts)
    if second:
        text += f"; under {findings.secondary} actions the same checkpoints are {_only_call(second)} it"
    return f"{text}."


def _only_call(counts: CallCount) -> str:
    words = (
        (counts.above, "above"),
        (counts.below, "below"),
        (counts.equivalent, "equivalent to"),
        (counts.not_tested, "not tested against"),
    )
    return next((call for n, call in words if n), "not distinguishable from")


def _counts_sentence(findings: Findings, counts: CallCount) -> str:
    if counts.games == 1:
        return _one_game_sentence(findings, counts)
    at = f" at {counts.budget}" if counts.budget else ""
    of = f"{agent_name(counts.agent or '')}: of" if not findings.is_one_pool else "Of"
    text = (
        f"{of} {count_word(counts.games).plain} games{at}, {_how_many(counts.above)} "
        f"{'scores' if counts.above == 1 else 'score'} above the random floor on held-out levels under "
        f"{findings.primary} actions"
    )
    rest = _other_calls(counts)
    text += f" ({', '.join(rest)})." if rest else "."
    second = _second_counts(findings, counts)
    if second:
        calls = [f"{_how_many(second.above)} above", *_other_calls(second)]
        text += f" The same checkpoints under {findings.secondary} actions: {', '.join(calls)}."
    return text


def _other_calls(counts: CallCount) -> list[str]:
    """Every call but "above" that some game has, so that the counts add up to the number of games."""
    words = (
        (counts.below, "below it"),
        (counts.equivalent, "equivalent to it"),
        (counts.not_tested, "not tested"),
        (counts.not_distinguishable, "not distinguishable from it"),
    )
    return [f"{count_word(n).plain} {call}" for n, call in words if n]


def _verdict(findings: Findings, env: Env, budget: str) -> Verdict:
    name = findings.name(env)
    test = findings.place(env, budget).comparison(findings.primary, TEST)
    gap = findings.place(env, budget).gap(findings.primary)
    if test is None:
        return Verdict(
            env=env,
            name=name,
            budget=budget,
            tone="open",
            badge="no floor",
            sentence="There is no random floor on the held-out levels that these runs played.",
            supports="nothing yet: a gap without a floor says neither what was learnt nor what chance gives.",
            does_not="any reading of the gap before the floor is measured on the same draws (gapfloor floor).",
            remarks=(),
            status="",
        )
    train = findings.place(env, budget).comparison(findings.primary, TRAIN)
    second = findings.place(env, budget).comparison(findings.secondary, TEST) if findings.secondary else None
    other = findings.place(env, budget).sensitivity(findings.primary, TEST)
    tone, supports, does_not = _reading(findings, test, train, gap, other)
    unbeaten = _unbeaten(findings, env, budget)
    if test.call == "above" and unbeaten:
        tone, supports, does_not = "open", "that the runs score more than uniform-random play.", unbeaten
    return Verdict(
        env=env,
        name=name,
        budget=budget,
        tone=tone,
        badge=_BADGES[test.call],
        sentence=_sentence(findings, test, second),
        supports=supports,
        does_not=does_not,
        remarks=tuple(_remarks(findings, env, budget, test, gap)),
        status=test.status,
    )


def _unbeaten(findings: Findings, env: Env, budget: str) -> str:
    """What a stricter reference that is not beaten takes away, or an empty string."""
    rows = [
        row
        for row in findings.results.reference_comparisons
        if (findings.env_of(row), row.budget) == (env, budget)
        and (row.rule, row.level_set) == (findings.primary, TEST)
        and row.reference != "upper"
        and row.call != "above"
    ]
    listed = "; ".join(
        f"{row.reference} scores {_plain(fixed(row.floor))}, and the runs are {_AGAINST_REFERENCE[row.call]}"
        for row in rows
    )
    return f"that the runs look at the level: of the references that see nothing, {listed}." if rows else ""


def _family_wise_equivalence(row: ComparisonRow, *, alpha: float) -> str:
    """What is left of "equivalent" if the equivalence tests are corrected over the games too."""
    games = f"{row.decision.family_size} games"
    p = _plain(p_value(row.equivalence.p_adjusted))
    if row.equivalence.p_adjusted < alpha:
        return f"Equivalence also holds after correction over the {games} (Holm p = {p})."
    return (
        f"Equivalence is tested for this game alone; after correction over the {games} it is not established "
        f"(Holm p = {p})."
    )


def _sentence(findings: Findings, test: ComparisonRow, second: ComparisonRow | None) -> str:
    # The call is about the runs of its look, if the plan has looks.
    runs = "run scores" if test.n == 1 else f"{count_word(test.n).plain} runs score"
    text = (
        f"With {findings.primary} actions the {runs} {_plain(fixed(test.mean))} on held-out levels "
        f"against a random floor of {_plain(fixed(test.floor))}: {_AGAINST_CHANCE[test.call]}"
    )
    if second is None:
        return text + "."
    text += f"; with {second.rule} actions the same weights score {_plain(fixed(second.mean))}, "
    if second.call == test.call:
        return text + f"also {_AGAINST_CHANCE[second.call]}."
    return text + f"{_AGAINST_CHANCE[second.call]}."


def _reading(
    findings: Findings,
    test: ComparisonRow,
    train: ComparisonRow | None,
    gap: GapRow | None,
    other: SensitivityRow | None,
) -> tuple[Tone, str, str]:
    if gap is None:
        return (
            "open",
            f"that the held-out return is {_AGAINST_CHANCE[test.call]}.",
            "any statement about a gap: training levels were not played under this rule.",
        )
    size = _gap_size(gap)
    is_open = not gap.levels_differ
    if test.call == "not tested":
        return (
            "open",
            f"nothing about the agent yet: {test.decision.label}.",
            f"any reading of the gap of {size}: the held-out return was not tested against chance.",
        )
    if gap.n_shared:
        return (
            "unsupported",
            f"that return is {_AGAINST_CHANCE[test.call]} on the levels that are called held-out; "
            f"{counted(gap.n_shared, 'level')} of them were also played as training levels.",
            f"any statement about held-out levels: the level sets overlap, so the gap of {size} does not compare new "
            "levels with training levels.",
        )
    if test.call == "above":
        return _reading_above(findings, test, train, gap, other, size)
    if test.call == "below":
        return (
            "unsupported",
            f"that play on held-out levels is worse than random play. The gap is {size}.",
            "any statement about generalization: the held-out return is below chance.",
        )
    held_out = _AGAINST_CHANCE[test.call]
    not_tested = f"was not tested ({gap.decision.reason})" if gap.call == "not tested" else ""
    if train is not None and train.call == "above" and not _is_learnt(test, train, gap):
        return (
            "open",
            "that training return is above chance; "
            f"the gap of {size} {not_tested or 'is not shown to be larger than that of the floor'}.",
            f"that any of it transfers, or that it is lost on new levels: held-out return is {held_out}.",
        )
    if train is not None and train.call == "above":
        return (
            "unsupported",
            f"that something was learnt about the training levels: the gap of {size} starts above chance.",
            f"that any of it transfers: held-out return is {held_out}.",
        )
    training = _AGAINST_CHANCE[train.call] if train else "not compared with a floor"
    both = f"training return is {training}, and so is held-out return"
    if train is None or train.call != test.call:
        both = f"training return is {training} and held-out return {held_out}"
    return (
        "unsupported" if test.call == "equivalent" else "open",
        f"only that the level sets differ by {size} under this rule."
        if not is_open
        else f"nothing yet: the gap of {size} {not_tested or 'is not established'}.",
        f"any statement about generalization: {both}.",
    )


def _gap_size(gap: GapRow) -> str:
    """The gap and, by the recommended method, what its test estimates, with the interval of that test."""
    if gap.estimate.method != "recommended":
        return _plain(estimate(gap.gap, gap.estimate.interval))
    raw = _plain(fixed(gap.gap, sign=True))
    if gap.call == "not tested":
        return raw
    tested = _plain(estimate(gap.estimate.value, gap.estimate.interval))
    if tested.split(" ")[0] == raw:
        return tested  # nothing was subtracted that the printed digits show
    # Only with slope one is the floor's whole gap subtracted, so only then is the number an excess over it.
    name = "excess over the floor's gap" if gap.slope == 1 else "adjusted for the floor's gap"
    return f"{raw} ({name}: {tested})"


def _is_learnt(test: ComparisonRow, train: ComparisonRow, gap: GapRow) -> bool:
    return may_say_training_levels_learnt(gap.is_established, train=train.decision, test=test.decision)


def _is_cost(test: ComparisonRow, train: ComparisonRow | None, gap: GapRow) -> bool:
    return train is not None and may_say_new_levels_cost(
        gap.is_established, train=train.decision, test=test.decision
    )


def _reach(
    findings: Findings, test: ComparisonRow, gap: GapRow, other: SensitivityRow | None
) -> tuple[bool, str]:
    """Whether held-out return may be said to transfer to new levels, and the levels that the sentence is about.

    A call is about the levels that were played. About new levels of the generator it takes the test that has runs and
    levels crossed, and level sets that are known to be disjoint.
    """
    if gap.n_shared is None:
        return False, "the levels that the data call held-out (they do not say which levels were played)"
    levels = f"these {gap.n_levels_played[1]} held-out levels"
    if other is None or not other.generator_p_adjusted < findings.plan.alpha or other.generator.value <= 0:
        return False, levels
    return may_say_transfers(test.decision), f"{levels} and new levels of the generator"


def _reading_above(
    findings: Findings,
    test: ComparisonRow,
    train: ComparisonRow | None,
    gap: GapRow,
    other: SensitivityRow | None,
    size: str,
) -> tuple[Tone, str, str]:
    transfers, levels = _reach(findings, test, gap, other)
    tone: Tone = "supported" if transfers else "open"
    above = f"that the policy transfers: return is above chance on {levels}"
    beyond = "the same for another rule or other levels: another rule is another policy with another gap."
    if not transfers:
        above = f"that return is above chance on {levels}"
        beyond = "that the policy transfers to new levels of the generator: the test with runs and levels crossed does "
        beyond += "not show it." if gap.n_shared is not None else "not apply without level seeds."
    if gap.call == "not tested":
        reason = f" ({gap.decision.reason})" if gap.decision.reason else ""
        return tone, f"{above}; the gap of {size} was not tested{reason}.", beyond
    if not gap.levels_differ:
        zero = "that the gap is zero: with this number of runs, any value inside the interval is possible."
        return tone, f"{above}, and the gap of {size} is not established.", zero if transfers else beyond
    if gap.gap < 0:
        return (
            tone,
            f"{above}; held-out levels gave more than training levels ({size}).",
            "that it generalizes better than it trains: the held-out levels may simply be easier.",
        )
    if _is_cost(test, train, gap) and transfers:
        # Subtracting the floor's gap takes difficulty to add to returns; the data cannot show that it does.
        assumed = (
            ", if difficulty adds the same to every policy" if gap.floor_gap_p < findings.plan.alpha else ""
        )
        return (
            tone,
            f"reading the gap of {size} as what new levels cost{assumed}: both returns are above chance.",
            beyond,
        )
    return tone, f"{above}. The gap is {size}.", beyond


def _remarks(findings: Findings, env: Env, budget: str, test: ComparisonRow, gap: GapRow | None) -> list[str]:
    remarks = []
    other = findings.place(env, budget).sensitivity(findings.primary, TEST)
    if test.n < _FEWEST_RUNS:
        remarks.append(
            "With so few runs this is about these checkpoints, not about the agent: train more seeds."
        )
    if test.call == "not distinguishable":
        if not test.equivalence.is_reachable:
            remarks.append(_unreachable(test))
        if other is not None and is_number(other.minimum_detectable):
            step = " and at Holm's first step" if test.decision.family_size > 1 else ""
            remarks.append(
                f"A difference above the floor smaller than {_plain(fixed(other.minimum_detectable))} is "
                f"missed more than one time in five at this number of runs{step}."
            )
        if other is not None and not other.is_census and other.level_variance_share > _LEVELS_MATTER:
            remarks.append(
                f"{other.level_variance_share:.0%} of the variance between episodes lies between levels. For a "
                "claim about these levels a census, which plays every level equally often, has a smaller error with "
                "the same number of episodes (gapfloor evaluate --design census)."
            )
    if test.call == "equivalent" and test.decision.family_size > 1:
        remarks.append(_family_wise_equivalence(test, alpha=findings.plan.alpha))
    is_recommended = test.delta.method == "recommended"
    strata = other.stratified_call if other is not None and is_recommended else None
    # A call at a look has its own level and its own runs, so there is nothing to compare it with.
    if strata is not None and strata != test.call and test.look is None:
        remarks.append(f"With agents as strata instead of one pool the call would be: {_BADGES[strata]}.")
    if test.n_copies and is_recommended:
        remarks.append(f"{test.decision.label.capitalize()}: runs that repeat another run do not count.")
    remarks += _agents_that_differ(findings, env, budget)
    if gap is not None:
        floor_gap = gap.floor_gap
        if (
            is_number(floor_gap)
            and is_number(gap.gap)
            and abs(floor_gap) >= FLOOR_SHARE * abs(gap.gap)
            and gap.floor_gap_p < findings.plan.alpha
        ):
            more = "more" if floor_gap > 0 else "less"
            remarks.append(
                f"Random play itself scores {_plain(fixed(abs(floor_gap)))} {more} on the training levels than on "
                "the held-out ones: that part of the difference belongs to the levels, not to the policy."
            )
        if gap.levels_differ and gap.call == "not distinguishable":
            remarks.append(
                "The played levels differ, but the gap is not established for new levels of the generator: "
                f"runs × levels p = {_plain(p_value(gap.decision.p_adjusted))} after Holm."
            )
    merged = findings.place(env, budget).comparison(MERGED, TEST)
    if merged is not None:
        remarks.append(
            f"Merging equal actions before argmax gives {_plain(fixed(merged.mean))}: "
            f"{_AGAINST_CHANCE[merged.call]}."
        )
    screen = findings.place(env, budget).screen
    if screen is not None and screen.tier != "low" and test.call == "above":
        remarks.append(
            f"Raw entropy is {screen.tier} ({_plain(fixed(screen.entropy, 2))} nats) and flags this policy, yet "
            "it is above the floor."
        )
    return remarks


def _unreachable(test: ComparisonRow) -> str:
    why = "the floor's error is too large for this margin"
    if test.floor_sem > test.equivalence.margin:
        why = "the floor's own error exceeds the margin"
    if not test.equivalence.runs_allow:
        return f"Equivalence could not have been shown: {why}, and so is the error of the mean over runs."
    return f"Equivalence could not have been shown: {why}. Measure more floor episodes."


def _agents_that_differ(findings: Findings, env: Env, budget: str) -> list[str]:
    """Pairs of agents whose held-out returns differ, Holm over pairs and games."""
    return [
        f"Agents differ: {agent_name(row.agent or '')} scores {_plain(fixed(abs(row.difference.value)))} "
        f"{'more' if row.difference.value > 0 else 'less'} than {agent_name(row.agent_b)} on held-out levels."
        for row in findings.place(env, budget).differences(findings.primary, TEST)
        if row.decision.call in ("first higher", "second higher")
    ]


def _how_many(count: int) -> str:
    return "none" if count == 0 else count_word(count).plain


def _plain(cell: Cell) -> str:
    return cell.plain
