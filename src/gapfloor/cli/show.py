"""Calling the function of a command with its progress, and printing what it returned.

A result is printed the same way for every command: its tables, what they say, the files that were written, and the next
useful command. Only `floor` and `analyse` say more.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from gapfloor.cli.commands import CommandEntry
from gapfloor.cli.options import print_json
from gapfloor.cli.say import say
from gapfloor.errors import CheckFailedError
from gapfloor.records.store import DEFAULT_STORE
from gapfloor.tables.readable import ReadableResult, ReportResult
from gapfloor.tables.table import Table
from gapfloor.tables.terminal import clean_lines, terminal_width, to_terminal, wrapped

Values = Mapping[str, Any]


def call_and_show(
    name: str,
    entry: CommandEntry,
    function: Callable[..., Any],
    values: dict[str, Any],
    *,
    as_json: bool,
    is_wide: bool,
    is_quiet: bool,
) -> None:
    """Call the function of a command and print its result."""
    if entry.takes_pictures:
        named = [*values.get("policies", ()), *([values["policy"]] if values.get("policy") else [])]
        read_fewer_pictures(
            game=values.get("game", ""), policies=named, references=values.get("references", ())
        )
    if "progress" in inspect.signature(function).parameters:
        values["progress"] = not (is_quiet or as_json)
    result = function(**values)
    if as_json:
        print_json({"path": str(result)} if isinstance(result, Path) else result.to_dict())
    else:
        _PRINTERS.get(name, print_result)(result, values, is_wide)
        following = _NEXT[name](result, values) if name in _NEXT else ()
        if following:
            say(f"Next: {shlex.join(map(str, ('gapfloor', *following)))}")
    if getattr(result, "failure", ""):
        raise CheckFailedError(result.failure)


def read_fewer_pictures(
    *, game: str = "", policies: Sequence[str] = (), references: Sequence[str] = ()
) -> None:
    """Have the engine read the pictures of `game` alone, or none where no policy looks at them.

    Pictures are read once per process, so this is only done where the process ends with the command, and where no code
    of the user could look at another game.
    """
    from gapfloor.engines.picture_files import BACKGROUND_FOLDERS, only_look_at
    from gapfloor.play.references import needs_network
    from gapfloor.policies.load import PolicySource

    is_own_process = click.get_current_context().find_root().obj is True
    if not is_own_process or any(map(needs_network, references)):
        return
    if not policies:
        only_look_at(())
    elif game in BACKGROUND_FOLDERS and all(PolicySource(name).runs_no_code for name in policies):
        only_look_at([game])


def print_result(result: ReadableResult | Path, values: Values, is_wide: bool) -> None:
    """The tables and sentences of a result, and the files that were written for it."""
    if isinstance(result, Path):
        say(f"Wrote {result}. Change what you need.")
        return
    if isinstance(result, ReportResult):
        say(str(result).rstrip("\n"))
        return
    tables, lines = result.tables(), (*result.sentences(), *result.notes)
    for number, table in enumerate(tables):
        if number:
            say()
        print_table(table, is_wide=is_wide)
    if len(tables) > 1 and lines:
        say()
    for line in lines:
        print_lines(line)
    if result.written:
        say(f"written to {result.written[0].parent}: {', '.join(path.name for path in result.written)}")


def print_lines(text: str) -> None:
    """Print sentences; a line that is wider than the terminal is continued below, with no number split."""
    for line in clean_lines(text).split("\n"):
        for part in wrapped(line, terminal_width()):
            say(part)


def print_table(table: Table, *, is_wide: bool = False) -> None:
    """Print a table; where it is wider than the terminal, its rows are printed as blocks."""
    say(to_terminal(table, terminal_width(), wide=is_wide))


def _print_floor(measured: Any, values: Values, is_wide: bool) -> None:
    """Floors next to the shipped ones, and how they were measured."""
    from gapfloor.analysis.columns import floor_table

    print_table(floor_table(measured.floors, known=not values["options"]), is_wide=is_wide)
    engines = dict.fromkeys(row.engine for row in measured.floors)
    drawn = f"; draws {','.join(map(str, values['draws']))}" if values["design"] == "draws" else ""
    print_lines(
        f"Measured now or read from {values['store']}; engine: {', '.join(engines)}; design: {measured.design}{drawn}."
    )
    for line in measured.sentences():
        print_lines(line)


def _print_analysis(results: Any, values: Values, is_wide: bool) -> None:
    """Every table of an analysis, and the headline of its report; problems go to standard error."""
    from gapfloor.report.findings import Findings
    from gapfloor.report.verdict import headline

    size, *problems = results.sentences()
    print_lines(size)
    for table in results.tables():
        say()
        print_table(table, is_wide=is_wide)
    for problem in problems:
        say(problem, err=True)
    say()
    print_lines(headline(Findings(results)))


_PRINTERS: dict[str, Callable[[Any, Values, bool], None]] = {
    "floor": _print_floor,
    "analyse": _print_analysis,
}


def _after_floor(measured: Any, values: Values) -> list[Any]:
    game = measured.floors[0].game if values["games"][0] in ("paper", "all") else values["games"][0]
    store = [] if values["store"] == DEFAULT_STORE else ["--store", values["store"]]
    return ["evaluate", "POLICY", "--game", game, "--rules", "sampled,greedy", *store]


def _after_training(run: Any, values: Values) -> list[Any]:
    named = ["--game", values["game"], "--rules", "sampled,greedy", "--store", values["store"]]
    return ["evaluate", run.checkpoint.parent, *named] if run.updates_done_here else []


def _after_analysis(results: Any, values: Values) -> list[Any]:
    named = [(name, values[name]) for name in ("plan", "rule", "columns", "floor", "step") if values[name]]
    named += [("label", each) for each in values["labels"]]
    return ["report", values["source"], *(word for name, each in named for word in (f"--{name}", each))]


#: What a command is usually followed by.
_NEXT: dict[str, Callable[[Any, Values], list[Any]]] = {
    "floor": _after_floor,
    "evaluate": lambda result, values: ["report", values["store"]],
    "train": _after_training,
    "analyse": _after_analysis,
    "plan init": lambda path, values: (
        ["plan", "lock", *(["PLAN", "--addendum"] if values["addendum"] else []), path]
    ),
}
