"""What lies in the current folder or in the labels changes neither figures nor spreadsheets."""

from __future__ import annotations

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import gapfloor
import small_stores
from gapfloor.analysis.results import to_csv
from gapfloor.escape import escape_csv
from gapfloor.machine import this_place
from gapfloor.records.atomic import PARTIAL
from source_tree import SOURCE

SCRIPT = """
import pathlib, sys
from gapfloor.report.figures.model import INKS
from gapfloor.report.figures.model import FigureSpec, PanelSpec, PointMark, Scale
from gapfloor.report.figures.print_figure import write_figures
panel = PanelSpec(
    title="heist", summary="One point.", x=Scale(low=0.0, high=1.0), y=Scale(low=0.0, high=2.0),
    shapes=(PointMark(x=0.5, y=1.0, ink=next(iter(INKS)), tip=""),),
)
figure = FigureSpec(name="one", title="One", caption="", panels=(panel,), size=(200, 150), inches=(3.0, 2.0))
write_figures([figure], pathlib.Path(sys.argv[1]))
"""


def _bytes_drawn_in(folder: Path) -> dict[str, bytes]:
    out = folder / "out"
    out.mkdir()
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(out)],
        cwd=folder, env=os.environ | {"PYTHONPATH": str(SOURCE)}, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def test_a_matplotlibrc_in_the_folder_changes_no_byte_and_starts_no_latex(tmp_path: Path) -> None:
    plain, styled = tmp_path / "plain", tmp_path / "styled"
    plain.mkdir()
    styled.mkdir()
    (styled / "matplotlibrc").write_text("text.usetex: True\nlines.linewidth: 9\naxes.facecolor: red\n")
    assert _bytes_drawn_in(plain) == _bytes_drawn_in(styled)


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "＝", "＋", "－", "＠"])
def test_a_label_is_never_a_formula(sign: str) -> None:
    assert escape_csv(f"{sign}1+1") == f"'{sign}1+1"
    (row,) = csv.DictReader(io.StringIO(to_csv([{"game": f"{sign}1\x1b[2J", "mean": -1.5}])))
    assert row == {"game": f"'{sign}1 [2J", "mean": "-1.5"}


def test_what_a_killed_report_left_half_written_is_removed_by_the_next_one(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "csv" / "mine").mkdir(parents=True)
    dead = out / "csv" / f"{PARTIAL}{this_place()}-999999999-0a1b2c3d-merged.csv"
    below = out / "csv" / "mine" / dead.name  # the report writes nothing there
    for each in (dead, below):
        each.write_text("half")
    table = pa.Table.from_pylist(small_stores.small_rows(episodes=2, games=("coinrun",), draws=(0,)))
    gapfloor.report(table, out, formats="csv", progress=False)
    assert not dead.exists()
    assert below.exists()
