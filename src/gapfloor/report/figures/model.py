"""How a figure is described: panels with scales and marks, once for print and page.

A description knows data coordinates, words and what a mark means (its ink); it knows neither pixels nor inches. The
renderers, `print_figure` (matplotlib) and `page_figure` (inline SVG), decide how a guide or a tick looks.

There is one ink for each meaning, legible in grey and for the colour-blind. Rules differ in colour, shape and place;
agents in colour and dash; level sets in filling. Colours are Okabe and Ito's, which people with the common kinds of
colour-blindness can tell apart; the page has darker or lighter ones of the same names, for its light and dark theme.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.escape import clean_text
from gapfloor.report.findings import MERGED
from gapfloor.settings import shipped
from gapfloor.tables.cells import is_number

GuideKind = Literal["floor", "floor train", "floor gap", "cut", "maximum", "zero", "link"]
Ticks = tuple[tuple[float, str], ...]

#: Names from the data that are longer than this are cut in a figure; tables show them whole.
LONGEST_NAME = 28

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
#: The inks of rules; the agents of a panel have them in this order.
SERIES = ("sampled", "greedy", MERGED, "other")


def rule_ink(rule: str) -> str:
    """The ink of a rule."""
    return rule if rule in SERIES else "other"


@dataclass(frozen=True, kw_only=True)
class Scale:
    """One axis: its range, its words and where it is marked."""

    low: float
    high: float
    label: str = ""
    ticks: Ticks | None = None
    """Positions and words; None for round numbers, an empty tuple for none."""
    has_names: bool = False
    """Whether the ticks are names of things (games, rules) instead of numbers."""

    @classmethod
    def of_shapes(
        cls, shapes: Iterable[Shape], axis: Literal["x", "y"], *, label: str, starts_at_zero: bool = False
    ) -> Scale:
        """The range that these shapes need along one axis."""
        values: list[float] = []
        for shape in shapes:
            if isinstance(shape, PointMark):
                values += [getattr(shape, axis), *(shape.interval or () if shape.along == axis else ())]
            elif isinstance(shape, CurveMark):
                values += getattr(shape, axis)
            elif isinstance(shape, GuideLine) and shape.across == axis:
                values += [shape.at, *(shape.band or ())]
        low, high = padded(values, include=(0.0,) if starts_at_zero else ())
        return cls(low=0.0 if starts_at_zero else low, high=high, label=label)

    def ticks_shown(self, most: int = 5) -> Ticks:
        """The ticks with their words; at most about `most` where they are numbers."""
        if self.ticks is not None:
            return self.ticks
        # With a real minus sign.
        return tuple((at, f"{at:g}".replace("-", "−")) for at in nice_ticks(self.low, self.high, most))


@dataclass(frozen=True, kw_only=True)
class PointMark:
    """A point that has numbers of its own, with an interval along one axis where it has one."""

    x: float
    y: float
    ink: str
    tip: str = ""
    """What the page says of it."""
    is_filled: bool = True
    interval: tuple[float, float] | None = None
    along: Literal["x", "y"] = "y"


@dataclass(frozen=True, kw_only=True)
class CurveMark:
    """A line through points, with a band around it where it has an error."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    ink: str
    tip: str = ""
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class GuideLine:
    """A straight line at one value of an axis: a floor, a cut, a maximum, zero, a link between marks of one row."""

    at: float
    across: Literal["x", "y"]
    """The axis whose value it marks."""
    kind: GuideKind
    tip: str = ""
    band: tuple[float, float] | None = None
    span: tuple[float, float] | None = None
    """The part of the other axis that it covers; all of it where None."""
    ink: str = ""
    """Colour of another kind than the guide's own, e.g. the floor of one level set among two."""
    label: str = ""


Shape = PointMark | CurveMark | GuideLine


@dataclass(frozen=True, kw_only=True)
class PanelSpec:
    """One drawing area."""

    title: str = ""
    summary: str = ""
    """What the panel shows, for those who do not see the page."""
    x: Scale
    y: Scale
    shapes: tuple[Shape, ...]
    subtitle: tuple[str, ...] = ()
    """What is said below the title, one thing per line in print."""


