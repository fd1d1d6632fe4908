"""All tables of a report, described in `templates/tables.toml`: first the paper's in its order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from gapfloor.audit.ledger import count_ledger, load_ledger
from gapfloor.report.findings import MERGED, Findings
from gapfloor.report.source import ReportSource
from gapfloor.report.tables.columns import FOOTNOTE_MARKS, Use, columns_named
from gapfloor.report.tables.rows import records_of_main_budget, rows_of
from gapfloor.report.text_templates import template
from gapfloor.settings import shipped
from gapfloor.tables.cells import Cell, is_number, text_cell
from gapfloor.tables.table import BLANK, Column, ColumnGroup, Missing, RuleLine, Table

#: Tables about the world around a study, made only where they are asked for.
EXTRA_TABLES = ("audit", "commits", "hyper")


@dataclass(frozen=True)
class Tables:
    """What could be made, and what could not."""

    tables: tuple[Table, ...]
    missing: tuple[Missing, ...]

    def get(self, name: str) -> Table | None:
        """A table by name."""
        return next((table for table in self.tables if table.name == name), None)


@dataclass(frozen=True)
class _Words:
    """The words of one table: those that `table_words.j2` has a macro for, and those of the plan's method."""

    source: ReportSource
    about: Any
    """The budget of the table, or its game."""
    rows: Sequence[Any]
    """Its rows and lines."""
    found: Sequence[Any] = ()
    """The rows of the analysis behind its cells."""
    rule: str = ""
    """The rule of the column or group that is named."""

    @cached_property
    def _macros(self) -> Any:
        findings, budget = self.source.findings, self.about if isinstance(self.about, str) else ""
        return template("table_words.j2").make_module(
            {
                "source": self.source, "findings": findings, "plan": findings.plan, "about": self.about,
                "budget": budget, "rows": self.rows, "found": self.found, "of_rule": self.rule,
                "ledger": load_ledger, "ledger_counts": count_ledger, "footnote_marks": FOOTNOTE_MARKS,
                "method_words": shipped("report/templates/method_words.toml"),
            }
        )  # fmt: skip

    def __getitem__(self, name: str) -> Any:
        plan = self.source.findings.plan
        if name == "plan":
            return plan
        macro = getattr(self._macros, name, None)
        return (
            macro()
            if macro
            else shipped("report/templates/method_words.toml")[plan.method][name].format(plan=plan)
        )

    def fill(self, text: str, tex: str | None = None) -> Cell:
        """A text of `tables.toml` with the words that it names in braces, in both spellings."""
        return text_cell(text.format_map(self), tex=None if tex is None else tex.format_map(self))


def build_tables(source: ReportSource, *, extra: Sequence[str] = ()) -> Tables:
    """The paper's tables for these data: one of unmask, tiers, sweep, gap, full and res per budget.

    A table of the main budget has the paper's plain name; unmask, tiers, sweep and merged_argmax of other budgets end
    in the budget, and gap, full and res always do (gap8m, full8m, res25m). `extra` names those of `EXTRA_TABLES` that
    are wanted; they come last.
    """
    made = [
        _table(kind, layout, source, about)
        for kind, layout in shipped("report/templates/tables.toml").items()
        if kind in extra or "extra" not in layout
        for about in _subjects(kind, layout, source)
    ]
    return Tables(
        _with_unique_names(table for table in made if isinstance(table, Table)),
        tuple(table for table in made if isinstance(table, Missing)),
    )


def _subjects(kind: str, layout: Mapping[str, Any], source: ReportSource) -> list[Any]:
    """What a table is made for: each budget, each game, or the whole study."""
    findings = source.findings
    if kind == "gap2x2":
        # Every game that was trained at several budgets has one; that of the hardest game has the plain name.
        hardest = findings.hardest_env()
        others = [env for env in findings.all_envs if env != hardest and len(findings.places_of(env)) > 1]
        return [hardest, *others] if hardest else [""]
    if kind == "ckacontrol":
        return [next((record.budget for record in records_of_main_budget(source)), "")]
    if "{at}" not in layout["title"]:
        return [""]
    if kind == "merged_argmax":
        # At another budget than the main one the merged rule is an extra that most studies do not play.
        played = {row.budget for row in findings.results.floor_comparisons if row.rule == MERGED}
        return [
            budget for budget in findings.main_first if budget == findings.main_budget or budget in played
        ]
    return findings.main_first


