"""Find held-out levels that equal a training level."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gapfloor.api.progress import step_teller
from gapfloor.engines.engine import PROCGEN, Option
from gapfloor.engines.level_comparison import compare_levels
from gapfloor.engines.registry import make_spec
from gapfloor.errors import UsageError
from gapfloor.levels.overlap import Leakage
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.protocol import expand_games
from gapfloor.records.atomic import check_folder, write_text_atomically


def levels(
    games: str | Sequence[str],
    *,
    train: str | range = "0:200",
    test: str | range = "1000:1100",
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    store: str | Path | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> Leakage:
    """Find held-out levels that equal a training level.

    ProcGen's levels are compared without backgrounds and themes: the first screen, the whole level, and where those
    agree, fixed action sequences. In other engines everything that can be seen is compared: first observations,
    pictures, and a sequence of random actions. Pairs are then confirmed or refuted by longer random play.

    Args:
        games: One or more games of ProcGen, the groups paper and all, gym:ID, envpool:ID or package.module:make.
        train: Training levels: START:STOP or a `range`.
        test: Held-out levels, in the same form as `train`.
        mode: ProcGen's mode (default: easy).
        options: Options of an engine other than ProcGen, e.g. size=8.
        store: Store that keeps the result (leakage/): its `report` shows the gap with and without the leaked levels.
        progress: Called with words about what is being compared. None: a line per step on a terminal or in a
            notebook; False: nothing.

    Returns:
        One entry per game with its pairs of equal levels.

    Command line:
        gapfloor levels coinrun --store gapfloor-store
        gapfloor levels all --mode hard --json
        gapfloor levels gym:MiniGrid-FourRooms-v0

    Examples:
        >>> import gapfloor
        >>> found = gapfloor.levels("maze", train=range(20), test=range(1000, 1010), progress=False)
        >>> found.games[0].leaked
        ()
    """
    sets = {"train": LevelSet.parse(train), "test": LevelSet.parse(test)}
    named = expand_games([games] if isinstance(games, str) else games)
    specs = [make_spec(game, mode=mode, options=options) for game in named]
    if options and any(spec.engine == PROCGEN.name for spec in specs):
        raise UsageError(
            "ProcGen's levels are compared without backgrounds and themes: leave the options out."
        )
    check_folder(store)
    tell = step_teller(progress)
    found = Leakage(tuple(compare_levels(spec, **sets, tell=tell) for spec in specs))
    for overlap in found.games if store is not None else ():
        name = re.sub(r"[^\w.-]", "_", f"{overlap.game}-{overlap.mode}")
        write_text_atomically(Path(str(store)) / "leakage" / f"{name}.json", Leakage((overlap,)).to_json())
    return found
