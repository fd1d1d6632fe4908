"""Running `gapfloor` inside a test, as a user would type it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest

from gapfloor.cli.main import cli, main

#: The start of a command line for tests that need a process of their own (to kill it, or to see what it imports).
GAPFLOOR = [sys.executable, "-m", "gapfloor.cli.main"]


class Finished(NamedTuple):
    """What a command left behind: its exit code and what it wrote."""

    code: int
    out: str
    err: str


def exit_code(*arguments: object) -> int:
    """Run a command in this process and return its exit code; `capsys` holds what it wrote."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Finished:
    """Run a command in this process."""
    code = exit_code(*arguments)
    written = capsys.readouterr()
    return Finished(code, written.out, written.err)


def document_of(out: str) -> dict[str, Any]:
    """The JSON document that a command printed; its schema is checked and left out, because files do not have one."""
    document: dict[str, Any] = json.loads(out)
    assert document.pop("schema") == "gapfloor/1"
    return document


def run_python(code: str, *, folder: Path | None = None) -> Finished:
    """Run Python code in a new process, e.g. to see which modules it imports."""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=folder
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def loaded_modules(code: str) -> set[str]:
    """The top-level packages that are imported after `code` has run in a new process."""
    listing = "\nimport sys; print('LOADED', *sorted({name.split('.')[0] for name in sys.modules}))"
    done = run_python(code + listing)
    assert done.code == 0, done.err
    return set(done.out.rsplit("LOADED", 1)[1].split())


def parse(arguments: list[str]) -> None:
    """What the command line does with arguments up to the point where it would begin to work."""
    group: click.Group = cli
    context = click.Context(cli, info_name="gapfloor")
    while True:
        if not arguments or arguments[0] in ("--help", "--version", "-h"):
            return
        name, command, arguments = group.resolve_command(context, list(arguments))
        assert command is not None
        if not isinstance(command, click.Group):
            break
        context, group = click.Context(command, info_name=name, parent=context), command
    if not arguments:
        return  # the bare name of a command, as text mentions it
    is_part = any(map(_is_left_out, arguments)) or arguments[0].startswith("--")
    arguments = [word for word in arguments if not _is_left_out(word)]
    try:
        with command.make_context(name or "", list(arguments), parent=context):
            pass
    except click.exceptions.Exit:
        pass  # --help
    except click.MissingParameter:
        # Text may leave out what does not matter there ("evaluate ... --probe 1024", "analyse --json").
        if not is_part:
            raise


def _is_left_out(word: str) -> bool:
    return word in ("...", "…")
