"""Figures for print: PDF, SVG and PNG of the same drawing, legible in grey and for the colour-blind.

Rules differ in colour, shape and place; agents in colour and dash; level sets in filling. Text stays text in PDF and
SVG. Files carry no date, so the same data give the same bytes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from gapfloor.engines.procgen import ACTION_NAMES
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.report.figure_data import ActionClasses
from gapfloor.report.findings import FLOOR, MERGED, TEST, TRAIN, Findings, agent_name
from gapfloor.report.formats import is_number
from gapfloor.report.page_figures import by_actions
from gapfloor.report.source import ReportSource
from gapfloor.report.tables.wording import slug

#: Okabe and Ito's palette, which people with the common kinds of colour-blindness can tell apart.
BLUE, ORANGE, PURPLE, GREEN, GREY = "#0072B2", "#D55E00", "#8B4A8F", "#009E73", "#555555"
_COLOURS = {"sampled": BLUE, "greedy": ORANGE, MERGED: PURPLE}
_MARKERS = {"sampled": "o", "greedy": "s", MERGED: "D"}
_SERIES = ((BLUE, "-"), (ORANGE, "--"), (PURPLE, "-."), (GREEN, ":"))
_PANEL = (1.9, 1.75)
#: What every figure shares; use it with `plt.rc_context`.
STYLE = {
    "font.size": 8,
    "axes.titlesize": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "gapfloor",
    "figure.constrained_layout.use": True,
}


def write_figures(source: ReportSource, folder: Path) -> list[Path]:
    """Write every figure that the data allow, in three formats each; the files written."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    written: list[Path] = []
    # Names such as $x$ or a lone $ from the data must not start math mode.
    with plt.rc_context({**STYLE, "text.parse_math": False}):
        for name, draw in _plans(source):
            figure = draw()
            if figure is None:
                continue
            written += save_figure(figure, folder, name)
            plt.close(figure)
    return written


def _plans(source: ReportSource) -> Iterator[tuple[str, Callable[[], Any]]]:
    findings = source.findings
    for budget in findings.budgets:
        end = "" if budget == findings.main_budget else f"_{slug(budget)}"
        yield f"returns{end}", partial(draw_returns, findings, budget)
        yield f"gaps{end}", partial(draw_gaps, findings, budget)
        yield f"entropy{end}", partial(draw_entropy, findings, budget)
        yield f"levels{end}", partial(draw_levels, source, budget)
    for budget in dict.fromkeys(curve.budget for curve in source.curves):
        yield f"entropy_training{slug(budget)}", partial(draw_training, source, budget)
    yield "classes", partial(draw_classes, source)


def draw_training(source: ReportSource, budget: str) -> Any:
    """Entropy during training: one panel a game, mean over seeds per agent, band of one SEM, n in the legend."""
    curves = [curve for curve in source.curves if curve.budget == budget]
    games = list(dict.fromkeys((curve.game, curve.mode) for curve in curves))
    if not games:
        return None
    figure, panels = _grid(len(games), columns=3, panel=(2.3, 2.0))
    low, high = source.findings.plan.cuts
    for axes, game in zip(panels, games, strict=False):
        for at, curve in enumerate(c for c in curves if (c.game, c.mode) == game):
            colour, dash = _SERIES[at % len(_SERIES)]
            millions = [step / 1e6 for step in curve.steps]
            axes.plot(
                millions,
                curve.mean,
                dash,
                color=colour,
                lw=1.3,
                label=f"{agent_name(curve.agent)} (n={curve.n})",
            )
            if curve.n > 1:
                below = [m - e for m, e in zip(curve.mean, curve.sem, strict=True)]
                above = [m + e for m, e in zip(curve.mean, curve.sem, strict=True)]
                axes.fill_between(millions, below, above, color=colour, alpha=0.2, lw=0)
        for cut in (low, high):
            axes.axhline(cut, color=GREY, lw=0.8, ls=(0, (5, 3)))
        axes.axhline(math.log(15), color=GREY, lw=0.9, ls=":")
        axes.set_title(game[0])
        axes.set_xlabel("environment steps (millions)")
        axes.legend(loc="lower left")
    panels[0].set_ylabel("policy entropy (nats)")
    return figure