def _table(kind: str, layout: Mapping[str, Any], source: ReportSource, about: Any) -> Table | Missing | None:
    findings = source.findings
    rows, without = rows_of(kind, source, about)
    words = _Words(source, about, rows)
    bodies = [row for row in rows if not isinstance(row, RuleLine)]
    if not bodies:
        if "missing" not in layout:
            return None
        named = {"name": "gap2x2", "title": "Both rules, both level sets"} if kind == "gap2x2" else layout
        return Missing(
            *(words.fill(text).plain for text in (named["name"], named["title"], layout["missing"]))
        )
    columns, groups = _columns(_of_method(layout["columns"], findings), findings, rows)
    columns, groups = _without_empty_rules(columns, groups, bodies)
    found = [column.value(row, column.use) for row in bodies for column in columns]
    found = list({id(row): row for row in found if hasattr(row, "status")}.values())
    words = replace(words, found=found)
    notes = [f"Left out for lack of {layout['lack']}: {', '.join(without)}."] if without else []
    notes += words.fill(layout.get("note", "")).plain.splitlines()
    is_exploratory = any(row.status == "exploratory" for row in found)
    table = Table(
        name=words.fill(layout["name"]).plain,
        title=words.fill(layout["title"]).plain,
        caption=words.fill(_of_method(layout["caption"], findings)),
        columns=tuple(_headed(column, words) for column in columns),
        rows=tuple(rows),
        groups=tuple(
            ColumnGroup(replace(words, rule=rule).fill(*texts), first, last)
            for texts, rule, first, last in groups
        ),
        notes=tuple(notes),
        size=layout.get("size", "small"),
        separation=layout.get("separation", "3.5pt"),
        status=layout.get("status", "exploratory" if is_exploratory else ""),
        is_wide=layout.get("is_wide", False),
    )
    return _without_empty_columns(table) if layout.get("drop") else table


def _without_empty_columns(table: Table) -> Table | None:
    """The table without columns of numbers that hold none; None if no number is left."""
    kept = [
        at
        for at, column in enumerate(table.columns)
        if column.align == "l"
        or any(isinstance(raw := row[at].raw[0], int | float) and is_number(raw) for row in table.body)
    ]
    if all(table.columns[at].align == "l" for at in kept):
        return None
    dropped = [column.title for at, column in enumerate(table.columns) if at not in kept]
    notes = [f"Left out because the data do not allow it: {', '.join(dropped)}."] if dropped else []
    return replace(
        table,
        columns=tuple(table.columns[at] for at in kept),
        rows=tuple(tuple(row[at] for at in kept) for row in table.body),
        notes=(*table.notes, *notes),
    )


#: A heading over columns: its text and, where it has one of its own, its LaTeX; its rule; the first and last column.
_Group = tuple[tuple[str, str | None], str, int, int]


def _columns(
    entries: Sequence[Any], findings: Findings, rows: Sequence[Any], rule: str = ""
) -> tuple[list[Column], list[_Group]]:
    """The columns of a table, each with its rule, and the headings that span several."""
    columns: list[Column] = []
    groups: list[_Group] = []
    for entry in entries:
        if isinstance(entry, str) or "column" in entry:
            use = Use(findings, rule or findings.primary)
            columns += [replace(column, use=use) for column in columns_named(entry)]
            continue
        first = len(columns)
        # A part of a table is repeated for every cut, or is of one rule, which the data may lack.
        named = entry.get("rule", rule)
        cuts = [f"{point.cut:.1f}" for point in rows[0].screen.sweep] if named == "cuts" else ()
        for each in cuts or [getattr(findings, named, named)]:
            columns += _columns(entry["columns"], findings, rows, each)[0] if each is not None else []
        if "title" in entry and len(columns) > first:
            texts = entry["title"], entry.get("tex")
            groups.append((texts, columns[-1].use.rule, first, len(columns) - 1))
    return columns, groups


def _without_empty_rules(
    columns: list[Column], groups: list[_Group], rows: Sequence[Any]
) -> tuple[list[Column], list[_Group]]:
    """The table without the last group of columns if it is of a rule that no row has."""
    if not groups or groups[-1][1] != columns[0].use.findings.secondary or groups[-1][3] != len(columns) - 1:
        return columns, groups
    first = groups[-1][2]
    found = (column.value(row, column.use) for column in columns[first:] for row in rows)
    if any(value is not None and value is not BLANK for value in found):
        return columns, groups
    return columns[:first], groups[:-1]


def _headed(column: Column, words: _Words) -> Column:
    """A column with its heading and its names for one rule."""
    if column.key == "k" and words["over"] == "n":
        column = replace(columns_named("k_of_n")[0], use=column.use)
    rule = column.use.rule
    spelt = "floor" if rule == "uniform" else rule
    heading = (
        replace(words, rule=rule).fill(column.title, column.tex) if "{" in column.title else column.header
    )
    csv = tuple(name.replace("RULE", spelt).replace("CUT", rule) for name in column.csv)
    return replace(column, title=heading.plain, tex=heading.tex, csv=csv)


def _of_method(entry: Any, findings: Findings) -> Any:
    return entry[findings.plan.method] if isinstance(entry, dict) else entry


def _with_unique_names(tables: Iterable[Table]) -> tuple[Table, ...]:
    """Tables that do not overwrite each other's files: a budget called 2x2 would give a second gap2x2."""
    found: dict[str, Table] = {}
    for table in tables:
        name, number = table.name, 2
        while name in found:
            name, number = f"{table.name}-{number}", number + 1
        found[name] = replace(table, name=name)
    return tuple(found.values())
