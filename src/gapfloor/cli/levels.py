"""`gapfloor levels`: what level sets have in common, and what that does to a gap."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gapfloor.cli.options import json_option, print_json
from gapfloor.cli.tables import leak_table, print_table

if TYPE_CHECKING:
    from gapfloor.levels.overlap import Leakage


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Find held-out levels that are training levels under another number."""


@command.command("check")
@click.argument("games", nargs=-1, required=True, metavar="GAME...")
@click.option("--train", default="0:200", show_default=True, help="Training levels: START:STOP.")
@click.option("--test", default="1000:1100", show_default=True, help="Held-out levels, likewise.")
@click.option("--mode", default="easy", show_default=True, help="easy, hard, extreme or memory.")
@click.option(
    "--out", type=click.Path(path_type=Path), default=None,
    help="Write leakage.json and a sheet of pictures a game into this folder.",
)  # fmt: skip
@click.option(
    "--store", type=click.Path(path_type=Path), default=None,
    help="File the result in this store (leakage/), where `levels gap` and `report` find it.",
)  # fmt: skip
@click.option("--definitions", is_flag=True, help="Count by looser and stricter meanings of equality too.")
@json_option
def check(
    games: tuple[str, ...], train: str, test: str, mode: str, out: Path | None, store: Path | None,
    definitions: bool, as_json: bool,
) -> None:  # fmt: skip
    r"""Find held-out levels of GAMEs (`paper`, `all`) whose layout equals a training level's.

    Levels are compared without backgrounds and themes: the first screen, the whole level, and where those agree,
    fixed action sequences. Pairs are then confirmed, or refuted, by longer random play.

    \b
    Examples:
      gapfloor levels check coinrun --out coinrun-leaks
      gapfloor levels check all --mode hard --json
    """
    from gapfloor.engines.layouts import check_layouts, count_by_definition
    from gapfloor.engines.procgen import check_game, make_spec
    from gapfloor.errors import UsageError
    from gapfloor.levels import LevelSet
    from gapfloor.levels.overlap import Leakage
    from gapfloor.play.protocol import expand_games

    sets = {"train": LevelSet.parse(train), "test": LevelSet.parse(test)}
    named = expand_games(games)
    for game in named:
        check_game(game)
        make_spec(game, mode=mode)
    for folder in (out, store):
        if folder is not None and folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file, not a folder: choose another.")

    def tell(words: str) -> None:
        if not as_json:
            click.echo(f"{words} ...", err=True)

    found = Leakage(tuple(check_layouts(game, **sets, mode=mode, tell=tell) for game in named))
    counted = {game: count_by_definition(game, **sets, mode=mode) for game in named if definitions}
    if out is not None:
        _write(found, out)
    if store is not None:
        _file(found, store)
    if as_json:
        document = found.to_dict()
        for game in document["games"]:
            if game["game"] in counted:
                game["definitions"] = {each.words: each.leaked for each in counted[game["game"]]}
        print_json(document)
        return
    print_table(*found.table())
    for overlap in found.games:
        if overlap.later and overlap.first_frame:
            click.echo(f"{overlap.game}: the first frame does not show {overlap.later}.")
        for held, known in overlap.twins.items():
            click.echo(f"  {overlap.game} {held} = {', '.join(map(str, known))}")
    for game, each_game in counted.items():
        for each in each_game:
            click.echo(f"{game}: {each.leaked} held-out levels have a twin by {each.words}.")


@command.command("gap")
@click.argument("source", metavar="STORE|EPISODES")
@click.option(
    "--leaks", type=click.Path(path_type=Path), default=None,
    help="A leakage.json, or a folder that holds one  [default: the store's own leakage/]",
)  # fmt: skip
@json_option
def gap(source: str, leaks: Path | None, as_json: bool) -> None:
    """The gap with and without leaked levels, of runs and of the floor on the same levels."""
    from gapfloor.analysis.leaked import gap_without, leaks_to_dict
    from gapfloor.errors import UsageError
    from gapfloor.levels.overlap import read_leakage

    if leaks is None and not Path(source).is_dir():
        raise UsageError(f"{source} is no store: say with --leaks where its leakage.json is.")
    leakage = read_leakage(leaks if leaks is not None else source)
    rows = gap_without(source, leakage)
    if not rows:
        known = ", ".join(sorted({f"{one.game} {one.mode}" for one in leakage.games}))
        raise UsageError(f"No run of {source} is on both level sets of a checked game: checked are {known}.")
    if as_json:
        print_json(leaks_to_dict(rows))
        return
    print_table(*leak_table(rows))
    if any(row.leaked_levels for row in rows):
        click.echo(
            "Layouts repeat most among short, easy levels: read each gap against the floor's gap on the same levels. "
            "'Shared' also leaves out the training levels that have a held-out twin."
        )


def _write(found: Leakage, folder: Path) -> None:
    """`leakage.json` and, where something leaked, a sheet of pictures a game."""
    from gapfloor.engines.layout_pictures import draw_pairs
    from gapfloor.records.atomic import write_bytes_atomically, write_text_atomically

    for overlap in found.games:
        if overlap.pairs:
            write_bytes_atomically(folder / f"{overlap.game}-{overlap.mode}.png", draw_pairs(overlap))
    write_text_atomically(folder / "leakage.json", found.to_json())


def _file(found: Leakage, store: Path) -> None:
    from gapfloor.levels.overlap import Leakage
    from gapfloor.records.atomic import write_text_atomically

    for overlap in found.games:
        path = store / "leakage" / f"{overlap.game}-{overlap.mode}.json"
        write_text_atomically(path, Leakage((overlap,)).to_json())