def draw_returns(findings: Findings, budget: str) -> Any:
    """Return against floor under every rule, one panel a game."""
    envs = [env for env in findings.envs(budget) if findings.comparison(env, budget, findings.primary, TEST)]
    if not envs:
        return None
    figure, panels = _grid(len(envs), columns=4)
    for axes, env in zip(panels, envs, strict=False):
        names: list[str] = []
        for level_set, dash in ((TEST, "-"), (TRAIN, "--")):
            floor = findings.floor(env, level_set, budget=budget)
            if floor is not None:
                axes.axhline(floor.mean, color=GREY, lw=1.1, ls=dash)
                if level_set == TEST and is_number(floor.sem):
                    ends = (floor.mean - 1.96 * floor.sem, floor.mean + 1.96 * floor.sem)
                    axes.axhspan(*ends, color=GREY, alpha=0.15, lw=0)
        for rule in findings.rules:
            if findings.comparison(env, budget, rule, TEST) is None or rule == FLOOR:
                continue
            at = len(names)
            names.append(rule)
            for level_set, shift in ((TRAIN, -0.15), (TEST, 0.15)):
                row = findings.comparison(env, budget, rule, level_set)
                if row is None:
                    continue
                axes.errorbar(
                    [at + shift], [row.test.mean], yerr=[row.test.sem] if is_number(row.test.sem) else None,
                    fmt=_marker(rule), color=_colour(rule), mfc=_colour(rule) if level_set == TEST else "white", ms=4.5,
                    lw=1.2,
                )  # fmt: skip
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.set_title(findings.name(env))
    panels[0].set_ylabel("return")
    figure.supxlabel(
        "filled: held-out, hollow: training levels; grey: random floor (solid held-out with 95% band, dashed training)",
        fontsize=7.5,
    )
    return figure


def draw_gaps(findings: Findings, budget: str) -> Any:
    """Forest plot of gaps with the floor's own gap."""
    import matplotlib.pyplot as plt

    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    envs = [env for env in findings.envs(budget) if findings.gap(env, budget, findings.primary)]
    if not envs:
        return None
    figure, axes = plt.subplots(figsize=(5.2, 0.7 + 0.42 * len(envs)))
    axes.axvline(0, color="black", lw=0.7)
    for at, env in enumerate(envs):
        y = len(envs) - 1 - at
        for rule, shift in zip(rules, (0.15, -0.15), strict=False):
            gap = findings.gap(env, budget, rule)
            if gap is None:
                continue
            if is_number(gap.gap.ci[0]):
                axes.plot(gap.gap.ci, [y + shift] * 2, color=_colour(rule), lw=1.4)
            axes.plot(
                [gap.gap.mean],
                [y + shift],
                _marker(rule),
                color=_colour(rule),
                ms=4.5,
                label=rule if at == 0 else None,
            )
            if rule == rules[0] and is_number(gap.floor_gap):
                label = "floor's own gap" if at == 0 else None
                axes.plot([gap.floor_gap] * 2, [y - 0.3, y + 0.3], color=GREY, lw=2.2, label=label)
    axes.set_yticks([len(envs) - 1 - at for at in range(len(envs))], [findings.name(env) for env in envs])
    axes.set_xlabel("gap: train − test return, with 95% bootstrap interval")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def draw_entropy(findings: Findings, budget: str) -> Any:
    """Raw entropy against merged entropy, with the cuts and the maximum."""
    import matplotlib.pyplot as plt

    rows = [(env, row) for env in findings.envs(budget) if (row := findings.screen(env, budget))]
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(5.2, 0.7 + 0.32 * len(rows)))
    low, high = findings.plan.cuts
    for cut in (low, high):
        axes.axvline(cut, color=GREY, lw=0.8, ls=(0, (5, 3)))
    axes.axvline(rows[0][1].maximum, color=GREY, lw=0.9, ls=":")
    for at, (_, row) in enumerate(rows):
        y = len(rows) - 1 - at
        raw = row.entropy_probe if is_number(row.entropy_probe) else row.entropy
        ends = [value for value in (raw, row.merged_state, row.merged_game) if is_number(value)]
        axes.plot([min(ends), max(ends)], [y, y], color="#bbbbbb", lw=1.2, zorder=1)
        axes.plot([raw], [y], "o", color=BLUE, ms=5, label="raw" if at == 0 else None)
        if is_number(row.merged_state):
            axes.plot(
                [row.merged_state],
                [y],
                "D",
                color=PURPLE,
                ms=4.5,
                label="merged by state" if at == 0 else None,
            )
        if is_number(row.merged_game):
            axes.plot(
                [row.merged_game], [y], "D", color=PURPLE, mfc="white", ms=4.5,
                label="merged by game" if at == 0 else None,
            )  # fmt: skip
    axes.set_yticks([len(rows) - 1 - at for at in range(len(rows))], [findings.name(env) for env, _ in rows])
    axes.set_xlim(0, rows[0][1].maximum * 1.04)
    axes.set_xlabel("entropy (nats); dashed: the screen's cuts, dotted: maximum")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def draw_levels(source: ReportSource, budget: str) -> Any:
    """Per-level returns, runs against floor, one panel a game."""
    findings = source.findings
    panels_of = {
        env: [
            panel
            for panel in source.levels
            if (panel.game, panel.mode, panel.budget) == (env.game, env.mode, budget)
        ]
        for env in findings.envs(budget)
    }
    envs = [env for env, members in panels_of.items() if members]
    if not envs:
        return None
    figure, panels = _grid(len(envs), columns=4)
    rules = [rule for rule in findings.rules if any(p.rule == rule for env in envs for p in panels_of[env])]
    handles = {}
    for axes, env in zip(panels, envs, strict=False):
        members = sorted(panels_of[env], key=lambda panel: rules.index(panel.rule))
        for panel in members:
            handles[panel.rule] = axes.scatter(
                [point.floor for point in panel.points], [point.policy for point in panel.points], s=7,
                marker=_marker(panel.rule), color=_colour(panel.rule), alpha=0.5, lw=0,
            )  # fmt: skip
        axes.axline((0, 0), slope=1, color="black", lw=0.6)
        counts = ", ".join(f"{panel.rule} {panel.above}/{panel.n_levels}" for panel in members)
        axes.set_title(f"{findings.name(env)}\n{counts}", fontsize=7.5)
    panels[0].set_ylabel("runs' mean on the level")
    figure.legend(
        list(handles.values()), list(handles), loc="outside upper center", ncols=len(handles), markerscale=2
    )
    figure.supxlabel(
        "random floor on the same held-out level (titles: levels above the diagonal)", fontsize=7.5
    )
    return figure


