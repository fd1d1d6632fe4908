"""The frame of the small commands that convert one file to another (`python -m gapfloor.policies.formats...`)."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from gapfloor.errors import GapfloorError


def run_converter(
    parser: argparse.ArgumentParser,
    arguments: Sequence[str] | None,
    convert: Callable[[argparse.Namespace], None],
) -> int:
    """Run `convert` with the parsed arguments; a user's error is printed as its sentence. Returns the exit code."""
    options = parser.parse_args(arguments)
    try:
        convert(options)
    except GapfloorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0
