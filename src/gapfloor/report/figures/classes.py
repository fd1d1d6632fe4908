"""Which actions have the same effect: one row per game, one number per class of actions."""

from __future__ import annotations

from collections.abc import Sequence

from gapfloor.report.figure_data import GameActionClasses
from gapfloor.report.figures.model import FigureSpec, PanelSpec, Scale, Shape, TextMark, TileMark, name_text
from gapfloor.report.findings import Findings


def classes_figure(
    findings: Findings,
    classes: Sequence[GameActionClasses],
    action_names: Sequence[str],
    *,
    name: str,
    title: str,
) -> FigureSpec | None:
    """Games with other actions have a panel of their own; None where no classes are known."""
    if not classes:
        return None
    groups = _by_actions(findings, classes, action_names)
    most_rows = max(len(rows) for _, rows in groups)
    most_actions = max(len(entry.labels) for entry in classes)
    return FigureSpec(
        name=name,
        title=title,
        caption="Actions with the same number had the same effect in every calibrated state of the game.",
        panels=tuple(_panel(rows, names) for names, rows in groups),
        size=(30.0 * most_actions + 60.0, 30.0 * most_rows + 110.0),
        inches=(1.2 + 0.36 * most_actions, 0.9 + 0.3 * most_rows),
    )


def _by_actions(
    findings: Findings, classes: Sequence[GameActionClasses], action_names: Sequence[str]
) -> list[tuple[tuple[str, ...], list[GameActionClasses]]]:
    """The games in their order, those with the same actions together; `action_names` where the data give none."""
    order = {env.game: at for at, env in enumerate(findings.all_envs)}
    groups: dict[tuple[str, ...], list[GameActionClasses]] = {}
    for entry in sorted(classes, key=lambda entry: (order.get(entry.game, len(order)), entry.game)):
        groups.setdefault(entry.action_names or tuple(action_names), []).append(entry)
    return list(groups.items())


def _panel(rows: Sequence[GameActionClasses], action_names: Sequence[str]) -> PanelSpec:
    n_actions = max(len(entry.labels) for entry in rows)
    names = [action_names[at] if at < len(action_names) else str(at) for at in range(n_actions)]
    shapes: list[Shape] = []
    for at, entry in enumerate(rows):
        for action, label in enumerate(entry.labels):
            share = f"; taken on {entry.shares[action]:.0%} of steps" if action < len(entry.shares) else ""
            shapes.append(
                TileMark(
                    x=float(action),
                    y=-float(at),
                    shade=label,
                    letter=str(label + 1),
                    tip=f"{entry.game}: {names[action]} is in class {label + 1}{share}",
                )
            )
        shapes.append(TextMark(x=n_actions - 0.3, y=-float(at), words=f"k = {len(set(entry.labels))}"))
    return PanelSpec(
        title="",
        summary="Classes of actions with the same effect",
        x=Scale(
            low=-0.6,
            high=n_actions + 1.3,
            ticks=tuple((float(at), name_text(name)) for at, name in enumerate(names)),
            has_names=True,
            is_slanted=True,
        ),
        y=Scale(
            low=0.4 - len(rows),
            high=0.6,
            ticks=tuple((-float(at), name_text(entry.game)) for at, entry in enumerate(rows)),
            has_names=True,
        ),
        shapes=tuple(shapes),
    )
