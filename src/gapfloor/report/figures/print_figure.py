"""Figures for print: PDF, SVG and PNG of the same drawing by matplotlib.

Text stays text in PDF and SVG. Files carry no date, so the same data give the same bytes.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from gapfloor.records.atomic import write_bytes_atomically, write_text_atomically
from gapfloor.report.figures.model import (
    GREY,
    INKS,
    CurveMark,
    FigureSpec,
    GuideLine,
    LegendEntry,
    PanelSpec,
    PointMark,
)
from gapfloor.settings import shipped

_MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
#: Colour, width and dash of each kind of guide.
_GUIDES: dict[str, tuple[str, float, Any]] = {
    "floor": (GREY, 1.1, "-"),
    "floor train": (GREY, 1.1, "--"),
    "floor gap": (GREY, 2.2, "-"),
    "cut": (GREY, 0.8, (0, (5, 3))),
    "maximum": (GREY, 0.9, ":"),
    "zero": ("black", 0.7, "-"),
    "link": ("#bbbbbb", 1.2, "-"),
}


def drawing_style() -> AbstractContextManager[None]:
    """The settings of our figures: matplotlib's defaults and ours, whatever a matplotlibrc of the reader says."""
    import matplotlib.pyplot as plt

    style: AbstractContextManager[None] = plt.style.context(
        ["default", shipped("report/templates/print_style.toml")]
    )
    return style


def write_figures(figures: Iterable[FigureSpec], folder: Path, *, with_title: bool = False) -> list[Path]:
    """Draw each figure in three formats, which carry their title and caption, and write the caption as text."""
    import matplotlib

    matplotlib.use("Agg", force=False)
    import matplotlib.pyplot as plt

    written: list[Path] = []
    with drawing_style(), warnings.catch_warnings():
        # A name in letters that the font lacks is drawn with boxes; tables and page show it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        for spec in figures:
            drawn = draw_figure(spec)
            if with_title:
                drawn.suptitle(spec.title, fontsize=8)
            written += save_figure(drawn, folder, spec)
            plt.close(drawn)
    return written


def draw_figure(spec: FigureSpec) -> Any:
    """The figure as a matplotlib one."""
    import matplotlib.pyplot as plt

    count = len(spec.panels)
    columns = min(spec.columns, count)
    rows = math.ceil(count / columns)
    width, height = spec.inches
    figure, axes = plt.subplots(
        rows, columns, squeeze=False, figsize=(width * columns, height * rows + 0.25 * bool(spec.legend))
    )
    panels = list(axes.flat)
    for unused in panels[count:]:
        unused.set_visible(False)
    for at, (panel, place) in enumerate(zip(spec.panels, panels, strict=False)):
        _draw_panel(place, panel)
        # Panels of one line share what their axes mean: the words stand once.
        if at % columns and panel.y.label == spec.panels[at - 1].y.label:
            place.set_ylabel("")
    if spec.legend:
        handles = [_handle(entry) for entry in spec.legend]
        words = [entry.words for entry in spec.legend]
        # As many entries in a line as have room.
        room, letters = width * columns * 14, sum(len(each) + 8 for each in words)
        n = max(1, min(len(words), int(len(words) * room / letters)))
        figure.legend(handles, words, loc="outside lower center", ncols=n)
    return figure


