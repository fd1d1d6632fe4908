"""Figures about actions: entropy raw and merged, entropy during training, and which actions have the same effect."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.analysis.rows import ScreenRow
from gapfloor.engines.procgen import ACTION_NAMES
from gapfloor.report.figure_data import GameActionClasses, SeedCurve
from gapfloor.report.figures.inks import series_ink
from gapfloor.report.figures.model import (
    CurveMark,
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    PointMark,
    Scale,
    Shape,
    TileMark,
    described_figure,
    name_text,
    names_scale,
    nice_ticks,
    steps_text,
)
from gapfloor.report.findings import MERGED, Findings, agent_name, at_budget
from gapfloor.tables.cells import fixed, is_number


def entropy_figure(findings: Findings, budget: str) -> FigureSpec | None:
    """Raw entropy next to merged entropy, with the screen's cuts and the maximum, one row per game."""
    rows = [(place.name, place.screen) for place in findings.places(budget) if place.screen]
    if not rows:
        return None
    maximum = max(row.maximum for _, row in rows)
    # Games with few actions cannot reach every cut.
    shapes: list[Shape] = [
        GuideLine(at=cut, across="x", kind="cut", label=f"{cut:g}")
        for cut in findings.plan.cuts
        if cut <= maximum
    ]
    shapes.append(GuideLine(at=maximum, across="x", kind="maximum", label="max"))
    for at, (game, row) in enumerate(rows):
        shapes += _entropy_marks(game, row, -float(at))
    panel = PanelSpec(
        title="",
        summary="Raw and merged entropy by game",
        x=Scale(low=0.0, high=maximum * 1.03, label="entropy (nats)"),
        y=names_scale([game for game, _ in rows]),
        shapes=tuple(shapes),
    )
    n_rows = len(rows)
    return described_figure(
        "entropy", [panel], size=(380.0, 84.0 + 26.0 * n_rows), inches=(5.2, 0.9 + 0.32 * n_rows)
    )


def _entropy_marks(game: str, row: ScreenRow, y: float) -> list[Shape]:
    raw = row.entropy_probe if is_number(row.entropy_probe) else row.entropy
    lies = f"; {row.share:.0%} of the raw entropy lies on actions with the same effect"
    marks = [
        ("raw entropy", raw, row.tier, "sampled", True, ""),
        ("merged by game", row.merged_game, row.merged_tier_game, MERGED, False, ""),
        (
            "merged by state", row.merged_state, row.merged_tier_state, MERGED, True,
            lies if is_number(row.share) else "",
        ),
    ]  # fmt: skip
    found = [mark for mark in marks if is_number(mark[1])]
    ends = [value for _, value, *_ in found]
    link = GuideLine(at=y, across="y", kind="link", span=(min(ends), max(ends)))
    shapes: list[Shape] = [link] if len(ends) > 1 else []
    for words, value, tier, ink, is_filled, more in found:
        tip = f"{game}: {words} {fixed(value, 3).plain} nats ({tier}){more}"
        shapes.append(PointMark(x=value, y=y, ink=ink, tip=tip, is_filled=is_filled))
    return shapes


def training_figure(findings: Findings, budget: str, curves: Sequence[SeedCurve]) -> FigureSpec:
    """Policy entropy during training, one panel per game: the mean over seeds of each agent."""
    here = [curve for curve in curves if curve.budget == budget]
    agents = list(dict.fromkeys(curve.agent for curve in here))
    games = dict.fromkeys((curve.game, curve.mode) for curve in here)
    return described_figure(
        "entropy_training",
        [
            _training_panel(findings, [curve for curve in here if (curve.game, curve.mode) == game], agents)
            for game in games
        ],
        name=f"entropy_training{findings.slug(budget)}",
        title=f"Entropy during training{at_budget(budget)}",
        legend=[
            LegendEntry(words=name_text(agent_name(agent)), ink=series_ink(at), is_curve=True)
            for at, agent in enumerate(agents)
        ],
    )


