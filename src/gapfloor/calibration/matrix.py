"""The action-by-action equivalence matrix as text and as a figure.

Rows and columns are actions; a cell says in what share of the states the two were the same. Classes of the game are
the full cells; half-full ones show how much more the states themselves merge.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from gapfloor.calibration.classes import ActionClasses

#: Never the same, in some states, in half of them or more, in every state.
GLYPHS = "·░▓█"
LEGEND = "█ the same in every state, ▓ in half of them or more, ░ in some, · never"


def glyph(equal: int, n_states: int) -> str:
    """The sign for a pair that is the same in `equal` of `n_states` states.

    >>> [glyph(equal, 4) for equal in (0, 1, 2, 4)]
    ['·', '░', '▓', '█']
    """
    if equal == n_states:
        return GLYPHS[3]
    if equal == 0:
        return GLYPHS[0]
    return GLYPHS[2] if 2 * equal >= n_states else GLYPHS[1]


def matrix_text(classes: ActionClasses) -> str:
    """The matrix as lines of text, each row with its action's number and name."""
    width = max(len(name) for name in classes.action_names)
    numbers = range(classes.partition.n_actions)
    lines = [" " * (width + 4) + " ".join(f"{number:>2}" for number in numbers)]
    for number, (name, row) in enumerate(zip(classes.action_names, classes.equal_states, strict=True)):
        cells = " ".join(f" {glyph(equal, classes.settings.states)}" for equal in row)
        lines.append(f"{name:>{width}} {number:>2} {cells}")
    return "\n".join(lines)


def matrix_figure(games: Sequence[ActionClasses]) -> Any:
    """The matrices of games side by side, as one matplotlib figure."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    columns = min(4, len(games))
    rows = math.ceil(len(games) / columns)
    figure = Figure(figsize=(3.3 * columns + 1.0, 3.5 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    for panel, classes in zip(panels.flat, games, strict=False):
        names = classes.action_names
        shares = [[equal / classes.settings.states for equal in row] for row in classes.equal_states]
        panel.imshow(shares, vmin=0, vmax=1, cmap="Blues")
        for first, second in ((i, j) for i in range(len(names)) for j in range(len(names)) if i != j):
            if shares[first][second] == 1:
                panel.plot(second, first, marker="s", color="white", markersize=2.5)
        panel.set_title(f"{classes.engine.game} ({classes.engine.mode}): k = {classes.k}", fontsize=9)
        panel.set_xticks(range(len(names)), names, rotation=90, fontsize=6)
        panel.set_yticks(range(len(names)), names, fontsize=6)
        panel.tick_params(labelbottom=True)
    for panel in panels.flat[len(games) :]:
        panel.set_axis_off()
    bar = figure.colorbar(panels[0, 0].images[0], ax=panels, shrink=0.6, aspect=30)
    bar.set_label(
        "share of states in which the two actions are the same\n(white mark: all of them)", fontsize=8
    )
    return figure
