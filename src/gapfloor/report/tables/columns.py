"""What the columns of a report's tables take from a row; `data/columns.toml` describes the columns themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from gapfloor.analysis import columns as analysis
from gapfloor.escape import escape_tex
from gapfloor.report.findings import (
    FLOOR,
    MERGED,
    SUITE,
    TEST,
    TRAIN,
    Env,
    Findings,
    GameFindings,
    agent_name,
)
from gapfloor.tables.cells import Cell, fixed, mark_cell, mean_sem, text_cell
from gapfloor.tables.table import BLANK, Column, Source, read_registry


@dataclass(frozen=True)
class Use:
    """A column as a table uses it: in which report, and for which rule or cut."""

    findings: Findings
    rule: str


def _floor(place: GameFindings, use: Use) -> Any:
    rules = (*use.findings.two_rules, MERGED)
    return next((row for rule in rules if (row := place.comparison(rule, place.level_set))), None)


def _score(level_set: str) -> Source:
    def of(place: GameFindings, use: Use) -> Any:
        # The floor's mean over training levels is left blank, as in the paper, which compares held-out scores.
        is_blank = place.game == SUITE and (use.rule, level_set) == (FLOOR, TRAIN)
        return BLANK if is_blank else place.score(use.rule, level_set)

    return of


def _env(row: Any, use: Use) -> str:
    if row.game == SUITE:
        return SUITE if isinstance(row, GameFindings) else "all games"
    if isinstance(row, GameFindings):
        return row.name
    # Tables that have a column of agents name the game alone.
    is_named = hasattr(row, "left_out") or not hasattr(row, "plan_hash")
    return use.findings.name(Env(row.game, row.mode) if is_named else use.findings.env_of(row))


def _env_at(place: GameFindings, use: Use) -> Cell:
    label = f"{place.name} ({place.budget})" if place.budget else place.name
    # The name is printed on a game's first row only; CSV repeats it on every row.
    return text_cell(label) if place.level_set == TRAIN else Cell("", "", (label,))


def _budget_n(row: Any, use: Use) -> Cell:
    if row.n is None:
        return Cell("", "", (row.budget, None))
    plain, tex = f"n={row.n}", f"$n{{=}}{row.n}$"
    if row.budget:
        plain, tex = f"{row.budget} ({plain})", f"{escape_tex(row.budget)} ({tex})"
    return Cell(plain, tex, (row.budget, row.n))


def _played_rule(row: Any, use: Use) -> Cell:
    if row.n is None:
        return text_cell("uniform floor†", tex=r"uniform floor$^\dagger$", raw="uniform floor")
    return text_cell(row.rule)


def _row_gap(row: Any, use: Use) -> Cell:
    if row.n is not None:
        return mean_sem(row.gap, row.gap_sem)
    signed = fixed(row.gap, sign=True)
    return Cell(signed.plain, signed.tex, (*signed.raw, None))


FOOTNOTE_MARKS = {"*": ("*", "$^*$"), "dagger": ("†", r"$^\dagger$"), "ddagger": ("‡", r"$^\ddagger$")}


def _footnoted(entry: Any, use: Use) -> Cell:
    mark, cell = FOOTNOTE_MARKS.get(entry.footnote_mark or "", ("", "")), mark_cell(entry.is_stochastic)
    return Cell(cell.plain + mark[0], cell.tex + mark[1], cell.raw)


def _location(entry: Any, use: Use) -> Cell:
    star = ("*", "$^*$") if entry.is_corrected else ("", "")
    tex = rf"\texttt{{{escape_tex(entry.location)}}}{star[1]}"
    return Cell(entry.location + star[0], tex, (entry.location,))


_SOURCES: dict[str, Source] = {
    **analysis.SOURCES,
    "here": lambda place, use: place.comparison(use.rule, place.level_set),
    "gap": lambda place, use: place.gap(use.rule),
    "screen": lambda place, use: place.screen,
    "agent": lambda place, use: place.row("agents", rule=use.rule, agent=place.agent),
    "floor": _floor,
    "merged_pair": lambda place, use: place.pair(MERGED, "greedy", "test"),
    "disagreement": lambda place, use: place.row("disagreements", rule=MERGED, level_set=TEST),
    "score_train": _score(TRAIN),
    "score_test": _score(TEST),
    "constants": lambda place, use: BLANK if place.game == SUITE else next(iter(place.scores), None),
    "cut": lambda place, use: next(
        (point for point in (place.screen.sweep if place.screen else ()) if f"{point.cut:.1f}" == use.rule),
        None,
    ),
    "env": _env,
    "env_at": _env_at,
    "env_other": lambda place, use: (
        place.name if place.budget == use.findings.main_budget else f"{place.name} ({place.budget})"
    ),
    "budget_n": _budget_n,
    "agent_name": lambda row, use: agent_name(row.agent),
    "leak_agent": lambda row, use: row.agent or ("all" if row.n else "floor"),
    "rule": lambda row, use: "floor" if row.rule == FLOOR else row.rule,
    "played_rule": _played_rule,
    "two_agents": lambda row, use: f"{agent_name(row.agent)} − {agent_name(row.agent_b)}",
    "two_rules": lambda row, use: f"{row.rule} − {row.rule_b}",
    "reference": lambda row, use: text_cell(
        row.reference, tex=r"$R_{\max}$" if row.reference == "R_max" else None
    ),
    "tested_row": lambda row, use: BLANK if row.reference == "R_max" else row,
    "row_gap": _row_gap,
    "train_levels": lambda row, use: row.n_levels[0],
    "test_levels": lambda row, use: row.n_levels[1],
    "footnoted": _footnoted,
    "commit": lambda row, use: text_cell(row.short_commit, tex=rf"\texttt{{{escape_tex(row.short_commit)}}}"),
    "location": _location,
    "first": lambda row, use: row[0],
    "second": lambda row, use: row[1],
}
#: The columns that only reports have.
REPORT_REGISTRIES = read_registry("report", _SOURCES)
_BY_KEY: dict[str, Column] = {
    f"{name}.{key}": column
    for name, registry in read_registry("", _SOURCES).items()
    for key, column in registry.items()
}
_BY_KEY |= {key: column for registry in REPORT_REGISTRIES.values() for key, column in registry.items()}


def columns_named(entry: str | dict[str, str]) -> list[Column]:
    """The column that a table names, or all columns of a registry (`sensitivity.*`).

    An entry in braces changes how the table shows it: its title, its alignment, its name in CSV.
    """
    if isinstance(entry, str):
        if entry.endswith(".*"):
            return [column for key, column in _BY_KEY.items() if key.startswith(entry[:-1])]
        return [_BY_KEY[entry]]
    changes: dict[str, Any] = {name: value for name, value in entry.items() if name != "column"}
    if "title" in changes:
        changes.setdefault("tex", None)
    if "csv" in changes:
        changes["csv"] = (changes["csv"],)
    return [replace(_BY_KEY[entry["column"]], **changes)]