def _training_panel(findings: Findings, curves: Sequence[SeedCurve], agents: Sequence[str]) -> PanelSpec:
    first = curves[0]
    screen = findings.place(findings.env_of(first), first.budget).screen
    shapes: list[Shape] = [GuideLine(at=cut, across="y", kind="cut") for cut in findings.plan.cuts]
    shapes += [GuideLine(at=screen.maximum, across="y", kind="maximum")] if screen else []
    for curve in curves:
        errors = list(zip(curve.mean, curve.sem, strict=True)) if curve.n > 1 else []
        shapes.append(
            CurveMark(
                x=curve.steps,
                y=curve.mean,
                ink=series_ink(agents.index(curve.agent)),
                tip=f"{agent_name(curve.agent)} (n = {curve.n}): {curve.mean[0]:.2f} → {curve.mean[-1]:.2f} nats",
                low=tuple(mean - error for mean, error in errors),
                high=tuple(mean + error for mean, error in errors),
            )
        )
    end = max(curve.steps[-1] for curve in curves)
    name = name_text(first.game)
    return PanelSpec(
        title=name,
        subtitle=tuple(f"{name_text(agent_name(curve.agent))} n = {curve.n}" for curve in curves),
        summary=f"{name}: entropy during training",
        x=Scale(
            low=0.0,
            high=end,
            label="environment steps",
            ticks=tuple((tick, steps_text(tick)) for tick in nice_ticks(0.0, end, 4)),
        ),
        y=Scale.of_shapes(shapes, "y", label="policy entropy (nats)"),
        shapes=tuple(shapes),
    )


def classes_figure(classes: Sequence[GameActionClasses], games: Sequence[str]) -> FigureSpec:
    """Which actions have the same effect: one row per game; games with other actions have a panel of their own."""
    order = {game: at for at, game in enumerate(games)}
    groups: dict[tuple[str, ...], list[GameActionClasses]] = {}
    for entry in sorted(classes, key=lambda entry: (order.get(entry.game, len(order)), entry.game)):
        # Data that do not name their actions are of ProcGen.
        groups.setdefault(entry.action_names or tuple(ACTION_NAMES), []).append(entry)
    most_rows = max(map(len, groups.values()))
    most_actions = max(len(entry.labels) for entry in classes)
    return described_figure(
        "classes",
        [_classes_panel(rows, names) for names, rows in groups.items()],
        size=(30.0 * most_actions + 60.0, 30.0 * most_rows + 110.0),
        inches=(1.2 + 0.36 * most_actions, 0.9 + 0.3 * most_rows),
    )


def _classes_panel(rows: Sequence[GameActionClasses], action_names: Sequence[str]) -> PanelSpec:
    n_actions = max(len(entry.labels) for entry in rows)
    names = [action_names[at] if at < len(action_names) else str(at) for at in range(n_actions)]
    shapes: list[Shape] = []
    for at, entry in enumerate(rows):
        for action, label in enumerate(entry.labels):
            share = f"; taken on {entry.shares[action]:.0%} of steps" if action < len(entry.shares) else ""
            tip = f"{entry.game}: {names[action]} is in class {label + 1}{share}"
            shapes.append(
                TileMark(x=float(action), y=-float(at), shade=label, letter=str(label + 1), tip=tip)
            )
    return PanelSpec(
        title="",
        summary="Classes of actions with the same effect",
        x=Scale(
            low=-0.6,
            high=n_actions - 0.4,
            ticks=tuple((float(at), name_text(name)) for at, name in enumerate(names)),
            has_names=True,
            is_slanted=True,
        ),
        y=names_scale(
            [f"{name_text(entry.game)}: {len(set(entry.labels))}" for entry in rows], low=0.4, high=0.6
        ),
        shapes=tuple(shapes),
    )
