"""No text of a file, a name or an argument controls the terminal: every command prints through one function."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import small_stores
from command_line import run

SOURCE = Path(__file__).parents[2] / "src" / "gapfloor"
TESTS = Path(__file__).parents[1]
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m"


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Episodes whose every label holds sequences that a terminal obeys."""
    rows: list[dict[str, Any]] = small_stores.small_rows(episodes=12, games=("coinrun",))
    for row in rows:
        row |= {"game": f"coinrun{ESCAPE}", "budget": row["budget"] and f"8M{ESCAPE}"}
        row |= {"agent": row["agent"] and row["agent"] + ESCAPE, "draw": f"0{ESCAPE}"}
    path = tmp_path / "episodes.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["analyse"], ["analyse", "--wide"], ["power"], ["compare", "--agents", f"a{ESCAPE},b{ESCAPE}"],
        ["analyse", "--rule", ESCAPE], ["report", "--formats", "md", "--out", "report"],
    ],
)  # fmt: skip
def test_labels_with_escape_characters_are_printed_as_text(
    capsys: pytest.CaptureFixture[str], labelled: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(labelled.parent)
    done = run(capsys, words[0], labelled.name, *words[1:])
    assert done.code in (0, 2)
    assert_nothing_is_obeyed(done.out + done.err)


def test_names_of_scanned_files_with_escape_characters_are_printed_as_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / f"repo{ESCAPE}"
    folder.mkdir()
    shutil.copy(TESTS / "data" / "version-0.1" / "scanned-evaluate.txt", folder / f"evaluate{ESCAPE}.py")
    for words in (["audit", "scan", folder], ["audit", "scan", folder, "--out", tmp_path / f"x{ESCAPE}.md"]):
        done = run(capsys, *words)
        assert done.code == 0
        assert "evaluate" in done.out + done.err
        assert_nothing_is_obeyed(done.out + done.err)


@pytest.mark.parametrize(
    "words",
    [
        [ESCAPE],
        ["analyse", f"--{ESCAPE}"],
        ["plan", "check", ESCAPE],
        ["floor", "coinrun", "--episodes", ESCAPE],
    ],
)
def test_arguments_with_escape_characters_are_printed_as_text(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    done = run(capsys, *words)
    assert done.code == 2
    assert_nothing_is_obeyed(done.out + done.err)


def test_no_command_prints_past_the_one_function() -> None:
    allowed = {"say.py", "generate.py"}  # the help of a command has no text from outside
    found = [
        path for path in SOURCE.rglob("*.py") if "click.echo" in path.read_text() and path.name not in allowed
    ]
    assert found == []


def assert_nothing_is_obeyed(text: str) -> None:
    assert {each for each in text if not each.isprintable()} <= {"\n"}
