"""Published results: tables of means instead of episodes, compared with a floor per game and agent.

A row holds the mean over the runs of an agent with its spread and the number of runs (columns mean, std or sem, n), or
the mean of one run (with a column for its seed). A cell may say "4.0 ± 0.3" or "85%". Wide tables have a column per
game or per agent. The floor comes from rows of the table, from a number that the user states, or from the floors that
ship with gapfloor, by the environment's name.

From moments alone the difference from the floor can be tested. Shapes of run values, levels, gaps of single runs and
rules cannot; the results say so once.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from gapfloor.analysis.apply import plan_used, resolve_plan
from gapfloor.analysis.column_names import FLOOR_RULE
from gapfloor.analysis.floor_rows import call_counts
from gapfloor.analysis.grouping import Place, StudyEpisodes
from gapfloor.analysis.known_floors import (
    StatedFloor,
    find_known_floor,
    parse_cell,
    parse_number,
    stated_floors,
)
from gapfloor.analysis.planned_study import BOTH, PlannedStudy, families_of
from gapfloor.analysis.results import AnalysisResults, Problem, SourceSummary
from gapfloor.analysis.rows import ComparisonRow, Decision, Estimate, ReturnRow
from gapfloor.analysis.table_options import ALIASES, SUMMARY_ALIASES, TableOptions
from gapfloor.analysis.table_pieces import folded_name
from gapfloor.errors import UsageError
from gapfloor.plan.model import content_hash, paper_plan
from gapfloor.statistics.components import VariancePart, components_interval, components_p
from gapfloor.statistics.conventions import NAN, NO_PAIR, Call, check_sizes
from gapfloor.statistics.families import holm
from gapfloor.statistics.reference_calls import holm_divisors
from gapfloor.text_tables import counted

#: A larger table holds episodes.
_MOST_BYTES, _MOST_ROWS = 4 << 20, 10_000
#: Agents that are the floor where the user names none.
_FLOOR_NAMES = ("random", "uniform", "randompolicy", "randomagent", "uniformrandom", "floor")
#: Degrees of freedom of a floor that is stated without its number of episodes.
_MANY = 1000
_CANNOT = (
    "only means were given: levels, gaps of single runs and the shape of run values cannot be tested, and calls assume "
    "that run values are roughly normal"
)


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


def read_summaries(source: Any, options: TableOptions) -> tuple[list[Summary], list[str]] | None:
    """The means in a table, with remarks on what was assumed; None where a source is not a table of means."""
    rows = _plain_rows(source)
    if not rows:
        return None
    names = {ours: _find(rows[0], ours, options) for ours in (*_LABELS, *SUMMARY_ALIASES)}
    notes: list[str] = []
    returns = _find(rows[0], "episode_return", options)
    if returns is not None:
        # A table with returns holds episodes, unless it has their spread too.
        if names["std"] is None and names["sem"] is None:
            return None
        names["mean"] = returns
    if names["mean"] is None:
        long = _lengthened(rows, names, notes)
        if long is None:
            return None
        rows = long
        names |= {"game": "game", "agent": "agent", "mean": "mean"}
    defaults = {**options.labels}
    if any(names[label] is None and label not in defaults for label in ("game", "agent")):
        return None
    if names["level_set"] is None and "level_set" not in defaults:
        defaults["level_set"] = "test"
        notes.append("no column 'level_set': the means are taken as held-out returns")
    if names["rule"] is None and "rule" not in defaults:
        defaults["rule"] = "unstated"
        notes.append("the table does not say by which rule actions were chosen")
    found = [_summary(row, names, defaults, notes) for row in rows]
    kept = [each for each in found if each is not None]
    if not kept:
        return None
    if names["seed"] is not None:
        kept = _over_runs(kept)
    return kept, list(dict.fromkeys(notes))


_LABELS = ("game", "agent", "seed", "rule", "level_set")


def _plain_rows(source: Any) -> list[dict[str, str]]:
    """The rows of a small table as texts; nothing where a source is not one."""
    try:
        if isinstance(source, pa.Table):
            found = source.to_pylist() if source.num_rows <= _MOST_ROWS else []
            return [
                {name: "" if value is None else str(value) for name, value in row.items()} for row in found
            ]
        path = Path(source) if isinstance(source, str | Path) else Path()
        is_text = path.suffix.lower() in (".csv", ".tsv", ".txt") and path.is_file()
        if not is_text or path.stat().st_size > _MOST_BYTES:
            return []
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
        lines = [line for line in lines if not line.startswith("#")]
        delimiter = max(",\t;|", key=lines[0].count) if lines else ","
        rows = list(csv.DictReader(lines, delimiter=delimiter, restval=""))
    except (UnicodeError, csv.Error, OSError, pa.ArrowException):
        return []
    return [{str(name).strip(): str(value) for name, value in row.items() if name} for row in rows]


def _find(row: Mapping[str, str], ours: str, options: TableOptions) -> str | None:
    """The table's name for one of our columns."""
    if ours in options.columns:
        return options.columns[ours] if options.columns[ours] in row else None
    accepted = (ours, *ALIASES.get(ours, ()), *SUMMARY_ALIASES.get(ours, ()))
    return next((name for name in row if folded_name(name) in accepted), None)


