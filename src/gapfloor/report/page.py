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
from gapfloor.escape import clean_text
from gapfloor.report.card import card_facts, card_to_markdown
from gapfloor.report.figures.build import build_figures, verdict_strip
from gapfloor.report.figures.model import LegendEntry, PointMark, rule_ink
from gapfloor.report.figures.page_figure import legend_svg, panel_svg
from gapfloor.report.findings import MERGED, GameFindings
from gapfloor.report.replays import build_scenes
from gapfloor.report.source import ReportSource
from gapfloor.report.tables.build import Tables
from gapfloor.report.text_templates import environment
from gapfloor.report.verdict import Verdict, build_verdicts, decision, headline
from gapfloor.settings import shipped_text
from gapfloor.tables.formats import html_head, html_rows

#: What the page counts as exploratory -> the rows of the results.
_KINDS = {
    "comparison with the floor": "floor_comparisons", "comparison with a stricter reference": "reference_comparisons",
    "gap": "gaps", "difference between rules": "pairs", "difference between agents": "encoders",
    "entropy screen": "screen",
}  # fmt: skip


def render_page(
    source: ReportSource, tables: Tables, card: dict[str, Any], formats: Sequence[str] = ()
) -> str:
    """The whole page. `formats` are those that lie next to it, to which tables and figures link."""
    findings = source.findings
    # Text from the data loses characters that have no glyph; our own markup stays as it is.
    made = environment(
        autoescape=True, finalize=lambda value: clean_text(value) if type(value) is str else value
    )
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
    legend = [
        LegendEntry(words=f"{'merged argmax' if rule == MERGED else rule} actions", ink=rule_ink(rule))
        for rule in findings.rules
    ]
    exploratory = Counter(
        (row.exploratory_reason or "not named by the plan", kind)
        for kind, name in _KINDS.items()
        for row in getattr(findings.results, name)
        if row.status == "exploratory"
    )
    return made.from_string(shipped_text("report/templates/page.html.j2")).render(
        title=f"gapfloor: {source.name}",
        games=[findings.name(env) for env in findings.all_envs if findings.places_of(env)],
        headline=headline(findings),
        decision=decision(findings),
        source=source,
        findings=findings,
        legend=[*legend, LegendEntry(words="random floor (band: 95% interval)", guide="floor")],
        verdicts=verdicts,
        scenes=scenes,
        figures=figures,
        formats=formats,
        tables=tables,
        facts=card_facts(card),
        exploratory=sorted(exploratory.items()),
        card=card_to_markdown(card),
        version=gapfloor.__version__,
        css=Markup(shipped_text("report/templates/page.css")),
        js=Markup(shipped_text("report/templates/page.js")),
    )


def _strip(place: GameFindings) -> Markup:
    """The number line of a verdict; empty where nothing was compared with the floor."""
    panel = verdict_strip(place)
    if panel is None:
        return Markup("")
    n_rows = sum(isinstance(shape, PointMark) for shape in panel.shapes)
    return Markup(panel_svg(panel, size=(320.0, 22.0 + 22.0 * n_rows), is_strip=True))
