"""Whatever a command raises becomes one message and the right exit code."""

from __future__ import annotations

import errno
import importlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from command_line import GAPFLOOR, run
from gapfloor.cli.error_boundary import run_guarded, want_traceback
from gapfloor.errors import EXPLANATIONS, CheckFailedError, PolicyError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.records.atomic import PARTIAL, write_text_atomically
from gapfloor.users_code import _OURS

FLOOR = ["floor", "starpilot", "--draws", "0", "--workers", "2"]


def guard(command: Callable[[], Any], *, with_traceback: bool = False) -> int:
    def asked() -> object:
        want_traceback(with_traceback)
        return command()

    return run_guarded(asked)


def raising(error: BaseException) -> Callable[[], Any]:
    def command() -> None:
        raise error

    return command


@pytest.mark.fast
@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("The seed is -1."), 2, "gapfloor: The seed is -1."),
        (CheckFailedError("2 checks failed."), 1, "gapfloor: 2 checks failed."),
        (MemoryError(), 2, "not enough memory"),
        (click.FileError("study.toml"), 2, "study.toml"),
        (click.UsageError("No such option"), 2, "No such option"),
        (KeyboardInterrupt(), 130, "stopped"),
        (click.exceptions.Abort(), 130, "stopped"),
    ],
)
def test_an_error_has_its_exit_code_and_its_words(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, words: str
) -> None:
    assert guard(raising(error)) == code
    written = capsys.readouterr().err
    assert words in written
    assert "Traceback" not in written


@pytest.mark.fast
def test_characters_that_a_terminal_obeys_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    guard(raising(UsageError("The label is '\x1b[31m\0'.")))
    assert capsys.readouterr().err.startswith("gapfloor: The label is '\\x1b[31m\\x00'.\n")


