"""Find held-out levels that equal a training level, and the gap without them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gapfloor.api.leaked_gaps import LeakedGaps, gap_without_leaks
from gapfloor.api.progress import step_teller
from gapfloor.engines.catalogue import PROCGEN
from gapfloor.engines.engine import Option
from gapfloor.engines.level_comparison import compare_levels
from gapfloor.engines.registry import make_spec, split_game
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.levels.overlap import Leakage, LevelOverlap
from gapfloor.play.protocol import expand_games
from gapfloor.records.atomic import check_folder, write_text_atomically


def levels(
    games: str | Sequence[str] = (),
    *,
    train: str | range = "0:200",
    test: str | range = "1000:1100",
    mode: str | None = None,
    options: Mapping[str, Option] | None = None,
    gap: Any = None,
    leaks: str | Path | Leakage | None = None,
    out: str | Path | None = None,
    store: str | Path | None = None,
    progress: Callable[[str], None] | bool | None = None,
) -> Leakage | LeakedGaps:
    """Find held-out levels that equal a training level, or compute the gap without them.

    ProcGen's levels are compared without backgrounds and themes: the first screen, the whole level, and where those
    agree, fixed action sequences. In other engines everything that can be seen is compared: first observations,
    pictures, and a sequence of random actions. Pairs are then confirmed or refuted by longer random play.

    Args:
        games: One or more games of ProcGen, the groups paper and all, gym:ID, envpool:ID or package.module:make.
        train: Training levels: START:STOP or a `range`.
        test: Held-out levels, in the same form as `train`.
        mode: ProcGen's mode (default: easy).
        options: Options of an engine other than ProcGen, e.g. size=8.
        gap: Compute the gap of these episodes (a store or a file that `analyse` reads) with and without the leaked
            levels, for runs and for the floor on the same levels.
        leaks: With `gap`: the leaked levels, as a leakage.json or a folder that holds one (default: those of `games`,
            or those that the store of `gap` holds).
        out: Folder for leakage.json.
        store: Store that keeps the result (leakage/) for `gap` and `report`.
        progress: Called with words about what is being compared. None: a line per step on a terminal or in a
            notebook; False: nothing.

    Returns:
        One entry per game with its pairs of equal levels; with `gap` three rows per game, budget, agent and rule: all
        levels, without leaked and without shared ones.

    Raises:
        UsageError: There are no leaks to be read, or `gap` has no run on both level sets of a checked game.

    Command line:
        gapfloor levels coinrun --out coinrun-leaks
        gapfloor levels all --mode hard --json
        gapfloor levels gym:MiniGrid-FourRooms-v0
        gapfloor levels --gap episodes.csv --leaks coinrun-leaks

    Examples:
        >>> import gapfloor
        >>> found = gapfloor.levels("maze", train=range(20), test=range(1000, 1010), progress=False)
        >>> found.games[0].leaked
        ()
        >>> import pyarrow as pa
        >>> rows = [
        ...     {"game": "maze", "agent": "ppo", "seed": 1, "rule": "sampled", "level_set": name, "level_seed": level,
        ...      "episode_return": 10.0 if name == "train" else 4.0}
        ...     for name, levels in (("train", range(20)), ("test", range(1000, 1010)))
        ...     for level in levels
        ... ]
        >>> gaps = gapfloor.levels(gap=pa.Table.from_pylist(rows), leaks=found).gaps
        >>> [(row.left_out, row.gap, row.n_levels) for row in gaps]
        [('', 6.0, (20, 10)), ('leaked', 6.0, (20, 10)), ('shared', 6.0, (20, 10))]
    """
    if leaks is not None and (gap is None or games):
        raise UsageError("leaks belong to a gap: give gap too, and name no games.")
    if isinstance(gap, str | Path) and not Path(gap).exists():
        raise UsageError(f"There is no store or file at {gap}. Check the path.")
    if gap is not None and not games:
        return gap_without_leaks(gap, leaks)
    found = _find(games, train, test, mode, options, out, store, step_teller(progress))
    return found if gap is None else gap_without_leaks(gap, found)


def _find(
    games: str | Sequence[str],
    train: str | range,
    test: str | range,
    mode: str | None,
    options: Mapping[str, Option] | None,
    out: str | Path | None,
    store: str | Path | None,
    tell: Callable[[str], None],
) -> Leakage:
    out, store = (Path(folder) if folder is not None else None for folder in (out, store))
    sets = {"train": LevelSet.parse(train), "test": LevelSet.parse(test)}
    named = expand_games([games] if isinstance(games, str) else games)
    kinds = {game: split_game(game) for game in named}
    specs = {
        game: make_spec(name if engine == PROCGEN.name else game, mode=mode, options=options)
        for game, (engine, name) in kinds.items()
    }
    if options and any(spec.engine == PROCGEN.name for spec in specs.values()):
        raise UsageError(
            "ProcGen's levels are compared without backgrounds and themes: leave the options out."
        )
    for folder in (out, store):
        check_folder(folder)
    found = Leakage(tuple(compare_levels(spec, **sets, tell=tell) for spec in specs.values()))
    if out is not None:
        write_text_atomically(out / "leakage.json", found.to_json())
    if store is not None:
        for overlap in found.games:
            path = store / "leakage" / f"{_file_name(overlap)}.json"
            write_text_atomically(path, Leakage((overlap,)).to_json())
    return found


def _file_name(overlap: LevelOverlap) -> str:
    return re.sub(r"[^\w.-]", "_", f"{overlap.game}-{overlap.mode}")
