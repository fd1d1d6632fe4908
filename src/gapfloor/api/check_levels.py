"""Find held-out levels whose layout equals a training level's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gapfloor.api.progress import step_teller
from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.engine import Option
from gapfloor.engines.layout_pictures import draw_pairs
from gapfloor.engines.level_comparison import compare_levels
from gapfloor.engines.registry import make_spec, split_game
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.levels.overlap import Leakage, LevelOverlap
from gapfloor.play.protocol import expand_games
from gapfloor.records.atomic import write_bytes_atomically, write_text_atomically


def check_levels(
    games: str | Sequence[str],
    *,
    train: str | range = "0:200",
    test: str | range = "1000:1100",
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    out: str | Path | None = None,
    store: str | Path | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> Leakage:
    """The held-out levels of each game that equal a training level.

    ProcGen's levels are compared without backgrounds and themes: the first screen, the whole level, and where those
    agree, fixed action sequences. In other engines everything that is seen counts: first observations, pictures, and
    a sequence of random actions. Pairs are then confirmed or refuted by longer random play.

    Args:
        games: One or more games of ProcGen, the groups `paper` and `all`, `gym:ID`, `envpool:ID` or
            `package.module:make`.
        train: Training levels: START:STOP or a `range`.
        test: Held-out levels, in the same form.
        mode: ProcGen's mode (default: easy).
        options: Options of an engine other than ProcGen, e.g. `{"size": 8}`.
        out: A folder for leakage.json and a sheet of pictures per game.
        store: A store that files the result, where `gapfloor levels gap` and `write_report` find it.
        progress: Called with words about what is being compared. None: a line per step on a terminal or in a
            notebook; False: nothing.

    Returns:
        One entry per game with its pairs of equal levels.

    Examples:
        >>> import gapfloor
        >>> found = gapfloor.check_levels("maze", train=range(20), test=range(1000, 1010), progress=False)
        >>> found.games[0].leaked
        ()
    """
    tell = step_teller(progress)
    out, store = (Path(folder) if folder is not None else None for folder in (out, store))
    sets = {"train": LevelSet.parse(train), "test": LevelSet.parse(test)}
    named = expand_games([games] if isinstance(games, str) else games)
    kinds = {game: split_game(game) for game in named}
    specs = {
        game: make_spec(name if engine == PROCGEN.name else game, mode=mode, options=options)
        for game, (engine, name) in kinds.items()
    }
    if options and any(spec.engine == PROCGEN.name for spec in specs.values()):
        raise UsageError("Levels of ProcGen are compared without their looks: leave out --option.")
    for folder in (out, store):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file, not a folder: choose another folder.")
    found = Leakage(tuple(compare_levels(spec, **sets, tell=tell) for spec in specs.values()))
    if out is not None:
        _write(found, out)
    if store is not None:
        for overlap in found.games:
            path = store / "leakage" / f"{_file_name(overlap)}.json"
            write_text_atomically(path, Leakage((overlap,)).to_json())
    return found


def _write(found: Leakage, folder: Path) -> None:
    """`leakage.json` and, where something leaked, a sheet of pictures per game."""
    for overlap in found.games:
        if overlap.pairs and overlap.engine == PROCGEN.name:
            write_bytes_atomically(folder / f"{_file_name(overlap)}.png", draw_pairs(overlap))
    write_text_atomically(folder / "leakage.json", found.to_json())


def _file_name(overlap: LevelOverlap) -> str:
    return re.sub(r"[^\w.-]", "_", f"{overlap.game}-{overlap.mode}")
