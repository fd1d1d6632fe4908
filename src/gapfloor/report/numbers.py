r"""Numbers that a text can cite: every result under a key, printed in the paper's format.

Keys are made by rule, for whatever games, budgets, rules and agents there are (docs/report.md lists the grammar):
`miner.8M.s.test`, `d.heist.8M.s.test.lo`, `gap.starpilot.25M.s.u`, ... `numbers.tex` defines `\N{key}`; a key
without data stops LaTeX with an error that names it. A key that ends in `.u` prints without the plus.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from gapfloor.analysis.rows import Quantity
from gapfloor.escape import key_part, safe_key
from gapfloor.json_values import jsonable
from gapfloor.report import number_columns as columns
from gapfloor.report.cka_input import CkaRecord
from gapfloor.report.findings import (
    ALL_OR_NOTHING,
    FLOOR,
    MERGED,
    SUITE,
    TEST,
    TRAIN,
    Env,
    Findings,
    rule_letter,
)
from gapfloor.report.number_columns import NumberColumns
from gapfloor.report.numbers_cka import cka_numbers
from gapfloor.tables.cells import Cell, is_number, percent_number

_QUANTITIES: tuple[Quantity, ...] = ("train", "test", "gap")
_SETS: tuple[Quantity, ...] = ("train", "test")
#: A row that gives numbers, its name in their keys, and which numbers it gives.
_Source = tuple[str, Any, NumberColumns]


@dataclass(frozen=True)
class Number:
    """One citable number."""

    key: str
    cell: Cell
    n: int | None = None
    status: str = ""

    @property
    def tex(self) -> str:
        """What the macro prints, in text and in math alike."""
        body = self.cell.tex
        if body.startswith("$") and body.endswith("$"):
            return rf"\ensuremath{{{body[1:-1]}}}"
        return body


def build_numbers(findings: Findings, cka: tuple[CkaRecord, ...] = ()) -> dict[str, Number]:
    """Every number of these results by key; the first row that gives a key keeps it."""
    numbers: dict[str, Number] = {}
    for name, row, made in _sources(findings):
        for key, cell_of in made:
            # A name that is empty (a suite of data without budgets) leaves no dot behind.
            spelt = key.format(name) if name else key.replace(".{}", "")
            number = Number(spelt, cell_of(row), *_origin(row))
            if _exists(number.cell):
                numbers.setdefault(number.key, number)
    for key, cell in cka_numbers(findings, cka):
        if _exists(cell):
            numbers.setdefault(key, Number(key, cell))
    return numbers


def to_tex(numbers: dict[str, Number]) -> str:
    r"""The file that defines `\N`."""
    lines = [
        "% Numbers by key: \\N{miner.8M.s.test}. Made by gapfloor report; do not edit.",
        r"\makeatletter",
        r"\DeclareRobustCommand{\N}[1]{\ifcsname gapfloor@#1\endcsname\csname gapfloor@#1\endcsname\else",
        r"  \PackageError{gapfloor}{There is no number with the key '#1'}{The analysis that wrote this file had no",
        r"  data for this key. numbers.json lists the keys that exist.}\textbf{[no number: \detokenize{#1}]}\fi}",
        r"\newcommand{\gapfloor@define}[2]{\expandafter\gdef\csname gapfloor@#1\endcsname{#2}}",
    ]
    lines += [rf"\gapfloor@define{{{number.key}}}{{{number.tex}}}" for number in _sorted(numbers)]
    return "\n".join([*lines, r"\makeatother", ""])


def to_json(numbers: dict[str, Number]) -> str:
    """The same keys with their unrounded values, as one JSON document."""
    # As `json.dumps(..., indent=1)` writes it, which takes six times as long.
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    # Counts and words of a status occur again and again; the encoder writes a float by its `repr`.
    repeated = cache(encode)
    entries = [
        f' {encode(number.key)}: {{\n  "text": {encode(number.cell.plain)},\n'
        f'  "value": {repr(value) if type(value) is float else encode(value)},\n  "n": {repeated(number.n)},\n'
        f'  "status": {repeated(number.status or None)}\n }}'
        for number in _sorted(numbers)
        for value in [jsonable(number.cell.raw[0])]
    ]
    return "{\n" + ",\n".join(entries) + "\n}\n" if entries else "{}\n"


@dataclass(frozen=True)
class _Return:
    """A mean return, whichever row it stands on."""

    mean: float
    sem: float
    n: int
    status: str


def _origin(row: Any) -> tuple[int, str]:
    """How many runs (or games) a number rests on, and its status where it has one."""
    return (row.n, row.status) if hasattr(row, "status") else (row.games, "")


def _sources(findings: Findings) -> Iterator[_Source]:
    for env in dict.fromkeys(dataclasses.replace(env, agent="") for env in findings.all_envs):
        yield from _floors(findings, env)
    for env in findings.all_envs:
        for budget in findings.budgets_of(env):
            for rule in findings.rules:
                yield from _rule(findings, env, budget, rule)
            yield from _game(findings, env, budget)
    for budget in findings.budgets:
        yield from _suite(findings, budget)


def _floors(findings: Findings, env: Env) -> Iterator[_Source]:
    for level_set in _SETS:
        row = findings.floor(env, level_set)
        if row is not None:
            game = findings.game_key(env)
            yield f"{game}.{level_set}", row, columns.FLOOR
            yield from _success(env, f"{game}.floor.{level_set}", row)


def _success(env: Env, name: str, row: Any) -> Iterator[_Source]:
    """The share of completed levels, in games that pay for nothing else."""
    if env.game in ALL_OR_NOTHING:
        whole = ALL_OR_NOTHING[env.game]
        yield name, row, (("succ.{}", lambda row: percent_number(row.mean / whole)),)


def _rule(findings: Findings, env: Env, budget: str, rule: str) -> Iterator[_Source]:
    """What one game gives at one budget under one rule."""
    stem = _join(findings.game_key(env), findings.budget_key(budget), safe_key(rule_letter(rule)))
    gap = findings.gap(env, budget, rule)
    for level_set in _SETS:
        name = f"{stem}.{level_set}"
        row = findings.comparison(env, budget, rule, level_set)
        found: _Return | None = None
        if row is not None:
            found = _Return(row.mean, row.sem, row.n, row.status)
            yield name, row, columns.DELTA
        elif gap is not None:
            is_train = level_set == TRAIN
            mean = gap.train if is_train else gap.test
            found = _Return(mean, gap.train_sem if is_train else gap.test_sem, gap.n, gap.status)
        if found is not None:
            yield name, found, columns.RETURN
            yield from _success(env, name, found)
        for agent in findings.agents(env, budget):
            if of_agent := findings.agent(env, budget, rule, agent):
                yield f"{name}.{findings.agent_key(agent)}", of_agent, columns.AGENT[level_set]
    if gap is not None:
        yield stem, gap, columns.GAP
    yield from _agent_differences(findings, env, budget, rule, stem)


def _agent_differences(findings: Findings, env: Env, budget: str, rule: str, stem: str) -> Iterator[_Source]:
    for quantity in _QUANTITIES:
        for at, row in enumerate(findings.differences(env, budget, rule, quantity)):
            pair = f"{findings.agent_key(row.agent or '')}-{findings.agent_key(row.agent_b)}"
            # The first pair has the plain key; with three agents or more the others name theirs.
            for name in (f"{stem}.{quantity}", f"{stem}.{quantity}.{pair}")[at > 0 :]:
                yield name, row, columns.AGENT_DIFFERENCE
            if quantity == "gap":
                yield f"{stem}.share" if at == 0 else f"{stem}.share.{pair}", row, columns.AGENT_SHARE


def _game(findings: Findings, env: Env, budget: str) -> Iterator[_Source]:
    """What one game gives at one budget whatever the rule."""
    game, label = findings.game_key(env), findings.budget_key(budget)
    for quantity in _QUANTITIES:
        if pair := findings.pair(env, budget, "sampled", "greedy", quantity):
            stem = _join(game, label)
            yield f"gd.{stem}" if quantity == "gap" else f"rd.{stem}.{quantity}", pair, columns.PAIR
    if screen := findings.screen(env, budget):
        yield _join(game, label), screen, columns.SCREEN
    for level_set in _SETS:
        # The main budget's numbers of the merged rule also have keys without a budget.
        names = [_join(game, label, level_set)]
        names += [_join(game, level_set)] if budget == findings.main_budget else []
        found = (
            (findings.comparison(env, budget, MERGED, level_set), columns.MERGED_DELTA),
            (findings.disagreement(env, budget, MERGED, level_set), columns.MERGED_DISAGREEMENT),
            (findings.pair(env, budget, MERGED, "greedy", level_set), columns.MERGED_PAIR),
        )
        yield from ((name, row, made) for name in names for row, made in found if row is not None)


def _suite(findings: Findings, budget: str) -> Iterator[_Source]:
    """What all games together give at one budget: counts and normalised scores."""
    label = findings.budget_key(budget)
    if summary := findings.screen_summary(budget):
        yield label, summary, columns.SCREEN_SUMMARY
    for rule in findings.rules:
        for level_set in (TEST, TRAIN):
            # Counts of several agents have no key of their own.
            for count in findings.call_counts(budget, rule, level_set) if findings.is_one_pool else ():
                # The paper's counts are of held-out levels; those of training levels say so.
                name = _join(label, safe_key(rule_letter(rule)))
                made = columns.CALL_COUNT
                if level_set == TRAIN:
                    made = tuple((key.replace("{}", "{}.train"), cell_of) for key, cell_of in made)
                yield name, count, made
    games: list[tuple[Env | None, str]] = [(env, findings.game_key(env)) for env in findings.all_envs]
    for env, key in [*games, (None, SUITE)]:
        for rule in (*findings.rules, FLOOR):
            for level_set in (TRAIN, TEST):
                if score := findings.normalised(env, budget, rule, level_set):
                    column = "floor" if rule == FLOOR else key_part(rule)
                    yield _join(key, label, f"{column}_{level_set}"), score, columns.SCORE


def _join(*parts: str) -> str:
    # Data without budgets have keys without them: miner.s.test.
    return ".".join(part for part in parts if part)


def _exists(cell: Cell) -> bool:
    value = cell.raw[0]
    return isinstance(value, str) or (value is not None and is_number(value))


def _sorted(numbers: dict[str, Number]) -> list[Number]:
    return [numbers[key] for key in sorted(numbers)]