@pytest.mark.fast
def test_a_fault_of_ours_keeps_its_traceback_and_asks_for_a_report(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert guard(lambda: LevelSet.parse(None)) == 3  # type: ignore[arg-type]
    written = capsys.readouterr().err
    assert "Traceback" in written
    assert "This is a bug in gapfloor (AttributeError)" in written


@pytest.mark.fast
@pytest.mark.parametrize("number", EXPLANATIONS, ids=errno.errorcode.get)
def test_what_the_disk_refuses_is_one_sentence_with_the_place(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, number: int
) -> None:
    def refuse(partial: Path) -> None:
        raise OSError(number, os.strerror(number), str(partial))

    from gapfloor.records.atomic import write_atomically

    assert guard(lambda: write_atomically(tmp_path / "cell.parquet", refuse)) == 2
    written = capsys.readouterr().err
    assert "cell.parquet cannot be read or written" in written
    assert "Traceback" not in written


@pytest.mark.fast
@pytest.mark.parametrize("name", ["a\0b", "n" * 5000, "d/" * 3000 + "x"])
def test_a_path_that_no_file_can_have_is_a_sentence_of_bounded_length(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    assert guard(lambda: write_text_atomically(tmp_path / name, "text")) == 2
    written = capsys.readouterr().err
    assert "Traceback" not in written
    assert len(written) < 600


@pytest.mark.fast
@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000])
def test_json_that_python_cannot_read_is_never_a_fault_of_ours(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    from gapfloor.settings import parse_json

    assert guard(lambda: parse_json(text, source="manifest.json")) == 2
    assert "manifest.json" in capsys.readouterr().err


@pytest.mark.fast
def test_a_failure_inside_a_compiled_library_is_not_taken_for_the_users_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The frames of Cython name files such as pyarrow/error.pxi, which are nowhere on this machine.
    code = compile(
        "import pyarrow\ndef read():\n    pyarrow.array(['a']).cast('int64')\n", _OURS + "x.py", "exec"
    )
    names: dict[str, Any] = {}
    exec(code, names)
    assert guard(names["read"]) == 3
    assert "This is a bug in gapfloor (ArrowInvalid)" in capsys.readouterr().err


@pytest.mark.fast
def test_a_package_that_is_not_installed_is_not_a_fault_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    code = compile("import no_such_package.part", _OURS + "x.py", "exec")
    assert guard(lambda: exec(code)) == 2
    assert "needs the package no_such_package, which is not installed" in capsys.readouterr().err


@pytest.fixture
def users_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "my_agent_of_this_test.py").write_text("def act():\n    return 1 / 0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("my_agent_of_this_test")


@pytest.mark.fast
def test_an_error_in_the_users_code_shows_the_users_line(
    capsys: pytest.CaptureFixture[str], users_module: Any
) -> None:
    assert guard(users_module.act) == 2
    written = capsys.readouterr().err
    assert "Your own code raised ZeroDivisionError: division by zero" in written
    assert "my_agent_of_this_test.py, line 2, in act: return 1 / 0" in written
    assert "Traceback" not in written


@pytest.mark.fast
def test_an_error_that_gapfloor_explains_still_shows_the_users_line(
    capsys: pytest.CaptureFixture[str], users_module: Any
) -> None:
    def command() -> None:
        try:
            users_module.act()
        except ZeroDivisionError as error:
            raise PolicyError("The policy my_agent cannot be used.") from error

    assert guard(command) == 2
    assert "line 2, in act: return 1 / 0" in capsys.readouterr().err


@pytest.mark.fast
def test_the_traceback_option_shows_the_whole_chain(
    capsys: pytest.CaptureFixture[str], users_module: Any
) -> None:
    assert guard(users_module.act, with_traceback=True) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


@pytest.mark.fast
def test_the_traceback_option_belongs_to_the_group(capsys: pytest.CaptureFixture[str]) -> None:
    missing = ("study", "status", "no-such-study.toml")
    assert "Traceback" not in run(capsys, *missing).err
    done = run(capsys, "--traceback", *missing)
    assert done.code == 2
    assert "Traceback" in done.err


@pytest.mark.fast
def test_a_full_disk_behind_standard_output_is_not_success(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*GAPFLOOR, "known-floor"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert "the disk is full" in done.stderr


@pytest.mark.fast
@pytest.mark.parametrize("command", [["known-floor"], ["--help"], ["floor", "--help"]])
def test_a_reader_that_leaves_early_is_not_an_error(command: list[str]) -> None:
    listing = subprocess.Popen([*GAPFLOOR, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert listing.stdout is not None
    assert listing.stderr is not None
    listing.stdout.close()
    assert listing.wait() == 0
    assert listing.stderr.read() == b""


@pytest.mark.fast
@pytest.mark.parametrize("command", [["study", "status"], ["study", "run"], ["plan", "check"]])
def test_a_named_pipe_as_input_is_refused_at_once(tmp_path: Path, command: list[str]) -> None:
    pipe = tmp_path / "study.toml"
    os.mkfifo(pipe)
    done = subprocess.run(
        [*GAPFLOOR, *command, str(pipe)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 2
    assert "is a pipe, socket or device: give a regular file" in done.stderr


@pytest.mark.fast
def test_every_json_document_says_which_schema_it_follows(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["known-floor"], ["audit", "ledger"]):
        assert json.loads(run(capsys, *command, "--json").out)["schema"] == "gapfloor/1"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_command_that_is_interrupted_cleans_up_and_says_so(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    # Whoever runs the tests in the background ignores Ctrl-C, and so would the command.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store = tmp_path / "store"
    process = subprocess.Popen(
        [*GAPFLOOR, *FLOOR, "--episodes", "20000", "--store", str(store)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (store / "cells").is_dir() and time.monotonic() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(number)
    _, written = process.communicate(timeout=120)
    assert process.returncode == code
    assert "gapfloor: stopped. Run the same command again to resume." in written
    assert "Traceback" not in written
    assert not list(store.rglob(f"{PARTIAL}*"))
