"""Pictures of levels that are the same: a training level next to its held-out twin, with their numbers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.engines.layouts import WHOLE
from gapfloor.engines.procgen import ProcgenEngine
from gapfloor.levels import LevelSet
from gapfloor.levels.overlap import LevelOverlap

Frame = npt.NDArray[np.uint8]

#: Pixels of a picture's side, of the space between, and of a line of text.
_SIDE, _GAP, _LINE = 128, 6, 18
_COLUMNS = 2
#: Held-out levels on one sheet; a longer list is cut, and the sheet says so.
MOST_PAIRS = 60


def first_frames(
    game: str, mode: str, levels: Sequence[int], options: Mapping[str, bool]
) -> dict[int, Frame]:
    """The first frame of each level from its own initial state."""
    engine = ProcgenEngine(
        game, slots=1, levels=LevelSet(levels[0], levels[0] + 1), mode=mode, options=options
    )
    frames = {}
    for level in levels:
        engine.load(0, engine.initial_state(level))
        frames[level] = engine.frame(0)
    engine.close()
    return frames


def draw_pairs(overlap: LevelOverlap) -> bytes:
    """A PNG sheet: for each leaked level a training twin and itself, as agents see them and as they were compared."""
    from PIL import Image, ImageDraw, ImageFont

    twins = overlap.twins
    shown = overlap.leaked[:MOST_PAIRS]
    levels = sorted({*shown, *(twins[held][0] for held in shown)})
    seen = first_frames(overlap.game, overlap.mode, levels, {}) if levels else {}
    whole = first_frames(overlap.game, overlap.mode, levels, WHOLE) if levels else {}

    width = 4 * _SIDE + 5 * _GAP
    height = _SIDE + _LINE + 2 * _GAP
    rows = -(-len(shown) // _COLUMNS)
    sheet = Image.new("RGB", (_COLUMNS * width, 2 * _LINE + 2 * _GAP + rows * height), "white")
    draw = ImageDraw.Draw(sheet)
    font: Any = ImageFont.load_default(size=13)
    draw.text((_GAP, _GAP), _heading(overlap, len(shown)), fill="black", font=font)
    legend = "each: training | held-out as an agent first sees them, then both whole levels as compared"
    draw.text((_GAP, _GAP + _LINE), legend, fill="dimgray", font=font)
    for at, held in enumerate(shown):
        left = at % _COLUMNS * width + _GAP
        top = 2 * _LINE + 2 * _GAP + at // _COLUMNS * height
        known = twins[held][0]
        draw.text((left, top), _label(known, held, twins[held][1:]), fill="black", font=font)
        for place, frame in enumerate((seen[known], seen[held], whole[known], whole[held])):
            picture = Image.fromarray(frame).resize((_SIDE, _SIDE), Image.Resampling.NEAREST)
            sheet.paste(picture, (left + place * (_SIDE + _GAP), top + _LINE))
    buffer = io.BytesIO()
    sheet.save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()


def _heading(overlap: LevelOverlap, shown: int) -> str:
    more = f" (the first {shown} are shown)" if shown < len(overlap.leaked) else ""
    return (
        f"{overlap.game} {overlap.mode}: {len(overlap.leaked)} of {overlap.test.n} held-out levels {overlap.test} have "
        f"the layout of a training level {overlap.train}{more}"
    )


def _label(known: int, held: int, others: Sequence[int]) -> str:
    also = f" (also {', '.join(map(str, others[:6]))}{', ...' if len(others) > 6 else ''})" if others else ""
    return f"training {known} | held-out {held}{also}"
