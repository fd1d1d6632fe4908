"""The methods paragraph of a paper, sentence by sentence, each written from what was found in the data.

A sentence says what these data show. Where they cannot show it (levels that were not recorded, a floor whose levels
are unknown), the sentence says so or is left out; nothing is taken from what a study is usually like.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gapfloor.analysis.rows import ComparisonRow, GapRow
from gapfloor.escape import clean_text, escape_markdown, escape_tex
from gapfloor.plan.lock import NO_KEY
from gapfloor.report.bibliography import WORKS, to_bibtex
from gapfloor.report.findings import TEST, TRAIN, agent_name
from gapfloor.report.source import ReportSource
from gapfloor.text_tables import counted


@dataclass(frozen=True)
class MethodsClause:
    """One sentence, without its final stop."""

    topic: str
    text: str
    cites: tuple[str, ...] = ()


@dataclass(frozen=True)
class Methods:
    """A methods paragraph."""

    clauses: tuple[MethodsClause, ...]

    def text(self) -> str:
        """For a terminal or an e-mail."""
        return " ".join(clean_text(_with_names(clause)) for clause in self.clauses) + "\n"

    def markdown(self) -> str:
        """For a README or a model card."""
        return " ".join(escape_markdown(clean_text(_with_names(clause))) for clause in self.clauses) + "\n"

    def tex(self) -> str:
        r"""For a paper: works are cited by \cite, with the entries of `bibtex`."""
        sentences = []
        for clause in self.clauses:
            cited = f"~\\cite{{{','.join(clause.cites)}}}" if clause.cites else ""
            sentences.append(f"{escape_tex(clause.text)}{cited}.")
        return "\n".join(sentences) + "\n"

    def bibtex(self) -> str:
        """The entries that `tex` cites."""
        return to_bibtex(key for clause in self.clauses for key in clause.cites)

    def of(self, topic: str) -> str:
        """The sentences about a topic."""
        return " ".join(_with_names(clause) for clause in self.clauses if clause.topic == topic)


def build_methods(source: ReportSource) -> Methods:
    """The paragraph for a report's source."""
    return Methods(
        tuple(
            clause
            for part in (_design, _rules, _levels, _floor, _calls, _looks, _gaps, _plan, _problems, _software)
            for clause in part(source)
        )
    )


def describe_floor_test(method: str) -> str:
    """The test behind the calls against a reference, in words."""
    if method == "recommended":
        return (
            "the mean over runs minus the floor, with separate degrees of freedom for runs and floor episodes "
            "(Behrens-Fisher), wider where run values may be skewed, Holm over games; TOST for equivalence"
        )
    return "Welch t of run values against floor episodes, Holm over games; TOST for equivalence"


def describe_gap_test(method: str) -> str:
    """The test behind the calls of gaps, in words."""
    if method == "recommended":
        return "gap adjusted for the floor on the same levels, runs and levels crossed, Holm over games"
    return "per-run Welch on episodes, Fisher over runs, Holm over games; percentile bootstrap over runs"


def _design(source: ReportSource) -> Iterator[MethodsClause]:
    findings = source.findings
    summary = findings.source
    rows = findings.results.floor_comparisons or findings.results.gaps
    if not rows:
        return
    sizes = {row.n for row in rows}
    per = f"{_either(list(sizes))} runs" if sizes != {1} else "1 run"
    budgets = [budget for budget in findings.budgets if budget]
    at = f" at {_listed(budgets)}" if budgets else ""
    text = (
        f"We evaluated {counted(summary.n_runs, 'run')} of {_listed([agent_name(a) for a in summary.agents])} on "
        f"{counted(len(findings.all_envs), 'game')} ({_listed([findings.name(env) for env in findings.all_envs])})"
        f"{at}, {per} per game{' and budget' if len(budgets) > 1 else ''}, in {summary.n_episodes:,} episodes"
    )
    engines = [engine for engine in source.provenance.engines if engine.startswith("procgen")]
    yield MethodsClause("design", text, ("cobbe2020",) if engines else ())
    provenance = source.provenance
    is_uneven = any(problem.kind in ("missing", "unbalanced") for problem in findings.results.problems)
    if not provenance.episodes_per_draw or is_uneven:
        return
    if provenance.repeats:
        times = " or ".join({1: "once", 2: "twice"}.get(n, f"{n} times") for n in provenance.repeats)
        yield MethodsClause(
            "design", f"Every run played every level of each level set {times} under each rule (a census)"
        )
        return
    yield MethodsClause(
        "design",
        f"Every run played {counted(len(provenance.draws), 'draw')} of {_either(provenance.episodes_per_draw)} "
        "episodes under each rule on each level set",
    )


