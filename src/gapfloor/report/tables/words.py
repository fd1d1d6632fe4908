"""The words of titles and captions that depend on the data: how many runs, draws, episodes, and under which plan.

A template names them in braces; each is made when a template asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.rows import AgentRow, ComparisonRow, GapRow, ScoreRow
from gapfloor.audit.ledger import count_ledger, load_ledger
from gapfloor.report.findings import MERGED, TRAIN, Env, Findings, at_budget
from gapfloor.report.source import ReportSource
from gapfloor.report.tables.columns import FOOTNOTE_MARKS
from gapfloor.report.text_templates import read_tables
from gapfloor.statistics.normalised import published_scale
from gapfloor.tables.cells import Cell, count_word, counted, text_cell
from gapfloor.tables.table import RuleLine


@dataclass(frozen=True)
class Words:
    """The words of one table; `words["runs"]` is made by the function of that name in `_WORDS`, or is the method's."""

    source: ReportSource
    about: Any
    """The budget of the table, or its game."""
    rows: Sequence[Any] = ()
    """Its rows and lines."""
    found: Sequence[Any] = ()
    """The rows of the analysis behind its cells."""
    rule: str = ""
    """The rule of the column or group that is named."""

    def __getitem__(self, name: str) -> Any:
        if name in _WORDS:
            return _WORDS[name](self)
        plan = self.findings.plan
        return read_tables("method_words.toml")[plan.method][name].format(plan=plan)

    @property
    def findings(self) -> Findings:
        """The results."""
        return self.source.findings

    @property
    def budget(self) -> str:
        """The table's budget."""
        return self.about if isinstance(self.about, str) else ""


def _end(words: Words) -> str:
    """The end of a table's name: nothing for the main budget or game."""
    findings = words.findings
    if isinstance(words.about, Env):
        return (
            "" if words.about == findings.hardest_env() else f"_{findings.slug(findings.name(words.about))}"
        )
    return "" if words.budget == findings.main_budget else f"_{findings.slug(words.budget)}"


def _over(words: Words) -> str:
    """The number of runs where all rows have the same."""
    primary = words.findings.primary
    counts = {row.n for row in words.found if isinstance(row, ComparisonRow) and row.rule == primary}
    return str(counts.pop()) if len(counts) == 1 else "n"


def _over_agents(words: Words) -> str:
    findings = words.findings
    return ", pooled over agents" if findings.plan.pooled and len(findings.source.agents) > 1 else ""


def _runs(words: Words) -> str:
    """How many runs: six runs, or 3 to 9 runs where games differ."""
    counts = sorted({row.n for row in words.found if isinstance(row, ComparisonRow | GapRow | AgentRow)})
    if counts == [1]:
        return "the episodes of one run"
    if len(counts) > 1:
        return f"{counts[0]} to {counts[-1]} runs"
    return f"{count_word(counts[0]).plain} runs" if counts else "runs"


def _runs_of_games(words: Words) -> str:
    """How many runs each game has per agent."""
    counts: dict[str, set[int]] = {}
    for row in words.found:
        if row.rule == words.findings.primary:
            counts.setdefault(words.findings.name(words.findings.env_of(row)), set()).add(row.n)
    return ", ".join(f"{game} n = {'/'.join(map(str, sorted(ns)))}" for game, ns in counts.items())


def _draws(words: Words) -> str:
    """How many draws: three seeded draws."""
    count = len(words.findings.source.draws)
    return (
        f"{count_word(count).plain} seeded draw{'s' if count != 1 else ''}" if count else "all its episodes"
    )


def _floor_episodes(words: Words) -> str:
    """How many episodes a floor has, or their range."""
    counts = sorted({row.n for row in words.findings.results.floors if row.reference == "uniform"})
    if not counts:
        return "no episodes"
    return counted(counts[0], "episode") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} episodes"


def _constants(words: Words) -> str:
    """Where normalisation constants come from: published ones, or the floor and the plan's upper reference."""
    rows = [row for row in words.found if isinstance(row, ScoreRow) and row.game != "mean"]
    published = [(row.r_min, row.r_max) == published_scale(row.game, row.mode) for row in rows]
    stated = "the uniform floor of the level set as R_min and the plan's upper reference as R_max"
    if all(published):
        return "the published constants of each game and mode"
    if any(published):
        return f"the published constants of ProcGen's games and modes, elsewhere {stated}"
    return f"{stated} (printed for the training levels)" if TRAIN in {r.level_set for r in rows} else stated


