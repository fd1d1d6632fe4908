"""The same game with pictures that are cheaper to draw, for play that nobody looks at.

ProcGen draws a frame at every step, which is most of its work, and a reference such as the uniform floor never looks at
one. Without backgrounds, or with plain colours in place of sprites, a step takes down to half the time. Neither option
touches what happens in a game: `tests/engines/test_unseen.py` compares levels, rewards and ends of episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.picture_files import is_shown
from gapfloor.engines.protocol import EngineSpec, Option

_PLAIN: Mapping[str, Option] = {"use_backgrounds": False}
_PLAINER: Mapping[str, Option] = {**_PLAIN, "use_monochrome_assets": True}

#: What is fastest in each game. Filling an area with a colour is slower than drawing a small picture, so the games of
#: many small cells keep their sprites.
CHEAP_PICTURES: Mapping[str, Mapping[str, Option]] = {
    "bigfish": _PLAIN,
    "bossfight": _PLAINER,
    "climber": _PLAINER,
    "coinrun": _PLAINER,
    "dodgeball": _PLAINER,
    "fruitbot": _PLAINER,
    "heist": _PLAIN,
    "jumper": _PLAINER,
    "maze": _PLAINER,
    "miner": _PLAIN,
    "ninja": _PLAIN,
    "plunder": _PLAIN,
    "starpilot": _PLAINER,
}

#: The games in which plain colours are faster even than blank sprites (`picture_files`): they turn their sprites.
_TURNING = ("bossfight", "starpilot")


def unseen(spec: EngineSpec) -> EngineSpec:
    """A recipe of the same game for play without an observer; the recipe itself where none is known to be faster."""
    if spec.engine != PROCGEN.name or spec.options:
        return spec
    if is_shown(spec.game):
        options = CHEAP_PICTURES.get(spec.game, {})
    else:
        options = _PLAINER if spec.game in _TURNING else _PLAIN
    return replace(spec, options=tuple(sorted(options.items())))