def _rules(source: ReportSource) -> Iterator[MethodsClause]:
    findings = source.findings
    others = [rule for rule in findings.rules if rule not in (findings.primary, findings.plan.reference)]
    also = f", and for comparison {_listed(others)}" if others else ""
    # Only in a store has gapfloor itself applied the rule; a file's label is what its author says.
    if source.provenance.engines:
        yield MethodsClause("rule", f"Actions were chosen by the rule {findings.primary}{also}")
    else:
        yield MethodsClause(
            "rule",
            f"Actions were chosen by the rule {findings.primary}{also}, according to the labels of the episode file",
        )


def _levels(source: ReportSource) -> Iterator[MethodsClause]:
    findings = source.findings
    levels = source.provenance.levels
    if not findings.source.has_level_seeds:
        yield MethodsClause(
            "levels",
            "The episodes do not record their levels, so it could not be verified that the held-out levels are held "
            "out",
        )
        return
    if TRAIN not in levels or TEST not in levels:
        return
    where = f"training levels {levels[TRAIN]} and held-out levels {levels[TEST]}"
    shared = [p for p in findings.results.problems if p.kind == "levels" and "both as training" in p.what]
    if shared:
        yield MethodsClause("levels", f"Policies played {where}, but some levels were played as both")
    else:
        yield MethodsClause("levels", f"Policies played {where}; no level was played as both")


def _floor(source: ReportSource) -> Iterator[MethodsClause]:
    findings = source.findings
    rows = [row for row in findings.results.floors if row.reference == findings.plan.reference]
    if not rows:
        yield MethodsClause("floor", "There is no floor, so no return could be compared with chance")
        return
    policy = "uniformly random actions" if findings.plan.reference == "uniform" else findings.plan.reference
    same = {
        True: ", on the levels that the policies played (verified by level seed)",
        False: ", not on the same levels as the policies",
        None: "; whether it played the levels of the policies is not recorded",
    }[findings.same_draws]
    sizes = _either(list({row.n for row in rows}))
    yield MethodsClause(
        "floor",
        f"The floor is the mean return of {policy} over {sizes} episodes per game and level set{same}",
    )
    missing = [problem for problem in findings.results.problems if problem.kind == "no floor"]
    if missing:
        yield MethodsClause(
            "floor", f"There is no floor for {_listed([problem.where for problem in missing])}"
        )


def _calls(source: ReportSource) -> Iterator[MethodsClause]:
    findings, plan = source.findings, source.findings.plan
    rows = findings.results.floor_comparisons
    if not rows:
        return
    level = f"at a family-wise level of {plan.alpha:g}"
    if plan.floor_method == "recommended":
        yield MethodsClause(
            "calls",
            "The mean over runs was compared with the floor by the Behrens-Fisher test; the floor's mean is bounded as "
            "for rare successes, by one more episode at the highest or lowest return that was seen",
            ("fisher1935", "clopper1934"),
        )
        yield from _widened(rows)
        yield MethodsClause(
            "calls",
            f"Comparisons were corrected over the games of a family by Holm's procedure {level}; each interval is at "
            "the level at which Holm's procedure tested it, and excludes zero exactly when a call is made",
            ("holm1979",),
        )
    else:
        yield MethodsClause(
            "calls",
            "The run values were compared with the floor's episodes by Welch's two-sided test",
            ("welch1947",),
        )
        yield MethodsClause(
            "calls",
            f"Comparisons were corrected over the games of a family by Holm's procedure {level}",
            ("holm1979",),
        )
    yield MethodsClause(
        "calls",
        f"Comparisons that were not significant were tested for equivalence (two one-sided tests, {_margins(rows)}, "
        "not corrected over games)",
        ("schuirmann1987",),
    )
    yield from _exceptions(rows, plan.looks[0] if plan.looks else plan.least_runs, plan.floor_method)


