"""Find held-out levels whose layout equals a training level's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gapfloor.api.progress import step_teller
from gapfloor.engines.layout_pictures import draw_pairs
from gapfloor.engines.layouts import check_layouts
from gapfloor.engines.procgen import check_game, make_spec
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.levels.overlap import Leakage
from gapfloor.play.protocol import expand_games
from gapfloor.records.atomic import write_bytes_atomically, write_text_atomically


def check_levels(
    games: str | Sequence[str],
    *,
    train: str | range = "0:200",
    test: str | range = "1000:1100",
    mode: str = "easy",
    out: str | Path | None = None,
    store: str | Path | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> Leakage:
    """The held-out levels of each game whose layout equals a training level's.

    Levels are compared without backgrounds and themes: the first screen, the whole level, and where those agree, fixed
    action sequences. Pairs are then confirmed or refuted by longer random play.

    Args:
        games: One or more games of ProcGen, or the groups `paper` and `all`.
        train: Training levels: START:STOP or a `range`.
        test: Held-out levels, in the same form.
        mode: The engine's mode.
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
    for game in named:
        check_game(game)
        make_spec(game, mode=mode)
    for folder in (out, store):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file, not a folder: choose another folder.")
    found = Leakage(tuple(check_layouts(game, **sets, mode=mode, tell=tell) for game in named))
    if out is not None:
        _write(found, out)
    if store is not None:
        for overlap in found.games:
            path = store / "leakage" / f"{overlap.game}-{overlap.mode}.json"
            write_text_atomically(path, Leakage((overlap,)).to_json())
    return found


def _write(found: Leakage, folder: Path) -> None:
    """`leakage.json` and, where something leaked, a sheet of pictures per game."""
    for overlap in found.games:
        if overlap.pairs:
            write_bytes_atomically(folder / f"{overlap.game}-{overlap.mode}.png", draw_pairs(overlap))
    write_text_atomically(folder / "leakage.json", found.to_json())
