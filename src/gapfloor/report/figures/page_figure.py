"""Figures for the page: the same descriptions as inline SVG, themed by the page's colours.

A mark carries its numbers in `data-tip`; the page shows them on hover and on keyboard focus. A figure is one stop of
the Tab key: its first mark can be reached, and the arrow keys lead to the others. Colour is never the only difference:
rules differ in shape, level sets in filling.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from gapfloor.escape import clean_text
from gapfloor.report.figures.model import INKS, CurveMark, GuideLine, LegendEntry, PanelSpec, PointMark

_GUIDES = {
    "floor": "floorline", "floor train": "floorline dashed", "floor gap": "floortick", "cut": "cut",
    "maximum": "maximum", "zero": "zero", "link": "link",
}  # fmt: skip
_DASHES = {"-": "", "--": "dash-2", "-.": "dash-3", ":": "dash-4"}
_LETTER = 6.1
"""Width of an average letter of a tick in pixels."""
_NAME_LETTER = 7.2


@dataclass(frozen=True)
class _Frame:
    """Where the data of a panel lie within its drawing, in pixels."""

    panel: PanelSpec
    left: float
    right: float
    top: float
    bottom: float

    def x(self, value: float) -> float:
        scale = self.panel.x
        return self.left + _part(value, scale.low, scale.high) * (self.right - self.left)

    def y(self, value: float) -> float:
        scale = self.panel.y
        return self.bottom - _part(value, scale.low, scale.high) * (self.bottom - self.top)


def panel_svg(panel: PanelSpec, *, size: tuple[float, float], is_strip: bool = False) -> str:
    """A panel as a drawing that scales with its box; a strip has no grid and little room around it."""
    width, height = size
    letters = max((len(text) for _, text in panel.y.ticks_shown(4)), default=0)
    left = 10.0 + 16.0 * bool(panel.y.label) + _LETTER * letters
    if panel.y.has_names:
        left = max(64.0, 16.0 + _NAME_LETTER * letters)
        width += left
    left = 8.0 if is_strip else left
    top = 18.0 if any(isinstance(shape, GuideLine) and shape.label for shape in panel.shapes) else 10.0
    bottom = 20.0 if is_strip else 22.0 + 16.0 * bool(panel.x.label)
    frame = _Frame(panel, left, width - 10.0, top, height - bottom)
    parts = _axes(frame, is_strip=is_strip, width=width, height=height)
    for shape in panel.shapes:
        if isinstance(shape, PointMark):
            parts += _point(frame, shape)
        else:
            parts += _curve(frame, shape) if isinstance(shape, CurveMark) else _guide(frame, shape)
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" style="--natural:{width:g}px" role="group" '
        f'aria-label="{_words(panel.summary)}" preserveAspectRatio="xMidYMid meet">{"".join(parts)}</svg>'
    )


def legend_svg(entry: LegendEntry) -> str:
    """The sample of a legend's entry."""
    if entry.guide:
        parts = [f'<line class="{_GUIDES[entry.guide]}" x1="1" x2="21" y1="8" y2="8"/>']
    elif entry.is_curve:
        ink = INKS[entry.ink]
        parts = [f'<line class="curve {ink.css} {_DASHES[ink.dash]}" x1="1" x2="21" y1="8" y2="8"/>']
    else:
        parts = [_mark_svg(entry.ink, 11.0, 8.0, is_filled=entry.is_filled, attributes="")]
    return f'<svg class="sample" viewBox="0 0 22 16" width="22" height="16" aria-hidden="true">{"".join(parts)}</svg>'


def _part(value: float, low: float, high: float) -> float:
    return min(1.02, max(-0.02, (value - low) / (high - low or 1.0)))


def _axes(frame: _Frame, *, is_strip: bool, width: float, height: float) -> list[str]:
    panel, parts = frame.panel, []
    for value, words in panel.x.ticks_shown(5):
        x = frame.x(value)
        if not (is_strip or panel.x.has_names):
            parts.append(_line(x, frame.top, x, frame.bottom, "grid"))
        parts.append(_text(x, frame.bottom + 14, words))
    for value, words in panel.y.ticks_shown(4):
        y = frame.y(value)
        if panel.y.has_names:
            parts.append(_text(frame.left - 8, y + 4, words, anchor="end", kind="name"))
        else:
            parts.append(_line(frame.left, y, frame.right, y, "grid"))
            parts.append(_text(frame.left - 4, y + 3.5, words, anchor="end"))
    if panel.x.label:
        parts.append(_text((frame.left + frame.right) / 2, height - 6, panel.x.label, kind="axis-label"))
    if panel.y.label:
        middle = (frame.top + frame.bottom) / 2
        place = f"translate(11,{middle:.1f}) rotate(-90)"
        parts.append(
            f'<text class="axis-label" text-anchor="middle" transform="{place}">{_words(panel.y.label)}</text>'
        )
    if is_strip:
        parts.append(_line(frame.left, frame.bottom, frame.right, frame.bottom, "axis"))
    return parts