def _lengthened(
    rows: list[dict[str, str]], names: Mapping[str, str | None], notes: list[str]
) -> list[dict[str, str]] | None:
    """A wide table as one row per game and agent; None where its cells are not numbers."""
    known = {name for name in names.values() if name is not None}
    label = names["game"] or names["agent"]
    if names["game"] is not None and names["agent"] is not None:
        return None
    values = [name for name in rows[0] if name not in known]
    if label is None:
        label = values.pop(0) if values else None
    if label is None or not values:
        return None
    filled = [row[name] for row in rows for name in values if row.get(name, "").strip()]
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
            if row.get(name, "").strip():
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
        return row.get(name, "").strip() if name is not None else defaults.get(ours, "")

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
    level_set = text("level_set").lower()
    return Summary(
        game=text("game"), agent=text("agent"), rule=text("rule"), level_set=level_set, mean=mean,
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


def _over_runs(rows: Sequence[Summary]) -> list[Summary]:
    """Means of single runs as one summary per agent: the spread is that between runs."""
    made = []
    for members in families_of(rows, lambda row: (row.game, row.agent, row.rule, row.level_set)):
        values = np.sort([rows[i].mean for i in members])
        error = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else NAN
        first = rows[members[0]]
        made.append(dataclasses.replace(first, mean=float(values.mean()), sem=error, n=values.size))
    return made


def results_of_means(
    means: tuple[list[Summary], list[str]], plan: Any, options: TableOptions
) -> AnalysisResults:
    """The results of what `read_summaries` found, with what the user says about the table."""
    rows, notes = means
    return analyse_summaries(
        rows, plan, floor=options.floor, mode=options.labels.get("mode", ""), notes=notes
    )


def analyse_summaries(
    rows: Sequence[Summary], plan: Any = None, *, floor: str = "", mode: str = "", notes: Sequence[str] = ()
) -> AnalysisResults:
    """The comparison of every agent with the floor of its game, from means.

    Args:
        rows: the means.
        plan: the plan, whose alpha and least number of runs are used.
        floor: the agent whose rows are the floor, a number such as 3.1±0.2 (also per game, e.g. heist=3.1±0.2), or
            registry; empty: rows named random or uniform, and else the floors that ship with gapfloor.
        mode: the mode of ProcGen's games; empty: easy.
        notes: what was assumed when the table was read.
    """
    locked = resolve_plan(plan)
    content = locked.plan if locked is not None else paper_plan()
    runs = [row for row in rows if not _is_floor(row, floor)]
    if not runs:
        raise UsageError("The table has no rows besides the floor's.")
    study = _study(runs, mode or "easy")
    digest = locked.hash if locked is not None else content_hash(content)
    context = PlannedStudy(study, content, digest, locked, pools=study.agents)
    floor_of = _floors([row for row in rows if _is_floor(row, floor)], floor, mode or "easy")
    compared, problems = (
        [],
        [Problem(kind="assumed", where="the source", what=text) for text in (*notes, _CANNOT)],
    )
    floors: dict[tuple[str, str], StatedFloor] = {}
    for row in runs:
        key = (row.game, row.level_set)
        found = floors.get(key) or floor_of(row)
        if found is None:
            what = "no floor: name its rows or its value (--floor NAME, --floor 3.1±0.2), or measure it"
            problems.append(Problem(kind="no floor", where=", ".join(key), what=what))
            continue
        if key not in floors and found.origin:
            problems.append(Problem(kind="assumed", where=", ".join(key), what=found.origin))
        floors[key] = found
        compared.append((row, found))
    if not compared:
        names = ", ".join(dict.fromkeys(row.game for row in runs))
        raise UsageError(
            f"There is no floor to compare with: no rows are named random or uniform, and no floor of {names} ships "
            "with gapfloor. Give the floor's value with --floor 3.1±0.2, or name its rows (--floor NAME)."
        )
    found_rows, primary = tuple(_compared(context, compared)), content.scope.primary_rule
    return AnalysisResults(
        plan=dataclasses.replace(
            plan_used(context),
            primary_rule=primary if primary in study.rules else study.rules[0],
        ),
        source=SourceSummary(
            n_episodes=0, n_cells=0, n_runs=sum(row.n for row in runs), n_floor_episodes=0, games=study.games,
            budgets=study.budgets, agents=study.agents, rules=study.rules, level_sets=study.level_sets, draws=(),
            has_level_seeds=False, has_cell_records=False, extra_columns=(),
        ),
        floors=tuple(_floor_row(context, key, found) for key, found in floors.items()),
        floor_comparisons=found_rows,
        agent_floor_comparisons=found_rows,
        call_counts=call_counts(found_rows),
        problems=tuple(dict.fromkeys(problems)),
        reference_comparisons=(), gaps=(), pairs=(), encoders=(), agents=(), screen=(), disagreements=(), normalised=(),
        profiles=(), screen_summaries=(),
    )  # fmt: skip


def _study(rows: Sequence[Summary], mode: str) -> StudyEpisodes:
    """The labels of the table, in its order."""

    def names(label: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(getattr(row, label) for row in rows))

    sets = names("level_set")
    ordered = tuple(name for name in (*BOTH, *sets) if name in sets)
    return StudyEpisodes(
        policies={}, references={}, games=names("game"), modes=(mode,), budgets=("",), rules=names("rule"),
        level_sets=tuple(dict.fromkeys(ordered)), draws=(), agents=names("agent"), n_cells=0,
    )  # fmt: skip


def _is_floor(row: Summary, floor: str) -> bool:
    if floor:
        return row.agent == floor
    return re.sub(r"[\W_]", "", row.agent.lower()) in _FLOOR_NAMES or row.rule.lower() in _FLOOR_NAMES


def _floors(own: Sequence[Summary], floor: str, mode: str) -> Callable[[Summary], StatedFloor | None]:
    """How the floor of a row is found: in the table, as stated, or among those that ship with gapfloor."""
    if own:
        by_game = {(row.game, row.level_set): row for row in own}

        def in_table(row: Summary) -> StatedFloor | None:
            found = by_game.get((row.game, row.level_set))
            return StatedFloor(found.mean, found.sem, found.n, "") if found is not None else None

        return in_table
    if floor and floor != "registry":
        stated = stated_floors(floor)
        return lambda row: stated.get(row.game) or stated.get("")

    return lambda row: find_known_floor(row.game, mode, row.level_set)


def _floor_row(context: PlannedStudy, key: tuple[str, str], floor: StatedFloor) -> ReturnRow:
    game, level_set = key
    place = Place(game, context.study.modes[0], "")
    return ReturnRow(
        **context.row("floor", place, n=floor.n, rules=(FLOOR_RULE,), level_sets=(level_set,)),
        reference=FLOOR_RULE, level_set=level_set, mean=floor.mean, sem=floor.sem, n_episodes=floor.n, n_draws=0,
        n_levels=0,
    )  # fmt: skip


def _compared(context: PlannedStudy, pairs: Sequence[tuple[Summary, StatedFloor]]) -> Iterator[ComparisonRow]:
    """The rows with Holm's correction over the games of an agent, rule and level set."""
    alpha = context.plan.floor.alpha
    tests = []
    for row, floor in pairs:
        is_tested = row.n >= context.plan.least_runs and math.isfinite(row.sem) and math.isfinite(floor.sem)
        floor_df = float(floor.n - 1) if floor.n > 1 else _MANY
        parts = (
            (VariancePart(row.sem**2, row.n - 1), VariancePart(floor.sem**2, floor_df)) if is_tested else ()
        )
        tests.append((parts, components_p(row.mean - floor.mean, parts) if parts else NAN))
    for members in families_of(pairs, lambda pair: (pair[0].agent, pair[0].rule, pair[0].level_set)):
        p_values = [tests[i][1] for i in members]
        adjusted, divisors = holm(p_values), holm_divisors(p_values, alpha=alpha)
        size = sum(not math.isnan(p) for p in adjusted)
        for i, p_adjusted, divisor in zip(members, map(float, adjusted), divisors, strict=True):
            row, floor = pairs[i]
            parts, p = tests[i]
            delta = row.mean - floor.mean
            level = alpha / max(int(divisor), 1)
            interval = components_interval(delta, parts, alpha=level) if parts else NO_PAIR
            call: Call = "not tested"
            if parts:
                call = "not distinguishable"
                if p_adjusted < alpha:
                    call = "above" if delta > 0 else "below"
            place = Place(row.game, context.study.modes[0], "")
            labels = context.row(
                "floor comparison",
                place,
                n=row.n,
                rules=(row.rule,),
                level_sets=(row.level_set,),
                names=(row.agent,),
            )
            yield ComparisonRow(
                **labels,
                agent=row.agent,
                rule=row.rule,
                level_set=row.level_set,
                mean=row.mean,
                sem=row.sem,
                floor=floor.mean,
                floor_sem=floor.sem,
                floor_n=floor.n,
                delta=Estimate(
                    value=delta, se=math.hypot(row.sem, floor.sem), low=interval[0], high=interval[1],
                    confidence=1 - level, p=p, method="recommended, from means",
                ),
                decision=Decision(
                    call=call,
                    p_adjusted=p_adjusted,
                    family=f"floor: {', '.join(filter(None, (row.rule, row.level_set, row.agent)))}",
                    family_size=size,
                    reason="" if parts else _why_not(row, floor),
                ),
            )  # fmt: skip


def _why_not(row: Summary, floor: StatedFloor) -> str:
    if not row.n:
        return "the number of runs is not given: --label n=10"
    if not math.isfinite(row.sem):
        return "no spread over runs"
    return "the floor has no error" if not math.isfinite(floor.sem) else counted(row.n, "run")