def _widened(rows: Sequence[ComparisonRow]) -> Iterator[MethodsClause]:
    """How many intervals were widened because the shape of the run values asked for it."""
    tested = [row for row in rows if row.call != "not tested"]
    right = sum(row.widened in ("upper", "both") for row in tested)
    left = sum(row.widened in ("lower", "both") for row in tested)
    for count, end, reason in (
        (right, "upper", "right-skewed run values could not be ruled out"),
        (left, "lower", "run values were left-skewed"),
    ):
        if count:
            yield MethodsClause(
                "calls",
                f"The {end} limit of {count} of {counted(len(tested), 'interval')} was moved outwards because {reason} "
                "(a correction for skewness)",
                ("johnson1978",),
            )


def _exceptions(rows: Sequence[ComparisonRow], least: int, method: str) -> Iterator[MethodsClause]:
    untested = [row for row in rows if row.call == "not tested"]
    few = [row for row in untested if row.n < least]
    if few:
        yield MethodsClause(
            "not tested",
            f"{counted(len(few), 'comparison')} with fewer than {least} different runs "
            f"{'was' if len(few) == 1 else 'were'} not tested",
        )
    others = [row for row in untested if row not in few]
    if others:
        yield MethodsClause(
            "not tested",
            f"{counted(len(others), 'comparison')} could not be called "
            f"({_listed(sorted({row.decision.reason for row in others}))})",
        )
    copies = sum({(row.game, row.mode, row.budget): row.n_copies for row in rows}.values())
    if copies and method == "recommended":
        repeat = "repeats another run was" if copies == 1 else "repeat another run were"
        yield MethodsClause("copies", f"{counted(copies, 'run')} that {repeat} left out of the calls")


def _looks(source: ReportSource) -> Iterator[MethodsClause]:
    looks = source.findings.plan.looks
    if looks:
        yield MethodsClause(
            "looks",
            f"Runs were added in a group-sequential design with looks at {_listed(list(map(str, looks)))} runs; each "
            "game spends its level by O'Brien and Fleming's function",
            ("obrien1979", "lan1983"),
        )


def _gaps(source: ReportSource) -> Iterator[MethodsClause]:
    plan, rows = source.findings.plan, source.findings.results.gaps
    if not rows:
        return
    if plan.gap_method != "recommended":
        yield MethodsClause(
            "gaps",
            "Gaps (training minus held-out return) were tested per run by Welch's test, combined over runs by Fisher's "
            "method and corrected over games by Holm's procedure",
            ("fisher1932", "holm1979"),
        )
        yield MethodsClause(
            "gaps",
            f"Their {plan.confidence:.0%} intervals are percentile intervals of {plan.resamples:,} bootstrap resamples "
            f"of runs (seed {plan.seed})",
            ("efron1993",),
        )
        return
    tested = [row for row in rows if row.call != "not tested"]
    if tested:
        yield MethodsClause(
            "gaps",
            "Gaps (training minus held-out return) were tested for new runs on new levels, with the floor's return on "
            "a level as a measure of its difficulty (a control variate), runs and levels crossed over "
            f"{_common_levels(tested)}, and Holm's procedure over games",
            ("cornfield1956", "holm1979"),
        )
    if len(tested) < len(rows):
        reasons = sorted({f"({row.decision.reason})" for row in rows if row.call == "not tested"})
        yield MethodsClause(
            "gaps", f"{counted(len(rows) - len(tested), 'gap')} could not be tested {' or '.join(reasons)}"
        )


