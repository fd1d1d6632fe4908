r"""Numbers that a text can cite: every result under a key, printed in the paper's format.

Keys are made by rule, for whatever games, budgets, rules and agents there are (docs/my-table.md lists the grammar):
`miner.8M.s.test`, `d.heist.8M.s.test.lo`, `gap.starpilot.25M.s.u`, ... `numbers.tex` defines `\N{key}`; a key
without data stops LaTeX with an error that names it. A key that ends in `.u` prints without the plus.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from gapfloor.analysis.rows import Quantity
from gapfloor.escape import key_part, safe_key
from gapfloor.json_values import jsonable
from gapfloor.report.cka import CkaRecord, cka_numbers
from gapfloor.report.findings import (
    FLOOR,
    MERGED,
    SUITE,
    TEST,
    TRAIN,
    Env,
    Findings,
    GameFindings,
)
from gapfloor.settings import shipped, shipped_text
from gapfloor.tables.cells import Cell, formatted, is_number

#: Games whose levels pay 0 or 10 whole: the mean return is a share of completed levels. A property of the games'
#: code, not something to infer from data (a policy that never succeeds would look like any other).
_ALL_OR_NOTHING = frozenset(("coinrun", "heist", "maze", "leaper", "jumper", "ninja"))
_QUANTITIES: tuple[Quantity, ...] = ("train", "test", "gap")
_SETS: tuple[Quantity, ...] = ("train", "test")
#: The paper's three rules have a letter in its keys.
_RULE_LETTERS = {"sampled": "s", "greedy": "g", "merged": "m"}
#: A row that gives numbers: its name in their keys, the row, and the section of `templates/numbers.toml`.
_Source = tuple[str, Any, str]


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


def build_numbers(findings: Findings, cka: Sequence[CkaRecord] = ()) -> dict[str, Number]:
    """Every number of these results by key, in the order of keys; the first row that gives a key keeps it."""
    # Section -> keys, how the value is taken from a row, and its format.
    keys = {
        section: [(key, attrgetter(entry.split()[0]), entry.split()[1]) for key, entry in entries.items()]
        for section, entries in shipped("report/templates/numbers.toml").items()
    }
    made: list[Number] = []
    for name, row, section in _sources(findings):
        # How many runs (or games) a number rests on, and its status where it has one.
        origin = (row.n, row.status) if hasattr(row, "status") else (row.games, "")
        for key, value_of, style in keys[section]:
            # A name that is empty (a suite of data without budgets) leaves no dot behind.
            spelt = key.format(name) if name else key.replace(".{}", "")
            made.append(Number(spelt, formatted(style, value_of(row)), *origin))
    made += [Number(*found) for found in cka_numbers(findings, cka)]
    numbers: dict[str, Number] = {}
    for number in made:
        value = number.cell.raw[0]
        if isinstance(value, str) or is_number(value):
            numbers.setdefault(number.key, number)
    return dict(sorted(numbers.items()))


def to_tex(numbers: dict[str, Number]) -> str:
    r"""The file that defines `\N`."""
    defined = (rf"\gapfloor@define{{{number.key}}}{{{number.tex}}}" for number in numbers.values())
    return shipped_text("report/templates/numbers.tex") + "\n".join([*defined, r"\makeatother", ""])


def to_json(numbers: dict[str, Number]) -> str:
    """The same keys with their unrounded values, as one JSON document."""
    document = {
        number.key: {
            "text": number.cell.plain,
            "value": jsonable(number.cell.raw[0]),
            "n": number.n,
            "status": number.status or None,
        }
        for number in numbers.values()
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _sources(findings: Findings) -> Iterator[_Source]:
    for env in dict.fromkeys(replace(env, agent="") for env in findings.all_envs):
        for level_set in _SETS:
            if floor := findings.place(env, "").floor(level_set):
                game = findings.keys["game"][findings.name(env)]
                yield f"{game}.{level_set}", floor, "floor"
                if env.game in _ALL_OR_NOTHING:
                    yield f"{game}.floor.{level_set}", floor, "success_of_returns"
    for env in findings.all_envs:
        for place in findings.places_of(env):
            for rule in findings.rules:
                yield from _rule(place, rule)
            yield from _game(place)
    for budget in findings.budgets:
        yield from _suite(findings, budget)


def _returns(env: Env, name: str, row: Any, kind: str = "returns") -> Iterator[_Source]:
    """A mean return, and the share of completed levels in games that pay for nothing else."""
    yield name, row, kind
    if env.game in _ALL_OR_NOTHING:
        yield name, row, f"success_of_{kind}"


def _rule(place: GameFindings, rule: str) -> Iterator[_Source]:
    """What one game gives at one budget under one rule."""
    findings, gap = place.findings, place.gap(rule)
    stem = f"{place.key}.{_rule_key(rule)}"
    for level_set in _SETS:
        name = f"{stem}.{level_set}"
        if row := place.comparison(rule, level_set):
            yield name, row, "comparison"
            yield from _returns(place.env, name, row)
        elif gap is not None:
            yield from _returns(place.env, name, gap, f"gap_{level_set}")
        for agent in place.agents:
            if of_agent := place.row("agents", rule=rule, agent=agent):
                yield f"{name}.{findings.keys['agent'][agent]}", of_agent, f"agent_{level_set}"
    if gap is not None:
        yield stem, gap, "gap"
        if gap.estimate.method in ("paper", "recommended"):
            yield stem, gap, f"gap_{gap.estimate.method}"
    for quantity in _QUANTITIES:
        for at, difference in enumerate(place.differences(rule, quantity)):
            first, second = (
                findings.keys["agent"][each or ""] for each in (difference.agent, difference.agent_b)
            )
            pair = f".{first}-{second}"
            # The first pair has the plain key; with three agents or more the others name theirs.
            for end in ("", pair)[at > 0 :]:
                yield f"{stem}.{quantity}{end}", difference, "agent_difference"
            if quantity == "gap":
                yield f"{stem}.share{pair if at else ''}", difference, "agent_share"


def _game(place: GameFindings) -> Iterator[_Source]:
    """What one game gives at one budget whatever the rule."""
    findings = place.findings
    for quantity in _QUANTITIES:
        if pair := place.pair("sampled", "greedy", quantity):
            yield f"gd.{place.key}" if quantity == "gap" else f"rd.{place.key}.{quantity}", pair, "pair"
    if place.screen:
        yield place.key, place.screen, "screen"
    for level_set in _SETS:
        # The main budget's numbers of the merged rule also have keys without a budget.
        games = [place.key]
        games += [findings.keys["game"][place.name]] if place.budget == findings.main_budget else []
        found = {
            "merged_comparison": place.comparison(MERGED, level_set),
            "merged_disagreement": place.row("disagreements", rule=MERGED, level_set=level_set),
            "merged_pair": place.pair(MERGED, "greedy", level_set),
        }
        yield from (
            (f"{game}.{level_set}", row, section)
            for game in games
            for section, row in found.items()
            if row is not None
        )


def _suite(findings: Findings, budget: str) -> Iterator[_Source]:
    """What all games together give at one budget: counts and normalised scores."""
    label = findings.keys["budget"][budget]
    for summary in findings.results.screen_summaries:
        if summary.budget == budget:
            yield label, summary, "screen_summary"
    for rule in findings.rules:
        # The paper's counts are of held-out levels; those of training levels say so.
        for level_set, end in ((TEST, ""), (TRAIN, TRAIN)):
            # Counts of several agents have no key of their own.
            for count in findings.call_counts(budget, rule, level_set) if findings.is_one_pool else ():
                yield _join(label, _rule_key(rule), end), count, "call_count"
    for env in (*findings.all_envs, Env(SUITE, "")):
        game = SUITE if env.game == SUITE else findings.keys["game"][findings.name(env)]
        for rule in (*findings.rules, FLOOR):
            for level_set in (TRAIN, TEST):
                if score := findings.place(env, budget).score(rule, level_set):
                    column = "floor" if rule == FLOOR else key_part(rule)
                    yield _join(game, label, f"{column}_{level_set}"), score, "score"


def _rule_key(rule: str) -> str:
    return _RULE_LETTERS.get(rule) or safe_key(rule)


def _join(*parts: str) -> str:
    # Data without budgets have keys without them: miner.s.test.
    return ".".join(part for part in parts if part)
