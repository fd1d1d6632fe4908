"""The one way in which a command prints: no text of a file, a name or an argument controls the terminal."""

from __future__ import annotations

from typing import Any

import click

from gapfloor.escape import printable_text


def say(words: Any = "", *, err: bool = False) -> None:
    """Print a line to standard output, or to standard error."""
    click.echo(printable_text(str(words)), err=err)