def _plan(source: ReportSource) -> Iterator[MethodsClause]:
    plan = source.findings.plan
    rows = (*source.findings.results.floor_comparisons, *source.findings.results.gaps)
    digest = f"SHA-256 {plan.hash[:12]}"
    if plan.status == "exploratory":
        yield MethodsClause("plan", "No analysis plan was locked, so every result is exploratory")
        return
    seen = (
        "when none of its cells had been played"
        if not plan.cells_seen
        else f"after {counted(plan.cells_seen, 'cell')} of the data had been played"
    )
    # Only a count is evidence; a declared number is what the authors say.
    source_of_count = (
        ", as its authors declare" if plan.seen_in.startswith("declared") else f" ({plan.seen_in})"
    )
    yield MethodsClause(
        "plan",
        f"The analysis plan ({digest}) was locked at {plan.locked_at}, {seen}{source_of_count}; its results are "
        f"{plan.status}. {NO_KEY}" + (f"; Git commit {plan.commit} held the plan" if plan.commit else ""),
    )
    if plan.leaves_open:
        yield MethodsClause("plan", f"It does not fix the {' or the '.join(plan.leaves_open)}")
    if plan.earlier_locks:
        yield MethodsClause("plan", f"It had been locked before: {'; '.join(plan.earlier_locks)}")
    outside = sum(row.status == "exploratory" for row in rows)
    if outside:
        yield MethodsClause(
            "plan",
            f"{outside} of {counted(len(rows), 'test')} {'is' if outside == 1 else 'are'} outside the plan and "
            "exploratory",
        )
    for addendum in plan.addenda:
        yield MethodsClause(
            "plan", f"The addendum {addendum.name} was locked at {addendum.locked_at} ({addendum.status})"
        )


def _problems(source: ReportSource) -> Iterator[MethodsClause]:
    missing = sum(problem.kind == "missing" for problem in source.findings.results.problems)
    uneven = sum(problem.kind == "unbalanced" for problem in source.findings.results.problems)
    found = [
        f"{n:,} {words}"
        for n, words in ((missing, "missing"), (uneven, "with an unusual number of episodes or other draws"))
        if n
    ]
    if found:
        yield MethodsClause("problems", f"Among the cells, {_listed(found)}; the analysis lists them")


def _software(source: ReportSource) -> Iterator[MethodsClause]:
    provenance = source.provenance
    if provenance.verification is not None:
        yield MethodsClause("verification", provenance.verification.sentence.rstrip("."))
    others = [f"{name} {version}" for name, version in provenance.versions.items() if name != "gapfloor"]
    engines = f"; the engine was {_listed(list(provenance.engines))}" if provenance.engines else ""
    used = f"{', '.join(others)}" if others else "no further packages"
    yield MethodsClause(
        "software",
        f"The analysis was made with gapfloor {provenance.versions['gapfloor']} ({used}){engines}",
        ("gapfloor",),
    )


def _margins(rows: Sequence[ComparisonRow]) -> str:
    found = sorted(
        {round(row.equivalence.margin, 3) for row in rows if not math.isnan(row.equivalence.margin)}
    )
    if not found:
        return "no margin"
    return f"margin {found[0]:g}" if len(found) == 1 else f"margins {found[0]:g} to {found[-1]:g}"


def _common_levels(rows: Sequence[GapRow]) -> str:
    sizes = [row.n_levels for row in rows]
    train, test = (sorted({size[at] for size in sizes}) for at in (0, 1))
    return f"{_span(train)} training and {_span(test)} held-out levels"


def _span(values: Sequence[int]) -> str:
    return f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}"


def _either(values: Sequence[int]) -> str:
    ordered = [f"{value:,}" for value in sorted(values)]
    return " or ".join(ordered) if len(ordered) < 3 else f"{ordered[0]} to {ordered[-1]}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else "nothing"


def _with_names(clause: MethodsClause) -> str:
    names = [WORKS[key].short for key in clause.cites if WORKS[key].short]
    cited = f" ({'; '.join(names)})" if names else ""
    return f"{clause.text}{cited}."
