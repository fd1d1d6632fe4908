"""Find held-out levels whose layout equals a training level's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

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
    train: str = "0:200",
    test: str = "1000:1100",
    mode: str = "easy",
    out: Path | None = None,
    store: Path | None = None,
    tell: Callable[[str], None] = lambda words: None,
) -> Leakage:
    """The overlap of two level sets in each game.

    Args:
        games: one or more games, or the groups `paper` and `all`.
        train: training levels.
        test: held-out levels.
        mode: the engine's mode.
        out: a folder for `leakage.json` and a sheet of pictures per game.
        store: a store that files the result, where `levels gap` and `report` find it.
        tell: is told in words what is being compared.
    """
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
