"""Tables of means instead of episodes: published results, exports of trackers, one score per run.

A row holds the mean over the runs of an agent with its spread and the number of runs (columns mean, std or sem, n), or
the mean of one run (with a column for its seed, or one for its number of episodes). A cell may say "4.0 ± 0.3" or
"85%". Wide tables have a column per game or per agent.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gapfloor.analysis.column_names import SUMMARY_ALIASES, TableOptions, folded_name, meaning, success_column
from gapfloor.analysis.foreign_formats import MOST_MEANS, RawTable, run_labels
from gapfloor.analysis.known_floors import find_known_floor, parse_cell, parse_number
from gapfloor.errors import UsageError, shortened
from gapfloor.statistics.conventions import NAN, check_sizes

_LABELS = ("game", "agent", "seed", "rule", "level_set", "step")
#: Columns that Weights & Biases writes next to each run of an exported chart.
_CHART_ENDS = ("__MIN", "__MAX")
#: The first column of such a chart.
_CHART_STEPS = ("step", "global_step", "wall_time", "relative_time_(process)", "relative_time_(wall)")

Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Summary:
    """The mean over the runs of one agent on one level set."""

    game: str
    agent: str
    rule: str
    level_set: str
    mean: float
    sem: float
    n: int
    """Number of runs; 0 where it is not known."""


@dataclass(frozen=True)
class Summaries:
    """The means of a table, and what was assumed when it was read."""

    rows: tuple[Summary, ...]
    notes: tuple[str, ...]


def read_summaries(raw: RawTable, options: TableOptions) -> Summaries | None:
    """The means of a table; None where it is not a table of means."""
    if not 0 < raw.table.num_rows <= MOST_MEANS:
        return None
    notes = list(raw.notes)
    try:
        texts = [{name: _text(value) for name, value in row.items()} for row in raw.table.to_pylist()]
        rows, columns = _renamed(_chart_rows(texts, notes, options), options)
    except (pa.ArrowException, UnicodeError):  # the reader of episodes says what is wrong
        return None
    given = columns | options.constants.keys()
    if "episode_return" in columns:
        if not _are_means(rows, columns, given):
            return None
        rows = [{**row, "mean": row["episode_return"]} for row in rows]
    elif "mean" not in columns:
        long = _lengthened(rows, columns, notes)
        if long is None:
            return None
        rows, given = long, given | {"game", "agent"}
    if not given >= {"game", "agent"}:
        return None
    defaults = dict(options.constants)
    if "level_set" not in given:
        defaults["level_set"] = "test"
        notes.append("no column 'level_set': the means are taken as held-out returns")
    if "rule" not in given:
        defaults["rule"] = "unstated"
        notes.append("the table does not say by which rule actions were chosen")
    rows = [{**defaults, **row} for row in rows]
    if "step" in columns:
        last: dict[tuple[str | None, ...], dict[str, str]] = {}
        for row in rows:
            run = tuple(row.get(label) for label in _LABELS if label != "step")
            if run not in last or parse_number(row["step"]) >= parse_number(last[run]["step"]):
                last[run] = row
        if len(last) < len(rows) and options.step != "last":
            raise UsageError(
                "The table has several training steps per run: it is a learning curve. --step last reads the last "
                "step of each run."
            )
        rows = list(last.values())
    is_run = "seed" in columns
    if "n" not in given and "episodes" in columns and not is_run:
        is_run = True
        notes.append(
            "a row with its number of episodes is one run: the spread of episodes is not that of runs"
        )
    is_sem = options.constants.get("spread", "std") in ("sem", "se", "stderr")
    found = [_summary(row, notes, is_sem=is_sem) for row in rows]
    kept = [each for each in found if each is not None]
    if not kept:
        return None
    return Summaries(tuple(over_runs(kept) if is_run else kept), tuple(dict.fromkeys(notes)))


def _text(value: object) -> str:
    """An entry of a table as text; a missing number is an empty one."""
    return "" if value is None or value != value else str(value).strip()


def _renamed(rows: Rows, options: TableOptions) -> tuple[Rows, set[str]]:
    """The rows with the columns that we know under our names, and which those are."""
    ours = (*_LABELS, *SUMMARY_ALIASES, "episode_return")
    by_meaning = {meaning(name, options): name for name in reversed(rows[0])}
    named = {name: options.names.get(name, by_meaning.get(name)) for name in ours}
    theirs = {name: found for name, found in named.items() if found is not None and found in rows[0]}
    if success := success_column(rows[0], options):
        theirs["episode_return"] = success
    known = set(theirs.values())
    renamed = [
        {
            **{name: value for name, value in row.items() if name not in known},
            **{name: row[found] for name, found in theirs.items()},
        }
        for row in rows
    ]
    return renamed, set(theirs)


def _are_means(rows: Rows, columns: set[str], given: set[str]) -> bool:
    """Whether returns are means: with their spread, or one per run where episodes would need more labels."""
    if columns & {"std", "sem", "n"}:
        return True
    if any("±" in row["episode_return"] or "%" in row["episode_return"] for row in rows):
        return True
    if given >= {"rule", "level_set"} or "seed" not in columns:
        return False
    # With several rows per run and step they are episodes, whose rule and level set the user has to state.
    runs = [tuple(row.get(label) for label in _LABELS) for row in rows]
    return len(set(runs)) == len(runs)


def _chart_rows(rows: Rows, notes: list[str], options: TableOptions) -> Rows:
    """A chart that was exported from Weights & Biases, with a column per run, as one row per run and step."""
    first, *columns = [name for name in rows[0] if not name.endswith(_CHART_ENDS)]
    is_chart = folded_name(first) in _CHART_STEPS and columns and all(" - " in name for name in columns)
    if len(columns) + 1 == len(rows[0]) and not is_chart:
        return rows
    metrics = sorted({name.rpartition(" - ")[2] for name in columns})
    if len(metrics) > 1:
        raise UsageError(
            f"The chart has several quantities ({shortened(', '.join(metrics))}): export the return alone, or delete "
            "the other columns."
        )
    notes.append("a chart of Weights & Biases: each column is a run")
    runs = {
        name: {"seed": str(at + 1), **run_labels(name.rpartition(" - ")[0])}
        for at, name in enumerate(columns)
    }
    if not all("game" in run for run in runs.values()) and "game" not in options.constants:
        raise UsageError(
            "The names of the chart's runs do not say which game was played: add --label game=NAME. An agent is named "
            "by --label agent=NAME where the names of its runs do not end in a seed (ppo-s1, ppo-seed2)."
        )
    return [
        {**run, **options.constants, "seed": run["seed"], "step": row[first], "mean": row[name]}
        for name, run in runs.items()
        for row in rows
        if row[name]
    ]


def _lengthened(rows: Rows, columns: set[str], notes: list[str]) -> Rows | None:
    """A wide table as one row per game and agent; None where its cells are not numbers."""
    if columns >= {"game", "agent"}:
        return None
    values = [name for name in rows[0] if name not in columns]
    label: str | None = next((name for name in ("game", "agent") if name in columns), None)
    rows_are_games = label == "game"
    if label is None and values:
        # Neither is named: the side that has more environments we know is the games.
        label = first = values.pop(0)
        known_rows, known_values = (
            sum(find_known_floor(name, "easy", "test") is not None for name in names)
            for names in ([row[first] for row in rows], values)
        )
        rows_are_games = known_rows >= known_values
    filled = [row[name] for row in rows for name in values if row[name]]
    if label is None or not filled or not all(map(parse_cell, filled)):
        return None
    notes.append(f"a column per {'agent' if rows_are_games else 'game'}: {', '.join(values[:8])}")
    long = []
    for row in rows:
        kept = {name: row[name] for name in columns if name != label}
        for name in values:
            if row[name]:
                game, agent = (row[label], name) if rows_are_games else (name, row[label])
                long.append({**kept, "game": game, "agent": agent, "mean": row[name]})
    return long


def _summary(row: Mapping[str, str], notes: list[str], *, is_sem: bool) -> Summary | None:
    game, agent, rule, level_set, text, std, sem, count = (
        row.get(name, "") for name in ("game", "agent", "rule", "level_set", "mean", "std", "sem", "n")
    )
    found = parse_cell(text)
    if found is None:
        if text:
            raise UsageError(f"The mean {shortened(text)!r} is not a number, nor a number ± its spread.")
        return None
    mean, given, scale = found
    if scale != 1:
        notes.append("percentages are read as shares: 85% is 0.85")
    try:
        n = float(count or 0)
    except ValueError:
        n = math.nan
    if not 0 <= n < 1e9 or n != int(n):
        raise UsageError(f"The number of runs {count!r} is not a whole number.")
    spread = NAN
    if given is not None:
        if not given:
            given = 0.5 * 10.0 ** -len(text.rpartition(".")[2].rstrip(" %)")) * scale
            notes.append("a spread that is printed as 0.0 is read as 0.05, the largest that is rounded to it")
        spread = given / (1.0 if is_sem or not n else math.sqrt(n))
        notes.append(
            f"the number after ± is read as a standard {'error' if is_sem else 'deviation over runs'}"
            + ("" if is_sem else " (--label spread=sem otherwise)")
        )
    elif sem:
        spread = parse_number(sem) * scale
    elif std and n:
        spread = parse_number(std) * scale / math.sqrt(n)
    check_sizes({"mean": mean, "spread": None if math.isnan(spread) else spread})
    if spread < 0:
        raise UsageError(f"The spread of the mean {shortened(text)} is {spread:g}: it must be 0 or more.")
    return Summary(game, agent, rule, level_set.lower(), mean, spread if n else NAN, int(n))


def over_runs(rows: Sequence[Summary]) -> list[Summary]:
    """Means of single runs as one summary per agent: the spread is that between runs."""
    groups: dict[tuple[str, ...], list[Summary]] = {}
    for row in rows:
        groups.setdefault((row.game, row.agent, row.rule, row.level_set), []).append(row)
    made = []
    for members in groups.values():
        values = np.sort([row.mean for row in members])
        error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else NAN
        made.append(dataclasses.replace(members[0], mean=float(values.mean()), sem=error, n=values.size))
    return made
