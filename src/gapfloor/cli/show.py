"""Calling the function of a command with its progress, and printing what it returned.

Most results print themselves (`print_result`). The functions `show_...` are for those where the terminal says more: the
files that were written, the next useful command, or that a check failed.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gapfloor.api.progress import LiveProgress
from gapfloor.cli.commands import CommandEntry
from gapfloor.cli.error_boundary import want_traceback
from gapfloor.cli.generate import Terminal
from gapfloor.cli.options import print_json
from gapfloor.cli.pictures import read_fewer_pictures
from gapfloor.cli.say import say
from gapfloor.cli.tables import print_result, show_lines, show_next, show_table
from gapfloor.errors import CheckFailedError
from gapfloor.records.store import DEFAULT_STORE
from gapfloor.tables.cells import counted

Values = Mapping[str, Any]


def call_and_show(
    entry: CommandEntry, function: Callable[..., Any], values: dict[str, Any], terminal: Terminal
) -> None:
    """Call the function of a command and print its result."""
    if terminal.traceback:
        want_traceback()
    if entry.takes_pictures:
        named = [*values.get("policies", ()), *([values["policy"]] if values.get("policy") else [])]
        read_fewer_pictures(
            game=values.get("game", ""), policies=named, references=values.get("references", ())
        )
    is_quiet = terminal.is_quiet or terminal.as_json
    parameters = inspect.signature(function).parameters
    with contextlib.ExitStack() as stack:
        if "progress" in parameters:
            progress = _progress(str(parameters["progress"].annotation), is_quiet=is_quiet)
            values["progress"] = stack.enter_context(progress)
        result = function(**values)
    show = globals()[f"show_{entry.show}"]
    show(result, {**values, "wide": terminal.is_wide}, terminal.as_json)
    if getattr(result, "failure", ""):
        raise CheckFailedError(result.failure)


@contextlib.contextmanager
def _progress(annotation: str, *, is_quiet: bool) -> Iterator[Any]:
    """What a function reports to: a bar over episodes, a line per step or per game, or whatever it shows by itself."""
    if "workers.Progress" in annotation:
        with LiveProgress(quiet=is_quiet) as live:
            yield live
    elif is_quiet:
        yield False
    elif "[str]" in annotation:
        yield lambda words: say(f"{words} ...", err=True)
    else:
        yield True


def show_result(result: Any, values: Values, as_json: bool) -> None:
    """The tables and sentences of a result, or its document."""
    print_result(result, as_json=as_json, wide=values["wide"])


def show_floor(measured: Any, values: Values, as_json: bool) -> None:
    """Floors next to the shipped ones, and how they were measured."""
    from gapfloor.analysis.result_tables import floor_table

    if as_json:
        print_json(measured.to_dict())
        return
    show_table(floor_table(measured.floors, known=not values["options"]), wide=values["wide"])
    engines = dict.fromkeys(row.engine for row in measured.floors)
    is_drawn = values["design"] == "draws"
    drawn = f"; draws {','.join(map(str, values['draws']))}" if is_drawn else ""
    show_lines(
        f"Measured now or read from {values['store']}; engine: {', '.join(engines)}; design: {measured.design}{drawn}."
    )
    for line in measured.sentences():
        show_lines(line)
    game = measured.floors[0].game if values["games"][0] in ("paper", "all") else values["games"][0]
    store = [] if values["store"] == DEFAULT_STORE else ["--store", values["store"]]
    show_next("gapfloor", "evaluate", "POLICY", "--game", game, "--rules", "sampled,greedy", *store)


def show_evaluation(result: Any, values: Values, as_json: bool) -> None:
    """The tables of an evaluation, the calls in words, and the command that writes its report."""
    print_result(result, as_json=as_json, wide=values["wide"])
    if not as_json:
        show_next("gapfloor", "report", values["store"])


def show_sweep(result: Any, values: Values, as_json: bool) -> None:
    """A sweep, and where its files are."""
    from gapfloor.api.sweep import sweep_folder

    files = _written(sweep_folder(values["store"], result), "sweep")
    print_result(result, files=files, as_json=as_json, wide=values["wide"])


def show_training_curve(result: Any, values: Values, as_json: bool) -> None:
    """Training curves, and where their files are."""
    from gapfloor.api.training_curve import curve_folder

    files = _written(curve_folder(values["store"]), "training-curve")
    print_result(result, files=files, as_json=as_json, wide=values["wide"])


def show_comparison(result: Any, values: Values, as_json: bool) -> None:
    """A comparison, and where its file is."""
    files = [Path(values["out"]) / "comparison.json"] if values["out"] else []
    print_result(result, files=files, as_json=as_json, wide=values["wide"])


def _written(folder: str | Path, stem: str) -> list[Path]:
    return sorted(Path(folder).glob(f"{stem}*.*"))


def show_training(result: Any, values: Values, as_json: bool) -> None:
    """The trained run, and the command that evaluates it."""
    if as_json:
        print_json(result.to_dict())
        return
    say(result)
    if result.updates_done_here:
        show_next(
            "gapfloor", "evaluate", str(result.checkpoint.parent), "--game", values["game"],
            "--rules", "sampled,greedy", "--store", values["store"],
        )  # fmt: skip


def show_analysis(results: Any, values: Values, as_json: bool) -> None:
    """Every table of an analysis, and the headline of its report; problems go to standard error."""
    from gapfloor.report.findings import Findings
    from gapfloor.report.verdict import headline

    size, *problems = results.sentences()
    if as_json:
        print_json(results.to_dict())
    else:
        show_lines(size)
        for table in results.tables():
            say()
            show_table(table, wide=values["wide"])
    for problem in problems:
        say(problem, err=True)
    if not as_json:
        say()
        show_lines(headline(Findings(results)))
        if values["source"] is not None:
            named = ("plan", "rule", "columns", "floor", "step")
            given = [word for name in named if values[name] for word in (f"--{name}", str(values[name]))]
            labels = [word for label in values["labels"] for word in ("--label", label)]
            show_next("gapfloor", "report", str(values["source"]), *given, *labels)


def show_plan_file(path: Path, values: Values, as_json: bool) -> None:
    """Where a plan was written, and the command that locks it."""
    following = "gapfloor plan lock PLAN --addendum" if values["addendum"] else "gapfloor plan lock"
    if as_json:
        print_json({"path": str(path)})
    else:
        say(f"Wrote {path}. Change what you need, then: {following} {path}")


def show_lock(found: Any, values: Values, as_json: bool) -> None:
    """What was locked, and what its results may be called."""
    from gapfloor.plan.lock import NO_KEY, lock_path

    if as_json:
        print_json(found.to_dict())
        return
    if values["addendum"] is not None:
        locked = found.addenda[-1]
        say(f"Locked addendum '{locked.name}' at {locked.locked_at} ({locked.hash[:12]}).")
        say(
            f"{locked.cells_seen} cells of its rules seen ({locked.seen_in}): results will be called {locked.status}."
        )
    else:
        locked, path = found.plan, values["path"]
        say(f"Locked {path} at {locked.locked_at} ({locked.hash[:12]}), in {lock_path(Path(path))}.")
        say(f"{locked.cells_seen} cells seen ({locked.seen_in}): results will be called {locked.status}.")
        for earlier in locked.earlier:
            say(f"Locked before: {earlier}. The new lock says so.")
    for sentence in (*found.evidence, f"{NO_KEY}."):
        say(sentence)


def show_replays(replays: Any, values: Values, as_json: bool) -> None:
    """The episodes that were played again, and where their frames are."""
    store = Path(values["store"])
    if as_json:
        print_json({"replays": [str(path.relative_to(store)) for path in replays.paths]})
        return
    say(replays)
    say(f"{counted(len(replays.paths), 'replay')} in {store / 'replays'}.")


def show_cka(measured: Any, values: Values, as_json: bool) -> None:
    """CKA, and where its records are."""
    print_result(measured, as_json=as_json, wide=values["wide"])
    for path in () if as_json else measured.files:
        held = "already in" if path.stem in measured.reused else "written to"
        say(f"{held} {path}")