def _by(words: Words) -> str:
    other = words.findings.results.other_method
    words_of = read_tables("method_words.toml")
    return str(words_of[other.method]["tests"]) if other else ""


def _seeds(words: Words) -> str:
    counts = sorted({row.n_seeds for row in words.rows})
    return f"{'/'.join(map(str, counts))} {'seed' if counts == [1] else 'seeds'}"


def _cka_rows(words: Words) -> Cell:
    n = words.rows[0].n
    return text_cell(f"n={n}", tex=f"$n{{=}}{n}$") if n else text_cell("Null")


def _cka_control_rows(words: Words) -> Cell:
    n = words.rows[0].n_control
    return text_cell(f"2×2 (n={n})", tex=rf"$2\times2$ ($n{{=}}{n}$)") if n else text_cell("2×2")


def _ledger_count(field: str) -> Callable[[Words], str]:
    return lambda words: count_word(getattr(count_ledger(load_ledger()), field)).plain


def _any(words: Words, test: Callable[[Any], object], text: str, otherwise: str = "") -> str:
    """One text if some row behind the cells passes a test, and another otherwise."""
    return text if any(map(test, words.found)) else otherwise


_WORDS: dict[str, Callable[[Words], Any]] = {
    "at": lambda words: at_budget(words.budget),
    "at_main": lambda words: at_budget(words.findings.main_budget),
    "slug": lambda words: words.findings.slug(words.budget),
    "end": _end,
    "game": lambda words: words.findings.name(words.about),
    "over_agents": _over_agents,
    "primary": lambda words: words.findings.primary,
    "rule": lambda words: words.rule,
    "Rule": lambda words: words.rule[:1].upper() + words.rule[1:],
    "letter": lambda words: words.rule[:1],
    "rules": lambda words: " and ".join(f"{rule} ({rule[:1]})" for rule in words.findings.two_rules),
    "same_draws": lambda words: " on the same level draws" if words.findings.same_draws else "",
    "over": _over,
    "runs": _runs,
    "runs_of_games": _runs_of_games,
    "draws": _draws,
    "floor_episodes": _floor_episodes,
    "untested": lambda words: _any(
        words, lambda row: getattr(row, "call", "") == "not tested", ", n.t. if nothing was tested"
    ),
    "exploratory": lambda words: _any(
        words,
        lambda row: row.rule == MERGED and row.status == "exploratory",
        "Exploratory: ",
        "Addendum to the plan: ",
    ),
    "plan": lambda words: words.findings.plan,
    "maximum": lambda words: f"{words.found[0].maximum:.3f}",
    "no_cells": lambda words: (
        "the data have no entropies; gapfloor evaluate records those of numbered actions"
    ),
    "no_tiers": lambda words: _any(
        words, lambda row: row.tier, "", "Tiers need cell records, which these data lack."
    ),
    "below_the_line": lambda words: (
        " and at other budgets below the line" if any(isinstance(row, RuleLine) for row in words.rows) else ""
    ),
    "constants": _constants,
    "by": _by,
    "seeds": _seeds,
    "cka_n": lambda words: words.rows[0].n or "as many",
    "cka_n_control": lambda words: words.rows[0].n_control or "as many",
    "shuffles": lambda words: f"mean of {words.rows[0].permutations or ''} shuffles".replace("  ", " "),
    "cka_rows": _cka_rows,
    "cka_control_rows": _cka_control_rows,
    "codebases": _ledger_count("codebases"),
    "sample": lambda words: _ledger_count("sample")(words).capitalize(),
    "heldout": _ledger_count("evaluate_heldout"),
    "inherit": _ledger_count("without_explicit_choice"),
    "footnotes": lambda words: " ".join(
        f"{FOOTNOTE_MARKS[entry.footnote_mark][0]} {entry.name}: {entry.footnote}."
        for entry in load_ledger()
        if entry.footnote and entry.footnote_mark in FOOTNOTE_MARKS
    ),
    "corrections": lambda words: [
        f"* {entry.name}, corrected: {entry.correction}" for entry in load_ledger() if entry.is_corrected
    ],
    "no_hyperparameters": lambda words: f"{words.source.name} holds no checkpoints whose headers would say",
}


def filled(template: str, words: Words, tex: str | None = None) -> Cell:
    """A template in both spellings; text from the data is escaped for LaTeX."""
    if "{" not in template:
        return text_cell(template, tex=tex)
    if template[1:-1] in _WORDS and isinstance(whole := words[template[1:-1]], Cell):
        return whole
    plain = template.format_map(words)
    return text_cell(plain, tex=None if tex is None else tex.format_map(words))