def save_figure(figure: Any, folder: Path, spec: FigureSpec) -> list[Path]:
    """Write one matplotlib figure as PDF, SVG and PNG, and its caption."""
    import matplotlib

    write_text_atomically(folder / f"{spec.name}.txt", f"{spec.title}. {spec.caption}\n")
    written = [folder / f"{spec.name}.txt"]
    # Laid out once, not once per format. A figure that has a layout engine would be drawn twice each time, and
    # `savefig` would give it the engine that is the default.
    # The second pass sees where the panels of equal scales ended up: after one, titles can be outside the picture.
    for _ in range(2):
        figure.get_layout_engine().execute(figure)
    # With a date the files would differ from run to run.
    said: dict[str, dict[str, Any]] = {
        "pdf": {"Title": spec.title, "Subject": spec.caption, "CreationDate": None},
        "svg": {"Title": spec.title, "Description": spec.caption, "Date": None},
        "png": {"Title": spec.title, "Description": spec.caption},
    }
    with matplotlib.rc_context({"figure.constrained_layout.use": False}):
        figure.set_layout_engine(None)
        for kind, metadata in said.items():
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=200, metadata=metadata)
            path = folder / f"{spec.name}.{kind}"
            write_bytes_atomically(path, buffer.getvalue())
            written.append(path)
    return written


def _draw_panel(axes: Any, panel: PanelSpec) -> None:
    for shape in panel.shapes:
        draw: Any = {PointMark: _draw_point, CurveMark: _draw_curve, GuideLine: _draw_guide}[type(shape)]
        draw(axes, shape)
    axes.set_xlim(panel.x.low, panel.x.high)
    axes.set_ylim(panel.y.low, panel.y.high)
    for axis, scale in ((axes.xaxis, panel.x), (axes.yaxis, panel.y)):
        axis.set_label_text(scale.label)
        ticks = scale.ticks_shown()
        axis.set_ticks([value for value, _ in ticks], [words for _, words in ticks])
    title = "\n".join(filter(None, (panel.title, *panel.subtitle)))
    if title:
        # Without a place matplotlib looks for one at every drawing.
        axes.set_title(title, fontsize=7.5 if panel.subtitle else 8.5, wrap=True, y=1.0)


def _draw_curve(axes: Any, curve: CurveMark) -> None:
    ink = INKS[curve.ink]
    axes.plot(curve.x, curve.y, ink.dash, color=ink.colour, lw=1.2)
    if curve.low:
        axes.fill_between(curve.x, curve.low, curve.high, color=ink.colour, alpha=0.2, lw=0)


def _draw_point(axes: Any, mark: PointMark) -> None:
    ink = INKS[mark.ink]
    if mark.interval:
        ends = list(mark.interval)
        line = (ends, [mark.y] * 2) if mark.along == "x" else ([mark.x] * 2, ends)
        axes.plot(*line, color=ink.colour, lw=1.3)
    axes.plot([mark.x], [mark.y], **_marker(mark.ink, is_filled=mark.is_filled))


def _draw_guide(axes: Any, guide: GuideLine) -> None:
    colour, width, dash = _GUIDES[guide.kind]
    colour = INKS[guide.ink].colour if guide.ink else colour
    draw_line, draw_band = (
        (axes.axvline, axes.axvspan) if guide.across == "x" else (axes.axhline, axes.axhspan)
    )
    if guide.band:
        draw_band(*guide.band, color=colour, alpha=0.15, lw=0)
    if guide.span:
        ends, at = list(guide.span), [guide.at] * 2
        line = (at, ends) if guide.across == "x" else (ends, at)
        axes.plot(*line, color=colour, lw=width, ls=dash, zorder=1 if guide.kind == "link" else 2)
    else:
        draw_line(guide.at, color=colour, lw=width, ls=dash)


def _marker(ink: str, *, is_filled: bool) -> dict[str, Any]:
    look = INKS[ink]
    return {
        "marker": _MARKERS[look.shape], "ls": "", "color": look.colour, "ms": 4.5,
        "mfc": look.colour if is_filled else "white",
    }  # fmt: skip


def _handle(entry: LegendEntry) -> Any:
    from matplotlib.lines import Line2D

    if entry.guide:
        colour, width, dash = _GUIDES[entry.guide]
        return Line2D([], [], color=colour, lw=width, ls=dash)
    if entry.is_curve:
        return Line2D([], [], color=INKS[entry.ink].colour, ls=INKS[entry.ink].dash, lw=1.2)
    return Line2D([], [], **_marker(entry.ink, is_filled=entry.is_filled))
