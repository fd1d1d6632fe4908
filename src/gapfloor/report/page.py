"""The page: one HTML file that opens offline, asks no host for anything, and says the verdict first.

Text from the data reaches the page only through the template engine, which escapes it; our own SVG escapes its
labels itself. A content policy in the file forbids every outside request, whatever a browser extension might try.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

import gapfloor
from gapfloor.analysis.rows import Row
from gapfloor.escape import clean_text
from gapfloor.report.card import card_to_markdown
from gapfloor.report.figures.build import build_figures
from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import LegendEntry, PanelSpec, PointMark
from gapfloor.report.figures.page_figure import legend_svg, panel_svg, render_panels
from gapfloor.report.figures.verdict_strip import verdict_strip
from gapfloor.report.findings import MERGED, Findings
from gapfloor.report.level_tables import level_tables
from gapfloor.report.packed_parts import MOST_INLINE, PACKED_NOTE_PLACE, PageParts
from gapfloor.report.replays import Scene
from gapfloor.report.source import ReportSource
from gapfloor.report.tables.build import Tables
from gapfloor.report.verdict import build_verdicts, headline
from gapfloor.tables.cells import Cell, count_word
from gapfloor.tables.table import Table
from gapfloor.text_tables import counted

#: What the coloured label of a verdict says, and what that means.
TONES = {
    "supported": ("supported", "held-out play is above chance, so the gap can be read"),
    "open": ("open", "the data do not decide"),
    "unsupported": ("not supported", "the gap cannot be read as generalization"),
}
#: Tables that are open when the page loads.
_OPEN = ("unmask",)
#: Above everything on a page whose parts are packed.
_PACKED_NOTE = Markup(
    '<p class="note" id="packed">This report is large: a figure or table is unpacked when you open it. To search or '
    'print the whole page, <button type="button" id="open-all">open everything</button> first.</p>'
    "<noscript><p>Unpacking needs JavaScript. The report's folder has every table and figure as a file.</p></noscript>"
)
_NOT_VERIFIED = "no: gapfloor verify has not seen these cells"


def render_page(
    source: ReportSource,
    tables: Tables,
    card: dict[str, Any],
    *,
    scenes: tuple[Scene, ...] = (),
    formats: Sequence[str] = (),
    most_inline: int = MOST_INLINE,
) -> str:
    """The whole page.

    `formats` are those that lie next to it, to which tables link. A page with more characters than `most_inline` is
    packed.
    """
    findings = source.findings
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, finalize=_finalize
    )
    parts = PageParts(most_inline=most_inline)
    environment.filters |= {"part": parts.hold, "table_rows": _table_rows}
    template = environment.from_string(_read("page.html.j2"))
    figures = _figures(source)
    sections = [("verdicts", "Verdicts")]
    sections += [("replays", "Replays")] if scenes else []
    sections += [("figures", "Figures")] if figures else []
    sections += [("tables", "Tables"), ("provenance", "Plan and provenance"), ("card", "Gap card")]
    page = template.render(
        packed_note_place=PACKED_NOTE_PLACE,
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
        one_game=len(findings.all_envs) == 1,
        tones=_tones(findings),
        tables=[
            _table(table, all_exploratory=findings.plan.status == "exploratory", formats=formats)
            for table in tables.tables
        ]
        + level_tables(findings, source.levels, scenes),
        table_kinds=_kinds(formats),
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
    return parts.put_in(page, packed_note=_PACKED_NOTE)


def _finalize(value: Any) -> Any:
    """Text from the data without characters that have no glyph; our own markup as it is."""
    return clean_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read(name: str) -> str:
    return resources.files("gapfloor.report").joinpath(f"templates/{name}").read_text(encoding="utf-8")


def _heading(findings: Findings) -> str:
    games = [findings.name(env) for env in findings.all_envs if findings.places_of(env)]
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
        {"text": counted(summary.n_runs, "run"), "kind": ""},
        {"text": counted(summary.n_episodes, "episode"), "kind": ""},
        {"text": f"primary rule: {findings.primary}", "kind": ""},
    ]
    chips.append(_floor_chip(findings))
    status = findings.plan.status
    chips.append(
        {
            "text": f"plan {findings.plan.label}"
            if status != "exploratory"
            else "no locked plan: exploratory",
            "kind": "warn" if status == "exploratory" else "good",
        }
    )
    return chips


def _floor_chip(findings: Findings) -> dict[str, str]:
    if not findings.source.n_floor_episodes:
        return {"text": "no floor", "kind": "warn"}
    if findings.same_draws is None:
        return {"text": "floor measured; its levels are not recorded", "kind": ""}
    if findings.same_draws:
        return {"text": "floor on the same levels", "kind": "good"}
    return {"text": "floor on other levels than the runs", "kind": "warn"}


def _legend(findings: Findings) -> list[dict[str, Any]]:
    entries = [
        LegendEntry(words=f"{'merged argmax' if rule == MERGED else rule} actions", ink=rule_ink(rule))
        for rule in findings.rules
    ]
    entries.append(LegendEntry(words="random floor (band: 95% interval)", guide="floor"))
    return [{"svg": Markup(legend_svg(entry)), "text": entry.words} for entry in entries]


def _tones(findings: Findings) -> list[dict[str, str]]:
    """What the coloured labels mean, those that occur."""
    present = {verdict.tone for verdict in build_verdicts(findings)}
    return [
        {"kind": tone, "words": words, "meaning": meaning}
        for tone, (words, meaning) in TONES.items()
        if tone in present
    ]


def _verdict_groups(findings: Findings) -> list[dict[str, Any]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for verdict in build_verdicts(findings):
        panel = verdict_strip(findings, verdict.env, verdict.budget)
        strip = panel_svg(panel, size=(320.0, 22.0 + 22.0 * _n_rows(panel)), is_strip=True) if panel else ""
        groups.setdefault(verdict.budget, []).append(
            {"verdict": verdict, "strip": Markup(strip), "tone": TONES[verdict.tone][0]}
        )
    has_titles = len(groups) > 1
    return [
        {
            "title": f"{budget} steps" if budget and has_titles else "",
            # Below the title of a budget a game is one level deeper.
            "heading": Markup("h4" if budget and has_titles else "h3"),
            "cards": cards,
        }
        for budget, cards in groups.items()
    ]


def _n_rows(panel: PanelSpec) -> int:
    return sum(isinstance(shape, PointMark) for shape in panel.shapes)


def _figures(source: ReportSource) -> list[dict[str, Any]]:
    return [
        {
            "id": f"figure-{figure.name}",
            "title": figure.title,
            "caption": figure.caption,
            "legend": [{"svg": Markup(legend_svg(entry)), "text": entry.words} for entry in figure.legend],
            "panels": [
                {"title": panel.title, "subtitle": panel.subtitle, "svg": Markup(svg)}
                for panel, svg in zip(figure.panels, render_panels(figure), strict=True)
            ],
            "is_single": len(figure.panels) == 1,
            "open": figure.is_open,
        }
        for figure in build_figures(source)
    ]


def _kinds(formats: Sequence[str]) -> str:
    words = [
        name for kind, name in (("csv", "CSV with unrounded values"), ("tex", "LaTeX")) if kind in formats
    ]
    return " and ".join(words)


def _files(name: str, formats: Sequence[str]) -> list[tuple[str, str]]:
    known = {"csv": ("CSV", f"csv/{name}.csv"), "tex": ("LaTeX", f"tables/{name}.tex")}
    return [entry for kind, entry in known.items() if kind in formats]


def _table(table: Table, *, all_exploratory: bool, formats: Sequence[str]) -> dict[str, Any]:
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
                 "tone": cell.sort if cell.sort in ("above", "below") else "", "href": ""}
            )  # fmt: skip
        rows.append(cells)
    return {
        "name": table.name,
        "title": table.title,
        # Where no plan was locked everything is exploratory: the page says so once, at the top.
        "status": "" if all_exploratory else table.status,
        "open": table.name in _OPEN,
        "code": table.name,
        "files": _files(table.name, formats),
        "caption": table.caption.plain,
        "groups": groups,
        "headers": [{"text": column.header.plain, "align": column.align} for column in table.columns],
        "rows": rows,
        "notes": table.notes,
    }


def _table_rows(rows: Sequence[Sequence[Mapping[str, str]]]) -> Markup:
    """The rows as markup; a template would take most of the time of a large page for them."""
    lines = []
    for row in rows:
        cells = []
        for cell in row:
            css = f"{cell['align']} {cell['tone']}" if cell["tone"] else cell["align"]
            text = _escaped(cell["text"])
            if cell["href"]:
                text = f'<a href="{_escaped(cell["href"])}">{text}</a>'
            cells.append(f'<td class="{css}" data-sort="{_escaped(cell["sort"])}">{text}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return Markup("".join(lines))


@functools.lru_cache(maxsize=1 << 14)
def _escaped(text: str) -> str:
    return str(escape(clean_text(text)))


def _sort(cell: Cell) -> str:
    value = cell.sort
    return "" if value is None else (repr(value) if isinstance(value, float) else str(value))


def _facts(source: ReportSource) -> list[tuple[str, str]]:
    plan, provenance = source.findings.plan, source.provenance
    seen = "" if plan.cells_seen is None else f" after {plan.cells_seen} cells of the study had been seen"
    facts = [
        ("Plan", f"{plan.name}: {plan.label}"),
        ("Plan hash", plan.hash),
        ("Locked", f"{plan.locked_at}{seen}" if plan.locked_at else "never"),
        *(("Locked before", entry) for entry in plan.earlier_locks),
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
        ("Verified", provenance.verification.sentence if provenance.verification else _NOT_VERIFIED),
        ("Agents", ", ".join(source.findings.source.agents)),
        ("Versions", ", ".join(f"{name} {version}" for name, version in provenance.versions.items())),
    ]
    return [(name, value if value else "not recorded in these data") for name, value in facts]


def _slots(source: ReportSource) -> str:
    provenance = source.provenance
    if not provenance.slots:
        return ""
    burn_in = " or ".join(map(str, provenance.burn_in)) or "0"
    return f"{' or '.join(map(str, provenance.slots))} slots, burn-in of {burn_in} per slot, in episodes"


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
