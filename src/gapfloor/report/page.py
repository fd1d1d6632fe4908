"""The page: one HTML file that opens offline, asks no host for anything, and says the verdict first.

Text from the data reaches the page only through the template engine, which escapes it; our own SVG and table rows
escape theirs. A content policy in the file forbids every outside request, whatever a browser extension might try.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

import gapfloor
from gapfloor.analysis.rows import Row
from gapfloor.escape import clean_text
from gapfloor.report.card import card_facts, card_to_markdown
from gapfloor.report.figures.build import build_figures, verdict_strip
from gapfloor.report.figures.inks import rule_ink
from gapfloor.report.figures.model import LegendEntry, PointMark
from gapfloor.report.figures.page_figure import legend_svg, panel_svg
from gapfloor.report.findings import MERGED, Findings, GameFindings
from gapfloor.report.replays import build_scenes
from gapfloor.report.source import ReportSource
from gapfloor.report.tables.build import Tables
from gapfloor.report.text_templates import environment, read_template
from gapfloor.report.verdict import Verdict, build_verdicts, decision, headline
from gapfloor.tables.html import html_head, html_rows


def render_page(
    source: ReportSource, tables: Tables, card: dict[str, Any], formats: Sequence[str] = ()
) -> str:
    """The whole page. `formats` are those that lie next to it, to which tables and figures link."""
    findings = source.findings
    made = environment(autoescape=True, finalize=_finalize)
    made.filters |= {
        "legend": lambda entry: Markup(legend_svg(entry)),
        "svg": lambda panel, size: Markup(panel_svg(panel, size=size)),
        "strip": _strip,
        "table_head": lambda table: Markup(html_head(table)),
        "table_rows": lambda table: Markup(html_rows(table)),
    }
    figures, scenes = build_figures(source), build_scenes(source.replays, rules=findings.rules)
    verdicts: dict[str, list[Verdict]] = {}
    for verdict in build_verdicts(findings):
        verdicts.setdefault(verdict.place.budget, []).append(verdict)
    sections = {"verdicts": "Verdicts", "figures": "Figures", "replays": "Replays", "details": "Details"}
    return made.from_string(read_template("page.html.j2")).render(
        title=f"gapfloor: {source.name}",
        games=[findings.name(env) for env in findings.all_envs if findings.places_of(env)],
        headline=headline(findings),
        decision=decision(findings),
        source_name=source.name,
        findings=findings,
        sections=[
            (name, words)
            for name, words in sections.items()
            if (name != "replays" or scenes) and (name != "figures" or figures)
        ],
        legend=_legend(findings),
        verdicts=verdicts,
        scenes=scenes,
        figures=figures,
        formats=formats,
        tables=tables,
        facts=_facts(source, card),
        exploratory=_exploratory(findings),
        problems=findings.results.problems,
        runs=source.provenance.runs,
        card=card_to_markdown(card),
        version=gapfloor.__version__,
        css=Markup(read_template("page.css")),
        js=Markup(read_template("page.js")),
    )


def _finalize(value: Any) -> Any:
    """Text from the data without characters that have no glyph; our own markup as it is."""
    return clean_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _legend(findings: Findings) -> list[LegendEntry]:
    rules = [
        LegendEntry(words=f"{'merged argmax' if rule == MERGED else rule} actions", ink=rule_ink(rule))
        for rule in findings.rules
    ]
    return [*rules, LegendEntry(words="random floor (band: 95% interval)", guide="floor")]


def _strip(place: GameFindings) -> Markup:
    """The number line of a verdict; empty where nothing was compared with the floor."""
    panel = verdict_strip(place)
    if panel is None:
        return Markup("")
    n_rows = sum(isinstance(shape, PointMark) for shape in panel.shapes)
    return Markup(panel_svg(panel, size=(320.0, 22.0 + 22.0 * n_rows), is_strip=True))


def _facts(source: ReportSource, card: dict[str, Any]) -> list[tuple[str, str]]:
    """What the card says about the study, and what only the page has room for."""
    plan, provenance = source.findings.plan, source.provenance
    facts = card_facts(card)
    if not facts["Verified"]:
        facts["Verified"] = "no: gapfloor verify has not seen these cells"
    slots = " or ".join(map(str, provenance.slots))
    burn_in = " or ".join(map(str, provenance.burn_in)) or "0"
    facts["Slots"] = f"{slots}, burn-in of {burn_in} episodes per slot" if slots else ""
    facts["Inference"] = ", ".join((*provenance.backends, *provenance.devices))
    named = [(name, value or "not recorded in these data") for name, value in facts.items()]
    named += [("Locked before", entry) for entry in plan.earlier_locks]
    return [*named, *((f"Addendum {entry.name}", f"{entry.status}, {entry.hash}") for entry in plan.addenda)]


def _exploratory(findings: Findings) -> list[str]:
    results = findings.results
    groups: dict[str, tuple[Row, ...]] = {
        "comparison with the floor": results.floor_comparisons,
        "comparison with a stricter reference": results.reference_comparisons,
        "gap": results.gaps,
        "difference between rules": results.pairs,
        "difference between agents": results.encoders,
        "entropy screen": results.screen,
    }
    reasons = Counter(
        (row.exploratory_reason or "not named by the plan", kind)
        for kind, rows in groups.items()
        for row in rows
        if row.status == "exploratory"
    )
    return [f"{count} × {kind}: {reason}." for (reason, kind), count in sorted(reasons.items())]