def draw_classes(source: ReportSource) -> Any:
    """Which actions do the same, a letter a class."""
    import matplotlib.pyplot as plt

    if not source.classes:
        return None
    groups = by_actions(source.findings, source.classes, ACTION_NAMES)
    widest = max(len(entry.labels) for entry in source.classes)
    heights = [0.9 + 0.3 * len(rows) for _, rows in groups]
    figure, panels = plt.subplots(
        len(groups), 1, squeeze=False, figsize=(0.8 + 0.36 * widest, sum(heights)), height_ratios=heights
    )
    for axes, (names, rows) in zip(panels[:, 0], groups, strict=True):
        _draw_class_rows(axes, rows, names)
    return figure


def _draw_class_rows(axes: Any, rows: Sequence[ActionClasses], action_names: Sequence[str]) -> None:
    import matplotlib.pyplot as plt

    n_actions = max(len(entry.labels) for entry in rows)
    shades = plt.get_cmap("tab20", 20)
    for at, entry in enumerate(rows):
        y = len(rows) - 1 - at
        for action, label in enumerate(entry.labels):
            # Odd entries of this map are the pale ones, on which a black letter reads well.
            axes.add_patch(
                plt.Rectangle((action - 0.46, y - 0.44), 0.92, 0.88, color=shades((2 * label + 1) % 20))
            )
            axes.text(action, y, chr(ord("A") + label % 26), ha="center", va="center", fontsize=7.5)
        axes.text(n_actions - 0.3, y, f"k = {len(set(entry.labels))}", va="center", fontsize=7.5)
    names = [
        action_names[action] if action < len(action_names) else str(action) for action in range(n_actions)
    ]
    axes.set_xticks(range(n_actions), names, rotation=55, ha="left", fontsize=7)
    axes.xaxis.tick_top()
    axes.set_yticks([len(rows) - 1 - at for at in range(len(rows))], [entry.game for entry in rows])
    axes.set_xlim(-0.6, n_actions + 0.7)
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _grid(count: int, *, columns: int, panel: tuple[float, float] = _PANEL) -> tuple[Any, list[Any]]:
    import matplotlib.pyplot as plt

    columns = min(columns, count)
    rows = math.ceil(count / columns)
    figure, axes = plt.subplots(
        rows, columns, squeeze=False, figsize=(panel[0] * columns, panel[1] * rows + 0.25)
    )
    panels = list(axes.flat)
    for unused in panels[count:]:
        unused.set_visible(False)
    return figure, panels


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PDF, SVG and PNG; the files written."""
    written = []
    # Laid out once, not once a format.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    # Without these the files would differ from run to run by their date.
    dateless: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
    for kind, metadata in dateless.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=kind, dpi=200, metadata=metadata)
        path = folder / f"{name}.{kind}"
        write_bytes_atomically(path, buffer.getvalue())
        written.append(path)
    return written


def _colour(rule: str) -> str:
    return _COLOURS.get(rule, GREEN)


def _marker(rule: str) -> str:
    return _MARKERS.get(rule, "^")
