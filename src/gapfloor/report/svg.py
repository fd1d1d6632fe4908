"""Inline SVG: scales, marks and labels, themed by the page's colours.

A mark carries its numbers in `data-tip`; the page shows them on hover and on keyboard focus. Colour never stands
alone: rules differ in shape, level sets in filling.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from gapfloor.report.findings import FLOOR, MERGED
from gapfloor.report.formats import is_number


@dataclass(frozen=True)
class Panel:
    """One drawing with its title."""

    title: str
    svg: str
    subtitle: str = ""


@dataclass(frozen=True)
class Axis:
    """A linear scale from data to pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value, kept inside the frame."""
        span = self.high - self.low or 1.0
        part = min(1.02, max(-0.02, (value - self.low) / span))
        return self.start + part * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round values inside the range."""
        return nice_ticks(self.low, self.high, most)


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


def padded(
    values: Sequence[float], *, part: float = 0.08, include: Sequence[float] = ()
) -> tuple[float, float]:
    """The range of `values` with some air on both sides."""
    numbers = [value for value in (*values, *include) if is_number(value)]
    if not numbers:
        return 0.0, 1.0
    low, high = min(numbers), max(numbers)
    air = (high - low or abs(high) or 1.0) * part
    return low - air, high + air


def mark(rule: str, x: float, y: float, *, filled: bool, tip: str, size: float = 5) -> str:
    """A rule's mark: circle, square or diamond; hollow for training levels. Reachable by keyboard."""
    shape = {"sampled": "circle", "greedy": "square", MERGED: "diamond", FLOOR: "line"}.get(rule, "triangle")
    colour = css_name(rule)
    style = f'class="mark {colour} {"filled" if filled else "hollow"}"'
    meaning = (
        f'tabindex="0" role="img" aria-label="{escape(tip, quote=True)}" data-tip="{escape(tip, quote=True)}"'
    )
    if shape == "circle":
        return f'<circle {style} {meaning} cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'
    if shape == "square":
        side = size * 1.75
        return (
            f'<rect {style} {meaning} x="{x - side / 2:.1f}" y="{y - side / 2:.1f}" width="{side:.1f}" '
            f'height="{side:.1f}"/>'
        )
    corner = size * 1.25
    points = (
        f"{x:.1f},{y - corner:.1f} {x + corner:.1f},{y:.1f} {x:.1f},{y + corner:.1f} {x - corner:.1f},{y:.1f}"
    )
    if shape == "triangle":
        points = (
            f"{x:.1f},{y - corner:.1f} {x + corner:.1f},{y + corner:.1f} {x - corner:.1f},{y + corner:.1f}"
        )
    return f'<polygon {style} {meaning} points="{points}"/>'


def css_name(rule: str) -> str:
    """The class that colours a rule."""
    return {"sampled": "c-sampled", "greedy": "c-greedy", MERGED: "c-merged", FLOOR: "c-floor"}.get(
        rule, "c-other"
    )


def text(x: float, y: float, words: str, *, anchor: str = "middle", kind: str = "tick") -> str:
    """A label."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def drawing(width: float, height: float, parts: Sequence[str], label: str) -> str:
    """A whole SVG that scales with its box."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="group" aria-label="{escape(label, quote=True)}" '
        f'preserveAspectRatio="xMidYMid meet">{"".join(parts)}</svg>'
    )


def number_text(value: float) -> str:
    """A tick's number, with a real minus sign."""
    return f"{value:g}".replace("-", "−")


def y_axis(y: Axis, left: float, right: float) -> list[str]:
    """Grid lines and numbers of a vertical axis."""
    parts = []
    for tick in y.ticks(4):
        parts += [
            line(left, y.at(tick), right, y.at(tick), "grid"),
            text(left - 4, y.at(tick) + 3.5, number_text(tick), anchor="end"),
        ]
    return parts
