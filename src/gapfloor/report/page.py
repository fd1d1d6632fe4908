"""The page: one HTML file that opens offline, asks no host for anything, and says the verdict first.

Text from the data reaches the page only through the template engine, which escapes it; our own SVG escapes its
labels itself. A content policy in the file forbids every outside request, whatever a browser extension might try.
"""

from __future__ import annotations

from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

import gapfloor
from gapfloor.analysis.row import Row
from gapfloor.engines.procgen import ACTION_NAMES
from gapfloor.report.card import card_to_markdown
from gapfloor.report.findings import MERGED, Findings
from gapfloor.report.formats import Cell, count_word
from gapfloor.report.page_figures import (
    class_grid,
    entropy_dumbbells,
    gap_forest,
    level_scatters,
    return_panels,
    training_panels,
    verdict_strip,
)
from gapfloor.report.replays import Scene
from gapfloor.report.source import ReportSource
from gapfloor.report.svg import drawing, line, mark
from gapfloor.report.table import Table
from gapfloor.report.tables.build import Tables
from gapfloor.report.verdict import build_verdicts, headline

#: Tables that stand open when the page loads.
_OPEN = ("unmask",)
#: Tables that are the same whatever the data.
_LAST = ("audit", "commits", "hyper")


def render_page(
    source: ReportSource, tables: Tables, card: dict[str, Any], *, scenes: tuple[Scene, ...] = ()
) -> str:
    """The whole page."""
    findings = source.findings
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = environment.from_string(_read("page.html.j2"))
    figures = _figures(source)
    sections = [("verdicts", "Verdicts")]
    sections += [("replays", "Replays")] if scenes else []
    sections += [("figures", "Figures")] if figures else []
    sections += [("tables", "Tables"), ("provenance", "Plan and provenance"), ("card", "Gap card")]
    return template.render(
        title=f"gapfloor: {source.name}",
        heading=_heading(findings),
        headline=headline(findings),
        source_name=source.name,
        chips=_chips(source),
        sections=sections,
        legend=_legend(findings),
        verdict_groups=_verdict_groups(findings),
        all_exploratory=findings.plan.status == "exploratory",
        scenes=scenes,
        figures=figures,
        tables=[
            _table(table, all_exploratory=findings.plan.status == "exploratory") for table in tables.tables
        ],
        missing=tables.missing,
        facts=_facts(source),
        exploratory=_exploratory(findings),
        problems=findings.results.problems,
        runs=source.provenance.runs,
        card=card_to_markdown(card),
        version=gapfloor.__version__,
        css=Markup(_read("page.css")),
        js=Markup(_read("page.js")),
    )


def _read(name: str) -> str:
    return resources.files("gapfloor.report").joinpath(f"templates/{name}").read_text(encoding="utf-8")


def _heading(findings: Findings) -> str:
    games = [findings.name(env) for env in findings.all_envs if findings.budgets_of(env)]
    if len(games) == 1:
        return f"What does the {games[0]} gap measure?"
    return (
        f"What do these {count_word(len(games)).plain} gaps measure?"
        if games
        else "What does this gap measure?"
    )


def _chips(source: ReportSource) -> list[dict[str, str]]:
    findings = source.findings
    summary = findings.source
    chips = [
        {"text": f"{summary.n_runs} runs", "kind": ""},
        {"text": f"{summary.n_episodes:,} episodes", "kind": ""},
        {"text": f"primary rule: {findings.primary}", "kind": ""},
    ]
    if summary.n_floor_episodes:
        chips.append({"text": "floor on the same draws", "kind": "good"})
    else:
        chips.append({"text": "no floor", "kind": "warn"})
    status = findings.plan.status
    chips.append(
        {
            "text": f"plan {status}" if status != "exploratory" else "no locked plan: exploratory",
            "kind": "warn" if status == "exploratory" else "good",
        }
    )
    return chips