def _point(frame: _Frame, mark: PointMark) -> list[str]:
    x, y = frame.x(mark.x), frame.y(mark.y)
    parts = []
    if mark.interval:
        low, high = mark.interval
        ends = (
            (frame.x(low), y, frame.x(high), y) if mark.along == "x" else (x, frame.y(low), x, frame.y(high))
        )
        parts.append(_line(*ends, f"bar {INKS[mark.ink].css}"))
    parts.append(_mark_svg(mark.ink, x, y, is_filled=mark.is_filled, attributes=_told(mark.tip)))
    return parts


def _curve(frame: _Frame, curve: CurveMark) -> list[str]:
    ink = INKS[curve.ink]
    parts = []
    if curve.low:
        upper = list(zip(curve.x, curve.high, strict=True))
        lower = list(zip(curve.x, curve.low, strict=True))
        parts.append(f'<polygon class="band {ink.css}" points="{_path(frame, [*upper, *reversed(lower)])}"/>')
    points = _path(frame, list(zip(curve.x, curve.y, strict=True)))
    told = _told(curve.tip) if curve.tip else ""
    parts.append(f'<polyline class="curve {ink.css} {_DASHES[ink.dash]}" {told} points="{points}"/>')
    return parts


def _guide(frame: _Frame, guide: GuideLine) -> list[str]:
    is_upright = guide.across == "x"
    if is_upright:
        at = frame.x(guide.at)
        first, last = map(frame.y, guide.span[::-1]) if guide.span else (frame.top, frame.bottom)
        place = (at, first, at, last)
    else:
        at = frame.y(guide.at)
        first, last = map(frame.x, guide.span) if guide.span else (frame.left, frame.right)
        place = (first, at, last, at)
    css = _GUIDES[guide.kind] + (f" {INKS[guide.ink].css}" if guide.ink else "")
    parts = []
    if guide.band:
        first, last = sorted(map(frame.x if is_upright else frame.y, guide.band))
        length = max(1.0, last - first)
        box = (frame.left, first, frame.right - frame.left, length)
        if is_upright:
            box = (first, frame.top, length, frame.bottom - frame.top)
        parts.append(
            f'<rect class="floorband" x="{box[0]:.1f}" y="{box[1]:.1f}" width="{box[2]:.1f}" height="{box[3]:.1f}"/>'
        )
    parts.append(_line(*place, css))
    if guide.tip:
        parts.append(_line(*place, "hit", more=_told(guide.tip)))
    if guide.label:
        # Near an edge the words lean inwards.
        part = (at - frame.left) / (frame.right - frame.left)
        anchor = "start" if part < 0.08 else ("end" if part > 0.92 else "middle")
        parts.append(_text(at, frame.top - 5, guide.label, anchor=anchor, kind="tick strong"))
    return parts


def _mark_svg(ink: str, x: float, y: float, *, is_filled: bool, attributes: str) -> str:
    """The shape of an ink around a point."""
    look = INKS[ink]
    start = f'class="mark {look.css} {"filled" if is_filled else "hollow"}" {attributes}'
    if look.shape == "circle":
        return f'<circle {start} cx="{x:.1f}" cy="{y:.1f}" r="5"/>'
    if look.shape == "square":
        return f'<rect {start} x="{x - 4.375:.1f}" y="{y - 4.375:.1f}" width="8.8" height="8.8"/>'
    r = 6.25
    corners = (
        [(0.0, -r), (r, r), (-r, r)]
        if look.shape == "triangle"
        else [(0.0, -r), (r, 0.0), (0.0, r), (-r, 0.0)]
    )
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon {start} points="{points}"/>'


def _told(tip: str) -> str:
    return f'role="img" aria-label="{_words(tip)}" data-tip="{_words(tip)}"'


def _words(text: str) -> str:
    return escape(clean_text(text), quote=True)


def _path(frame: _Frame, points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in points)


def _text(x: float, y: float, words: str, *, anchor: str = "middle", kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_words(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str, *, more: str = "") -> str:
    return f'<line class="{kind}" {more} x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'
