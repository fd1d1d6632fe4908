"""Tables on a terminal: every number whole at every width, and text printed literally."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from gapfloor.tables.cells import estimate, mean_sem, text_cell
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Column, Table, table_of
from gapfloor.tables.terminal import display_width, grid, to_terminal, wrapped

pytestmark = pytest.mark.fast

AGENT = "[red]team"
COLUMNS = (
    Column("agent", "agent", "The agent.", lambda row: text_cell(row[0])),
    Column(
        "return", "return", "Mean return.", lambda row: mean_sem(row[1], 0.25), align="r", csv=("r", "r_sem")
    ),
    Column(
        "delta",
        "delta [interval]",
        "Return minus floor.",
        lambda row: estimate(row[1] - 5, (row[1] - 6, row[1] - 4)),
        align="r",
        csv=("d", "d_low", "d_high"),
    ),
    Column("call", "call", "The call.", lambda row: text_cell(row[2])),
    Column("why", "why", "A remark.", lambda row: text_cell("because"), is_wide=True),
)
LONG = "not distinguishable (unreliable: two runs disagree about the sign of the difference)"
TABLE = Table(name="t", title="", columns=COLUMNS, rows=([AGENT, 1.5, "below"], ["other", 17.25, LONG]))
WHOLE = (AGENT, "1.50 ± 0.25", "-3.50", "[-4.50, -2.50]", "17.25 ± 0.25", "+12.25", "[11.25, 13.25]")


def printed_in_terminal(code: str, columns: int) -> list[str]:
    """What a Python program prints in a terminal of that many columns."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=theirs, stdout=theirs, stderr=theirs,
        env=environment | {"PYTHONIOENCODING": "utf-8", "PYTHONPATH": str(Path(__file__).parent)},
    ) as process:  # fmt: skip
        os.close(theirs)
        parts = []
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # Linux reports the end of a pseudo-terminal as an error.
                break
            if not part:
                break
            parts.append(part)
    os.close(ours)
    text = b"".join(parts).decode()
    assert process.returncode == 0, text
    return text.replace("\r\n", "\n").splitlines()


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_no_number_is_cut_in_a_terminal(columns: int) -> None:
    code = """
from test_terminal import TABLE
from gapfloor.cli.show import print_table
print_table(TABLE)"""
    lines = printed_in_terminal(code, columns)
    assert max(map(display_width, lines)) <= columns
    for text in WHOLE:
        assert any(text in line for line in lines), text
    assert " ".join(" ".join(lines).split()).count(LONG) == 1
    assert any("delta [interval]" in line for line in lines)
    assert any(re.match(r"agent +return", line) for line in lines) == (columns == 200)


@pytest.mark.parametrize("columns", [60, 200])
def test_a_result_prints_itself_as_wide_as_the_terminal(columns: int) -> None:
    code = f"""
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import table_of
class Result(ReadableResult):
    notes = ("a [bold]note",)
    def table(self):
        return table_of("locks", [dict(name="[red]team", status={LONG!r})])
print(repr(Result()))"""
    lines = printed_in_terminal(code, columns)
    assert max(map(display_width, lines)) <= columns
    assert lines[-1] == "a [bold]note"
    assert lines[0].split()[:2] == (["name", "results"] if columns == 200 else ["name", "[red]team"])


def test_a_table_that_fits_is_aligned_with_numbers_to_the_right() -> None:
    assert to_terminal(TABLE, 200).splitlines()[:3] == [
        "agent            return       delta [interval]  call",
        "----------------------------------------------------",
        "[red]team   1.50 ± 0.25   -3.50 [-4.50, -2.50]  below",
    ]


def test_a_table_that_does_not_fit_becomes_blocks() -> None:
    assert to_terminal(TABLE, 60).splitlines() == [
        "agent             [red]team",
        "return            1.50 ± 0.25",
        "delta [interval]  -3.50 [-4.50, -2.50]",
        "call              below",
        "",
        "agent             other",
        "return            17.25 ± 0.25",
        "delta [interval]  +12.25 [11.25, 13.25]",
        "call              not distinguishable (unreliable: two runs",
        "                  disagree about the sign of the difference)",
    ]


def test_numbers_stay_whole_in_the_narrowest_terminal() -> None:
    lines = to_terminal(TABLE, 16).splitlines()
    assert "  [-4.50, -2.50]" in lines
    for text in WHOLE:
        assert any(text in line for line in lines), text


def test_wide_shows_every_column() -> None:
    assert "because" not in to_terminal(TABLE, 60)
    assert to_terminal(TABLE, 60, wide=True).count("because") == 2


def test_output_that_goes_elsewhere_is_never_wrapped() -> None:
    assert max(map(len, to_terminal(TABLE).splitlines())) > 120


def test_control_characters_reach_no_terminal() -> None:
    shown = grid(["a\x1b[31m", "b"], [["x\ny", "\x9b1m\u202e"]], ["l", "l"], 80)
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert len(shown.splitlines()) == 3


def test_wide_characters_count_twice() -> None:
    lines = grid(["game", "gap"], [["迷路", "1.0"], ["maze", "2.0"]], ["l", "r"], 80).splitlines()
    assert {display_width(line) for line in lines} == {9}
    assert display_width("e\u0301") == 1


def test_a_name_that_a_layout_leaves_out_is_repeated() -> None:
    table = Table(name="t", columns=COLUMNS[:1], rows=((text_cell("", raw="maze"),),))
    assert to_terminal(table).splitlines()[-1] == "maze"


def test_lines_break_between_words_and_never_inside_an_interval() -> None:
    text = "delta +1.20 [0.50, 2.00] (95%), floor 3.00 ± 0.10"
    for width in range(1, 60):
        assert " ".join(wrapped(text, width)) == text
        for whole in ("[0.50, 2.00]", "3.00 ± 0.10"):
            assert any(whole in line for line in wrapped(text, width))


def test_a_table_of_the_registry_takes_objects_and_mappings_and_drops_what_no_row_has() -> None:
    table = table_of("sweep", [{"rule": "greedy", "test": 1.5, "test_sem": 0.25}, {"rule": "uniform"}])
    assert [column.title for column in table.columns] == ["rule", "test"]
    assert to_terminal(table).splitlines()[2:] == ["greedy   1.50 ± 0.25", "uniform"]


def test_a_result_may_give_described_tables() -> None:
    class Described(ReadableResult):
        def tables(self) -> list[Table]:
            return [TABLE]

    assert "17.25 ± 0.25" in repr(Described())
    assert "[red]team" in Described()._repr_html_()
