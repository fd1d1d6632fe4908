"""What marks look like: one ink for each meaning, legible in grey and for the colour-blind.

Rules differ in colour, shape and place; agents in colour and dash; level sets in filling. Colours are Okabe and Ito's,
which people with the common kinds of colour-blindness can tell apart; the page has darker or lighter ones of the same
names, for its light and dark theme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gapfloor.report.findings import MERGED

BLUE, ORANGE, PURPLE, GREEN, GREY = "#0072B2", "#D55E00", "#8B4A8F", "#009E73", "#555555"


@dataclass(frozen=True)
class Ink:
    """Colour, shape and dash of one meaning."""

    colour: str
    shape: Literal["circle", "square", "diamond", "triangle"]
    dash: Literal["-", "--", "-.", ":"]
    css: str
    """The page's class with the colour."""


INKS = {
    "sampled": Ink(BLUE, "circle", "-", "c-sampled"),
    "greedy": Ink(ORANGE, "square", "--", "c-greedy"),
    MERGED: Ink(PURPLE, "diamond", "-.", "c-merged"),
    "other": Ink(GREEN, "triangle", ":", "c-other"),
    "floor": Ink(GREY, "circle", "-", "c-floor"),
    "test": Ink(BLUE, "circle", "-", "c-sampled"),
    "train": Ink(GREEN, "triangle", "--", "c-other"),
}
#: Agents of one panel, in this order.
_SERIES = ("sampled", "greedy", MERGED, "other")


def rule_ink(rule: str) -> str:
    """The ink of a rule."""
    return rule if rule in ("sampled", "greedy", MERGED) else "other"


def series_ink(at: int) -> str:
    """The ink of the agent at that place."""
    return _SERIES[at % len(_SERIES)]
