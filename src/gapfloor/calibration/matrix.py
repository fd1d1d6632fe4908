"""The action-by-action equivalence matrix as text.

Rows and columns are actions; a cell says in what share of the states the two were the same. Classes of the game are
the full cells; half-full ones show how much more the states themselves merge.
"""

from __future__ import annotations

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