def _legend(findings: Findings) -> list[dict[str, Any]]:
    entries = []
    for rule in findings.rules:
        words = "merged argmax" if rule == MERGED else rule
        svg = drawing(16, 16, [mark(rule, 8, 8, filled=True, tip=words).replace('tabindex="0" ', "")], words)
        entries.append({"svg": Markup(svg), "text": f"{words} actions"})
    floor = drawing(16, 16, [line(8, 1, 8, 15, "floorline")], "floor")
    entries.append({"svg": Markup(floor), "text": "random floor (band: 95%)"})
    return entries


def _verdict_groups(findings: Findings) -> list[dict[str, Any]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for verdict in build_verdicts(findings):
        strip = verdict_strip(findings, verdict.env, verdict.budget)
        groups.setdefault(verdict.budget, []).append({"verdict": verdict, "strip": Markup(strip)})
    return [
        {"title": f"{budget} steps" if budget and len(groups) > 1 else "", "cards": cards}
        for budget, cards in groups.items()
    ]


def _figures(source: ReportSource) -> list[dict[str, Any]]:
    findings = source.findings
    made: list[dict[str, Any]] = []

    def add(name: str, title: str, caption: str, drawn: Any, *, is_open: bool = True) -> None:
        if not drawn:
            return
        panels = []
        if not isinstance(drawn, str):
            panels = [
                {"title": panel.title, "subtitle": panel.subtitle, "svg": Markup(panel.svg)}
                for panel in drawn
            ]
        made.append(
            {
                "id": f"fig-{len(made)}-{name}",
                "title": title,
                "caption": caption,
                "svg": "" if panels else Markup(drawn),
                "panels": panels,
                "open": is_open,
            }
        )

    for budget in sorted(findings.budgets, key=lambda budget: budget != findings.main_budget):
        at = f" at {budget}" if budget else ""
        add(
            "returns",
            f"Return against floor{at}.",
            "Filled: held-out levels; hollow: training levels; bars: one SEM over runs. Grey lines: random "
            "floor on held-out (solid) and training levels (dashed). Scales differ between games.",
            return_panels(findings, budget),
            is_open=budget == findings.main_budget,
        )
        add(
            "gaps",
            f"Gap{at}.",
            "Train − test with its 95% bootstrap interval. The thick grey tick is the floor's own train − "
            "test difference: what the level sets differ by when nobody has learnt anything.",
            gap_forest(findings, budget),
            is_open=budget == findings.main_budget,
        )
        add(
            "entropy",
            f"Entropy, raw and merged{at}.",
            "Circle: raw actions; filled diamond: merged by state; hollow diamond: merged by game. Dashed: "
            "the screen's cuts; dotted: the maximum.",
            entropy_dumbbells(findings, budget),
            is_open=budget == findings.main_budget,
        )
        add(
            "levels",
            f"Level by level{at}.",
            "Each dot is one held-out level: mean return of the runs against the floor's on that level. "
            "Above the diagonal the policy beats random play.",
            level_scatters(findings, source.levels, budget),
            is_open=budget == findings.main_budget,
        )
    add(
        "training",
        "Entropy during training.",
        "Mean over seeds with a band of one SEM. Dashed: the screen's cuts; dotted: ln 15.",
        training_panels(findings, source.curves),
    )
    add(
        "classes",
        "Actions that do the same.",
        "Actions with the same letter had the same effect in every calibrated state of the game.",
        class_grid(findings, source.classes, ACTION_NAMES),
    )
    return made


def _ordered(tables: Tables) -> list[Table]:
    """The tables of these data first, those of the world around them last."""
    return sorted(tables.tables, key=lambda table: table.name in _LAST)


def _table(table: Table, *, all_exploratory: bool) -> dict[str, Any]:
    groups: list[dict[str, Any]] = []
    at = 0
    for group in sorted(table.groups, key=lambda group: group.first):
        groups += [{"span": group.first - at, "title": ""}] if group.first > at else []
        groups.append({"span": group.last - group.first + 1, "title": group.title.plain})
        at = group.last + 1
    if groups and at < len(table.columns):
        groups.append({"span": len(table.columns) - at, "title": ""})
    rows = []
    for row in table.body:
        cells = []
        for cell, column in zip(row, table.columns, strict=True):
            # Sorting must not lose a name that the layout shows once: blank cells show what they stand for.
            text = cell.plain if cell.plain or not isinstance(cell.sort, str) else cell.sort
            cells.append(
                {"text": text, "align": column.align + (" long" if len(text) > 60 else ""), "sort": _sort(cell),
                 "tone": cell.sort if cell.sort in ("above", "below") else ""}
            )  # fmt: skip
        rows.append(cells)
    return {
        "name": table.name,
        "title": table.title,
        # Where no plan was locked everything is exploratory: the page says so once, at the top.
        "status": "" if all_exploratory else table.status,
        "open": table.name in _OPEN,
        "beside": table.name.endswith("_beside"),
        "caption": table.caption.plain,
        "groups": groups,
        "headers": [{"text": column.header.plain, "align": column.align} for column in table.columns],
        "rows": rows,
        "notes": table.notes,
    }


def _sort(cell: Cell) -> str:
    value = cell.sort
    return "" if value is None else (repr(value) if isinstance(value, float) else str(value))


def _facts(source: ReportSource) -> list[tuple[str, str]]:
    plan, provenance = source.findings.plan, source.provenance
    seen = "" if plan.cells_seen is None else f" after {plan.cells_seen} cells of the study had been seen"
    facts = [
        ("Plan", f"{plan.name} ({plan.status})"),
        ("Plan hash", plan.hash),
        ("Locked", f"{plan.locked_at}{seen}" if plan.locked_at else "never"),
        (
            "Tests",
            f"alpha {plan.alpha:g}, {plan.confidence:.0%} intervals, {plan.resamples:,} resamples, seed {plan.seed}",
        ),
        *((f"Addendum {entry.name}", f"{entry.status}, {entry.hash}") for entry in plan.addenda),
        ("Rules", ", ".join(source.findings.rules)),
        (
            "Level sets",
            "; ".join(f"{name} {ends}" for name, ends in provenance.levels.items())
            + (" (as observed)" if provenance.levels_are_observed and provenance.levels else ""),
        ),
        (
            "Draws",
            ", ".join(provenance.draws)
            + (
                f" of {' or '.join(map(str, provenance.episodes_per_draw))} episodes"
                if provenance.episodes_per_draw
                else ""
            ),
        ),
        ("Slots, burn-in", _slots(source)),
        ("Engine", ", ".join(provenance.engines)),
        ("Inference", ", ".join((*provenance.backends, *provenance.devices))),
        ("Agents", ", ".join(source.findings.source.agents)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in provenance.versions.items())),
    ]
    return [(name, value if value else "not recorded in these data") for name, value in facts]


def _slots(source: ReportSource) -> str:
    provenance = source.provenance
    if not provenance.slots:
        return ""
    burn_in = " or ".join(map(str, provenance.burn_in)) or "0"
    return f"{' or '.join(map(str, provenance.slots))} slots, burn-in {burn_in} a slot, in episodes"


def _exploratory(findings: Findings) -> list[str]:
    results = findings.results
    kinds: dict[tuple[str, str], int] = {}
    groups: dict[str, tuple[Row, ...]] = {
        "comparison with the floor": results.floor_comparisons,
        "comparison with a stricter reference": results.reference_comparisons,
        "gap": results.gaps,
        "difference between rules": results.pairs,
        "difference between agents": results.encoders,
        "entropy screen": results.screen,
    }
    for kind, rows in groups.items():
        for row in rows:
            if row.status == "exploratory":
                key = (kind, row.exploratory_reason or "not named by the plan")
                kinds[key] = kinds.get(key, 0) + 1
    return [
        f"{count} × {kind}: {reason}."
        for (kind, reason), count in sorted(kinds.items(), key=lambda entry: (entry[0][1], entry[0][0]))
    ]
