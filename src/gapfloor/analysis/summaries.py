"""Tables of means instead of episodes: published results, exports of trackers, one score per run.

A row holds the mean over the runs of an agent with its spread and the number of runs (columns mean, std or sem, n), or
the mean of one run (with a column for its seed, or one for its number of episodes). A cell may say "4.0 ± 0.3" or
"85%". Wide tables have a column per game or per agent.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from gapfloor.analysis.column_names import SUMMARY_ALIASES, TableOptions, meaning
from gapfloor.analysis.foreign_formats import RawTable, run_labels
from gapfloor.analysis.known_floors import find_known_floor, parse_cell, parse_number
from gapfloor.errors import UsageError
from gapfloor.statistics.conventions import NAN, check_sizes

#: A larger table holds episodes.
_MOST_ROWS = 10_000
_LABELS = ("game", "agent", "seed", "rule", "level_set", "step")
#: Columns that Weights & Biases writes next to each run of an exported chart.
_CHART_ENDS = ("__MIN", "__MAX")

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
    if not 0 < raw.table.num_rows <= _MOST_ROWS:
        return None
    notes = list(raw.notes)
    try:
        rows = _chart_rows(_plain_rows(raw.table), notes)
    except (pa.ArrowException, UnicodeError):  # the reader of episodes says what is wrong
        return None
    names = {ours: _find(rows[0], ours, options) for ours in (*_LABELS, *SUMMARY_ALIASES)}
    returns = _find(rows[0], "episode_return", options)
    defaults = {**options.constants}
    if returns is not None:
        if not _are_means(rows, returns, names, defaults):
            return None
        names["mean"] = returns
    if names["mean"] is None:
        long = _lengthened(rows, names, notes)
        if long is None:
            return None
        rows = long
        names |= {"game": "game", "agent": "agent", "mean": "mean"}
    if any(names[label] is None and label not in defaults for label in ("game", "agent")):
        return None
    if names["level_set"] is None and "level_set" not in defaults:
        defaults["level_set"] = "test"
        notes.append("no column 'level_set': the means are taken as held-out returns")
    if names["rule"] is None and "rule" not in defaults:
        defaults["rule"] = "unstated"
        notes.append("the table does not say by which rule actions were chosen")
    if names["step"] is not None:
        rows = _last_steps(rows, names, options)
    is_run = names["seed"] is not None
    if names["n"] is None and names["episodes"] is not None and "n" not in defaults and not is_run:
        is_run = True
        notes.append(
            "a row with its number of episodes is one run: the spread of episodes is not that of runs"
        )
    found = [_summary(row, names, defaults, notes) for row in rows]
    kept = [each for each in found if each is not None]
    if not kept:
        return None
    return Summaries(tuple(over_runs(kept) if is_run else kept), tuple(dict.fromkeys(notes)))


def _are_means(
    rows: Rows, returns: str, names: Mapping[str, str | None], defaults: Mapping[str, str]
) -> bool:
    """Whether returns are means: with their spread, or one per run where episodes would need more labels."""
    if names["std"] is not None or names["sem"] is not None:
        return True
    if any("±" in row[returns] or "%" in row[returns] for row in rows):
        return True
    if all(names[label] or label in defaults for label in ("rule", "level_set")) or names["seed"] is None:
        return False
    # With several rows per run and step they are episodes, whose rule and level set the user has to state.
    runs = [tuple(row[names[label]] for label in _LABELS if names[label]) for row in rows]  # type: ignore[index]
    return len(set(runs)) == len(runs)


def _plain_rows(table: pa.Table) -> Rows:
    """The rows of a small table as texts; a missing number is an empty one."""

    def text(value: object) -> str:
        return "" if value is None or value != value else str(value).strip()

    return [{name: text(value) for name, value in row.items()} for row in table.to_pylist()]


def _find(row: Mapping[str, str], ours: str, options: TableOptions) -> str | None:
    """The table's name for one of our columns."""
    if ours in options.names:
        return options.names[ours] if options.names[ours] in row else None
    return next((name for name in row if meaning(name, options) == ours), None)


def _chart_rows(rows: Rows, notes: list[str]) -> Rows:
    """A chart that was exported from Weights & Biases, with a column per run, as one row per run and step."""
    if not any(name.endswith(_CHART_ENDS) for name in rows[0]):
        return rows
    first, *columns = [name for name in rows[0] if not name.endswith(_CHART_ENDS)]
    notes.append("a chart of Weights & Biases: each column is a run")
    return [
        {"seed": str(at + 1), "step": row[first], "mean": row[name], **run_labels(name.rpartition(" - ")[0])}
        for at, name in enumerate(columns)
        for row in rows
        if row[name]
    ]


