"""Phrases that captions share, made from the data: how many runs, draws, episodes, and under which plan."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gapfloor.analysis.rows import Row
from gapfloor.escape import escape_tex
from gapfloor.report.findings import Env, Findings
from gapfloor.tables.cells import count_word
from gapfloor.tables.table import Text
from gapfloor.text_tables import counted


@dataclass(frozen=True)
class FloorWords:
    """How captions describe the comparisons with the floor by one method."""

    header: Text
    """Of the column with the difference and its interval."""
    interval: str
    call: str


@dataclass(frozen=True)
class GapWords:
    """How captions describe the tests of gaps by one method."""

    caption: str
    figure: str


FLOOR_WORDS = {
    "paper": FloorWords(
        Text("Δ [95% CI]", r"$\Delta$ [95\% CI]"),
        "its 95% bootstrap interval",
        "above or below if the Holm-adjusted Welch p is below {alpha}",
    ),
    "recommended": FloorWords(
        Text("Δ [interval]", r"$\Delta$ [interval]"),
        "the interval at the level at which Holm's procedure tested it (with fewer than {least} runs: of these runs "
        "only, over their episodes)",
        "above or below if the interval excludes zero (family-wise level {alpha})",
    ),
}
GAP_WORDS = {
    "paper": GapWords(
        "mean over runs with its 95% bootstrap interval; per-run Welch tests combined by Fisher (Holm within rule"
        "{and_budget}) and Stouffer{direction}.",
        "Train − test return with its 95% bootstrap interval.",
    ),
    "recommended": GapWords(
        "mean ± SEM over runs. Adjusted: the gap minus the part that the floor's return on the same levels explains, "
        "with its interval for new runs on new levels at the level at which Holm's procedure (within rule{and_budget}) "
        "tested it.",
        "Train − test return, adjusted for the floor's return on the same levels, with its interval for new runs on "
        "new levels; where nothing was tested, the gap alone.",
    ),
}


def sentence(text: str, **names: str) -> Text:
    """A caption in both spellings; `{name}` is filled with text from the data, escaped for LaTeX."""
    return Text(text.format(**names), _fill(text, names))


def _fill(text: str, names: dict[str, str]) -> str:
    pieces: list[str] = []
    rest = text
    while rest:
        start = rest.find("{")
        if start < 0:
            pieces.append(escape_tex(rest))
            break
        end = rest.index("}", start)
        pieces += [escape_tex(rest[:start]), escape_tex(names[rest[start + 1 : end]])]
        rest = rest[end + 1 :]
    return "".join(pieces)


def runs_phrase(rows: Iterable[Row]) -> str:
    """How many runs: six runs, or 3 to 9 runs where games differ."""
    counts = sorted({row.n for row in rows})
    if not counts:
        return "runs"
    if counts == [1]:
        return "the episodes of one run"
    if len(counts) == 1:
        return f"{count_word(counts[0]).plain} runs"
    return f"{counts[0]} to {counts[-1]} runs"


def draws_phrase(findings: Findings) -> str:
    """How many draws: three seeded draws."""
    count = len(findings.source.draws)
    if count == 0:
        return "all its episodes"
    return f"{count_word(count).plain} seeded draw{'s' if count != 1 else ''}"


def floor_phrase(findings: Findings) -> str:
    """How many episodes a floor has, or their range."""
    counts = sorted({row.n for row in findings.results.floors if row.reference == "uniform"})
    if not counts:
        return "no episodes"
    return counted(counts[0], "episode") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} episodes"


def on_same_draws(findings: Findings) -> str:
    """That the floor is on the same draws, where that has been checked."""
    return " on the same level draws" if findings.same_draws else ""


def at_budget(budget: str) -> str:
    """The budget as the end of a phrase, or nothing where the data have no budgets."""
    return f" at {budget}" if budget else ""


def status_of(rows: Iterable[Row]) -> str:
    """Exploratory where any row is."""
    return "exploratory" if any(row.status == "exploratory" for row in rows) else ""


def left_out(findings: Findings, envs: Iterable[Env], what: str) -> tuple[str, ...]:
    """The note for games that a table leaves out."""
    names = [findings.name(env) for env in envs]
    return (f"Left out for lack of {what}: {', '.join(names)}.",) if names else ()


def suffix(findings: Findings, name: str, budget: str) -> str:
    """A table's name: plain for the main budget, with the budget for the others."""
    return name if budget == findings.main_budget else f"{name}_{findings.slug(budget)}"