@dataclass(frozen=True, kw_only=True)
class LegendEntry:
    """What an ink, or a guide, means."""

    words: str
    ink: str = ""
    is_filled: bool = True
    guide: GuideKind | None = None
    is_curve: bool = False


@dataclass(frozen=True, kw_only=True)
class FigureSpec:
    """A whole figure."""

    name: str
    """File stem."""
    title: str
    caption: str
    panels: tuple[PanelSpec, ...]
    legend: tuple[LegendEntry, ...] = ()
    size: tuple[float, float]
    """Width and height of one panel's drawing on the page, in CSS pixels, without room for names."""
    inches: tuple[float, float]
    """Width and height of one panel in print."""
    columns: int = 1
    """Panels in one line of print."""
    is_open: bool = True
    """Whether the page shows it at once."""


def described_figure(
    kind: str,
    panels: Iterable[PanelSpec],
    *,
    legend: Iterable[LegendEntry] = (),
    rows: int = 0,
    **changes: Any,
) -> FigureSpec:
    """The figure that `templates/figures.toml` describes, with these panels and what depends on the data.

    A panel of names has so many `rows`, each of which adds to its height.
    """
    layouts = shipped("report/templates/figures.toml")
    layout = layouts[kind]
    described = {**(layouts[layout["like"]] if "like" in layout else {}), **layout, **changes}
    entries = (LegendEntry(**entry) for entry in described.pop("legend", ()))
    described = {"name": kind, "title": "", **described}
    described.pop("like", None)
    if method := described.pop("method", ""):
        described["caption"] = described["caption"][method]
    for name, more in zip(("size", "inches"), described.pop("row", (0.0, 0.0)), strict=True):
        width, height = described[name]
        described[name] = (width, height + more * rows)
    return FigureSpec(panels=tuple(panels), legend=(*legend, *entries), **described)


def rules_legend(rules: Iterable[str]) -> list[LegendEntry]:
    """What the inks of rules mean."""
    return [LegendEntry(words=rule, ink=rule_ink(rule)) for rule in rules]


def name_text(name: str) -> str:
    """A name from the data as a figure shows it: printable, and cut where it is very long.

    >>> name_text("heist"), name_text("a" * 40)
    ('heist', 'aaaaaaaaaaaaaaaaaaaaaaaaaaa…')
    """
    clean = clean_text(name)
    return clean if len(clean) <= LONGEST_NAME else clean[: LONGEST_NAME - 1] + "…"


def names_scale(names: Sequence[str], *, low: float = 0.5, high: float = 0.5) -> Scale:
    """A vertical axis of names, the first on top at 0, the next at -1; `low` and `high` are the air around them."""
    ticks = tuple((-float(at), name_text(name)) for at, name in enumerate(names))
    return Scale(low=low - len(names), high=high, ticks=ticks, has_names=True)


def levels_words(level_set: str) -> str:
    """A level set within a sentence."""
    return {"train": "training levels", "test": "held-out levels"}.get(level_set, level_set)


def padded(
    values: Iterable[float], *, part: float = 0.08, include: Sequence[float] = ()
) -> tuple[float, float]:
    """The range of `values` with some air on both sides."""
    numbers = [value for value in (*values, *include) if is_number(value)]
    if not numbers:
        return 0.0, 1.0
    low, high = min(numbers), max(numbers)
    air = (high - low or abs(high) or 1.0) * part
    return low - air, high + air


def nice_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """At most about `most` round values between `low` and `high`.

    >>> nice_ticks(0, 19, 4)
    [0.0, 5.0, 10.0, 15.0]
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low]
    rough = span / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(i * step, 12) + 0.0 for i in range(first, last + 1)]


def interval_of(mean: float, error: float) -> tuple[float, float] | None:
    """`mean` minus and plus `error`, or None where there is no error."""
    return (mean - error, mean + error) if is_number(error) else None
