"""`gapfloor cka`: CKA of checkpoints' features, never without its controls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from gapfloor.cli.options import json_option, print_json, store_option
from gapfloor.cli.tables import print_table
from gapfloor.records.run_identity import RunIdentity

if TYPE_CHECKING:
    from gapfloor.representation import CkaMeasurement

_HEADINGS = ("run", "as computed", "shuffled", "exact", "z", "A", "C", "B", "D", "PR", "other")


@click.command()
@click.argument("checkpoints", nargs=-1, required=True, metavar="CHECKPOINT...")
@click.option(
    "--geometry", default="64x16", show_default=True, help="How observations are collected: SLOTSxSTEPS."
)
@click.option(
    "--other-geometry", default="16x64", show_default=True,
    help="A second collection, to show the effect of the geometry alone; none to leave it out.",
)  # fmt: skip
@click.option(
    "--train", default=None, help="Training levels, START:STOP or all  [default: the checkpoint's own]"
)
@click.option(
    "--test", default="1000:1100", show_default=True, help="Held-out levels, in the same form as --train."
)
@click.option("--rule", default="sampled", show_default=True, help="How the checkpoint plays.")
@click.option("--draw", type=int, default=0, show_default=True, help="Seed of the level draw.")
@click.option("--permutations", type=int, default=200, show_default=True, help="Shuffles behind each null.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the shuffles.")
@click.option(
    "--pairs", type=click.Choice(["encoders", "all", "none"]), default="encoders", show_default=True,
    help="Compared on identical observations: different encoders of one seed, all of a game and budget, or none.",
)  # fmt: skip
@click.option("--device", default="cpu", show_default=True, help="Where the networks run: cpu or cuda.")
@store_option
@json_option
def command(
    checkpoints: tuple[str, ...], geometry: str, other_geometry: str, train: str | None, test: str, device: str,
    store: str, as_json: bool, **settings: Any,
) -> None:  # fmt: skip
    r"""CKA of CHECKPOINTs (files or runs' folders) between training and held-out levels, with its controls.

    Rows of the two sides are different inputs, so the value as computed measures nothing by itself; the 2x2 control
    shows what it consists of. Records go to results/cka of the store, where `gapfloor report` finds them.

    \b
    Examples:
      gapfloor cka gapfloor-store/runs/*-8M-s*
      gapfloor cka runs/heist-easy-impala-25M-s1 --json --out heist-store
    """
    from gapfloor.levels import LevelSet
    from gapfloor.representation import CkaSettings, Geometry, measure_cka

    chosen = CkaSettings(
        geometry=Geometry.parse(geometry),
        other_geometry=None if other_geometry == "none" else Geometry.parse(other_geometry),
        train=LevelSet.parse(train) if train is not None else None,
        test=LevelSet.parse(test),
        **settings,
    )
    measured = measure_cka(
        checkpoints, chosen, store=store, device=device,
        tell=lambda what: None if as_json else click.echo(f"{what} ...", err=True),
    )  # fmt: skip
    if as_json:
        print_json(measured.to_dict())
        return
    _show(measured, geometry, other_geometry)


def _show(measured: CkaMeasurement, geometry: str, other_geometry: str) -> None:
    first = measured.records[0]
    click.echo(
        f"Training against held-out levels, {geometry} = {first['n']} rows; rows are different inputs, so the value "
        f"as computed\ndoes not measure generalization. A: train v. test, C: train v. train, both aligned by timestep; "
        f"B, D: the\nsame shuffled (mean of {first['permutations']}). PR: participation ratio of the training rows. "
        f"other: as computed with {other_geometry}."
    )
    print_table(_HEADINGS, [_row(record) for record in measured.records])
    for record in measured.records:
        click.echo(f"{_name(record)}: {_words(record)}")
    for entry in measured.cross:
        click.echo(
            f"{_name(entry['x'])} v. {_name(entry['y'])} on identical observations ({entry['level_set']} levels, "
            f"played by {entry['played_by']}): CKA {entry['value']:.3f}, {entry['in_null_units']:.1f} times its null."
        )
    for path in measured.files:
        held = "already in" if path.stem in measured.reused else "written to"
        click.echo(f"{held} {path}")


def _name(record: dict[str, Any]) -> str:
    return RunIdentity.from_labels(record).name


def _row(record: dict[str, Any]) -> list[str]:
    other = record.get("other_geometry")
    z = record["z"]
    return [
        _name(record), f"{record['as_computed']:.3f}", f"{record['perm_mean']:.3f}", f"{record['analytic']:.3f}",
        "" if z is None else f"{z:.1f}", *(f"{record[part]:.3f}" for part in "ACBD"), f"{record['pr']:.1f}",
        f"{other['as_computed']:.3f}" if other else "",
    ]  # fmt: skip


def _words(record: dict[str, Any]) -> str:
    same = "no more" if record["exchange_p"] > 0.05 else "more"
    words = (
        f"C is {record['C'] / record['A']:.2f} x A, which is {same} than exchanging slots between the level sets does "
        f"(p = {record['exchange_p']:.3f}); shuffling divides A by {record['A'] / record['B']:.1f} "
        f"(p = {record['A_p']:.3f}) and C by {record['C'] / record['D']:.1f} (p = {record['C_p']:.3f}); "
        f"{record['n_control']} rows."
    )
    if record["is_consistent_with_alignment"]:
        words += " Consistent with timestep alignment alone."
    elif record["exchange_p"] <= 0.05:
        words += " The level set makes a difference."
    else:
        words += " A and C are not both above their shuffles."
    planned = record.get("budget_steps")
    if planned and record["steps"] < 0.9 * planned:
        words += f" Trained for {record['steps']:,} of {planned:,} steps."
    return words