def _last_steps(rows: Rows, names: Mapping[str, str | None], options: TableOptions) -> Rows:
    """The last row of each run; several steps are refused unless the user asks for the last."""
    last: dict[tuple[str, ...], dict[str, str]] = {}
    who = [
        name for label in ("game", "agent", "seed", "rule", "level_set") if (name := names[label]) is not None
    ]
    step = str(names["step"])
    for row in rows:
        key = tuple(row[name] for name in who)
        if key not in last or parse_number(row[step]) >= parse_number(last[key][step]):
            last[key] = row
    if len(last) < len(rows) and options.step != "last":
        raise UsageError(
            "The table has several training steps per run: it is a learning curve. --step last reads the last step of "
            "each run."
        )
    return list(last.values())


def _lengthened(rows: Rows, names: Mapping[str, str | None], notes: list[str]) -> Rows | None:
    """A wide table as one row per game and agent; None where its cells are not numbers."""
    known = {name for name in names.values() if name is not None}
    label = names["game"] if names["game"] is not None else names["agent"]
    if names["game"] is not None and names["agent"] is not None:
        return None
    values = [name for name in rows[0] if name not in known]
    if label is None:
        label = values.pop(0) if values else None
    if label is None or not values:
        return None
    filled = [row[name] for row in rows for name in values if row[name]]
    if not filled or not all(map(parse_cell, filled)):
        return None
    rows_are_games = names["game"] is not None
    if names["game"] is None and names["agent"] is None:
        # Neither is named: the side that has more environments we know is the games.
        along = [row[label] for row in rows]
        rows_are_games = _n_known(along) >= _n_known(values)
    notes.append(f"a column per {'agent' if rows_are_games else 'game'}: {', '.join(values[:8])}")
    kept = [name for name in known if name != label]
    long = []
    for row in rows:
        for name in values:
            if row[name]:
                game, agent = (row[label], name) if rows_are_games else (name, row[label])
                long.append(
                    {**{key: row[key] for key in kept}, "game": game, "agent": agent, "mean": row[name]}
                )
    return long


def _n_known(names: Iterable[str]) -> int:
    return sum(find_known_floor(name, "easy", "test") is not None for name in names)


def _summary(
    row: Mapping[str, str], names: Mapping[str, str | None], defaults: Mapping[str, str], notes: list[str]
) -> Summary | None:
    def text(ours: str) -> str:
        name = names.get(ours)
        return row[name] if name is not None else defaults.get(ours, "")

    found = parse_cell(text("mean"))
    if found is None:
        if text("mean"):
            raise UsageError(f"The mean {text('mean')!r} is not a number, nor a number ± its spread.")
        return None
    mean, given, scale = found
    if scale != 1:
        notes.append("percentages are read as shares: 85% is 0.85")
    n = _count(text("n"))
    spread = NAN
    if given is not None:
        if not given:
            given = 0.5 * 10.0 ** -len(text("mean").rpartition(".")[2].rstrip(" %)")) * scale
            notes.append("a spread that is printed as 0.0 is read as 0.05, the largest that is rounded to it")
        is_sem = defaults.get("spread", "std") in ("sem", "se", "stderr")
        spread = given / (1.0 if is_sem or not n else math.sqrt(n))
        notes.append(
            f"the number after ± is read as a standard {'error' if is_sem else 'deviation over runs'}"
            + ("" if is_sem else " (--label spread=sem otherwise)")
        )
    elif text("sem"):
        spread = parse_number(text("sem")) * scale
    elif text("std") and n:
        spread = parse_number(text("std")) * scale / math.sqrt(n)
    check_sizes({"mean": mean, "spread": None if math.isnan(spread) else spread})
    return Summary(
        game=text("game"), agent=text("agent"), rule=text("rule"), level_set=text("level_set").lower(), mean=mean,
        sem=spread if n else NAN, n=n,
    )  # fmt: skip


def _count(text: str) -> int:
    try:
        n = float(text) if text else 0.0
    except ValueError:
        n = math.nan
    if not 0 <= n < 1e9 or n != int(n):
        raise UsageError(f"The number of runs {text!r} is not a whole number.")
    return int(n)


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
