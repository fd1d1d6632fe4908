"""All figures of a report, in the order of the page."""

from __future__ import annotations

from dataclasses import replace

from gapfloor.engines.procgen import ACTION_NAMES
from gapfloor.report.figures.classes import classes_figure
from gapfloor.report.figures.entropy import entropy_figure
from gapfloor.report.figures.entropy_training import training_figure
from gapfloor.report.figures.gaps import gaps_figure
from gapfloor.report.figures.levels import levels_figure
from gapfloor.report.figures.model import FigureSpec
from gapfloor.report.figures.returns import returns_figure
from gapfloor.report.findings import at_budget
from gapfloor.report.source import ReportSource


def build_figures(source: ReportSource) -> tuple[FigureSpec, ...]:
    """Every figure that the data allow; those of the main budget have plain names and come first."""
    findings = source.findings
    made: list[FigureSpec | None] = []
    for budget in sorted(findings.budgets, key=lambda budget: budget != findings.main_budget):
        end = "" if budget == findings.main_budget else f"_{findings.slug(budget)}"
        at = at_budget(budget)
        here = (
            returns_figure(findings, budget, name=f"returns{end}", title=f"Return against floor{at}"),
            gaps_figure(findings, budget, name=f"gaps{end}", title=f"Gap{at}"),
            entropy_figure(findings, budget, name=f"entropy{end}", title=f"Entropy, raw and merged{at}"),
            levels_figure(findings, source.levels, budget, name=f"levels{end}", title=f"Level by level{at}"),
        )
        is_open = budget == findings.main_budget
        made += [replace(figure, is_open=is_open) if figure else None for figure in here]
    for budget in dict.fromkeys(curve.budget for curve in source.curves):
        made.append(
            training_figure(
                findings, source.curves, budget, name=f"entropy_training{findings.slug(budget)}",
                title=f"Entropy during training{at_budget(budget)}",
            )
        )  # fmt: skip
    made.append(
        classes_figure(
            findings, source.classes, ACTION_NAMES, name="classes", title="Actions with the same effect"
        )
    )
    return tuple(figure for figure in made if figure is not None)
