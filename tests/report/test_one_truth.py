"""A report never contradicts itself: every statement about a comparison, in every output, says the same.

The statements are collected from the files of a report and from the analysis as a terminal prints it. Two that differ
in the call, or an interval that disagrees with the p next to it, fail.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.csv
import pytest

from gapfloor.report.findings import agent_name
from gapfloor.report.source import ReportSource, load_report_source
from gapfloor.report.write import write_report
from gapfloor.text_tables import as_table
from known_truth import game_rows, table

CALLS = {
    "equiv.": "equivalent", "n.d.": "not distinguishable", "n.t.": "not tested", "above": "above", "below": "below",
}  # fmt: skip
READINGS = {
    "above chance": "above", "worse than random play": "below", "equivalent to random play": "equivalent",
    "not distinguishable from random play": "not distinguishable", "not tested against random play": "not tested",
}  # fmt: skip
LETTERS = {"s": "sampled", "g": "greedy", "m": "merged"}
DATA = Path(__file__).parents[2] / "data"


class Statement(NamedTuple):
    """What one place says about one comparison with the floor."""

    place: str
    about: tuple[str, str, str, str]
    """Game, budget, rule and level set."""
    call: str


class Tested(NamedTuple):
    """An interval and the p that stands next to it."""

    place: str
    about: tuple[str, ...]
    low: float
    high: float
    p: float


def of_terminal(source: ReportSource) -> Iterator[Statement]:
    for made in source.findings.results.tables()[:1]:
        table = as_table(made)
        names = [column.header.plain for column in table.columns]
        for cells in table.body:
            row = {name: cell.plain for name, cell in zip(names, cells, strict=True)}
            call = re.sub(r" \(.*", "", row["call"])
            game = row["game"]
            if not source.findings.is_one_pool:
                game = f"{game} ({agent_name(row['agent'])})"
            yield Statement("terminal", (game, row.get("budget", ""), row["rule"], row["levels"]), call)


def of_tables(folder: Path, source: ReportSource) -> Iterator[Statement]:
    findings = source.findings
    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    for budget in findings.budgets:
        is_main = budget == findings.main_budget
        name = "unmask" if is_main else f"unmask_{findings.slug(budget)}"
        path = folder / "csv" / f"{name}.csv"
        if path.exists():
            for row in csv.DictReader(path.open(encoding="utf-8")):
                for rule in rules:
                    if row.get(f"{rule}_call"):
                        yield Statement(path.name, (row["env"], budget, rule, "test"), row[f"{rule}_call"])
            text = (folder / "tables" / f"{name}.tabular.tex").read_text(encoding="utf-8")
            for line in text.splitlines():
                cells = [cell.replace("\\\\", "").strip() for cell in line.split("&")]
                calls = [CALLS[cell] for cell in cells if cell in CALLS]
                for rule, call in zip(rules, calls, strict=False):
                    yield Statement(f"{name}.tex", (cells[0], budget, rule, "test"), call)
    for row in csv.DictReader((folder / "csv" / "floor.csv").open(encoding="utf-8")):
        game, _, budget = row["env"].rpartition(" (") if findings.budgets != ("",) else (row["env"], "", "")
        for rule in rules:
            if row.get(f"{rule}_call"):
                about = (game, budget.rstrip(")"), rule, row["levels"])
                yield Statement("floor.csv", about, row[f"{rule}_call"])


def of_numbers(folder: Path, source: ReportSource) -> Iterator[Statement | Tested]:
    findings = source.findings
    games = {findings.game_key(env): findings.name(env) for env in findings.all_envs}
    budgets = {findings.budget_key(budget): budget for budget in findings.budgets}
    numbers = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    for key, number in numbers.items():
        found = re.fullmatch(r"d\.(.+?)\.(?:(.+)\.)?([sgm])\.(train|test)\.label", key)
        if found is None:
            continue
        game, budget, letter, level_set = found.groups()
        about = (games[game], budgets[budget or ""], LETTERS[letter], level_set)
        yield Statement("numbers.json", about, number["value"])
        stem = key.removesuffix(".label")
        ends = [numbers.get(f"{stem}.{end}", {}).get("value") for end in ("lo", "hi", "ph")]
        if None not in ends:
            yield Tested("numbers.json", about, *ends)


def of_card(folder: Path) -> Iterator[Statement | Tested]:
    card = json.loads((folder / "card.json").read_text(encoding="utf-8"))
    primary = card["action_rule"]["primary"]
    for game in card["games"]:
        same = [
            each for each in card["games"] if (each["game"], each["budget"]) == (game["game"], game["budget"])
        ]
        name = game["game"] if len(same) == 1 else f"{game['game']} ({agent_name(game['agents'][0])})"
        where = (name, game["budget"])
        for rule, entry in game["rules"].items():
            for level_set in ("train", "test"):
                if found := entry[level_set]:
                    yield Statement("card.json", (*where, rule, level_set), found["call"])
                    if found["call"] != "not tested" and found["p_holm"] is not None:
                        yield Tested(
                            "card.json",
                            (*where, rule, level_set),
                            found["low"],
                            found["high"],
                            found["p_holm"],
                        )
            if (gap := entry["gap"]) and gap["p_holm"] is not None and gap["low"] is not None:
                yield Tested("card.json", (*where, rule, "gap"), gap["low"], gap["high"], gap["p_holm"])
        first = re.split(r"; with \w+ actions", game["reading"]["sentence"])[0]
        for words, call in READINGS.items():
            if first.rstrip(".").endswith(f": {words}"):
                yield Statement("verdict", (*where, primary, "test"), call)


def of_page(folder: Path, source: ReportSource) -> Iterator[Statement]:
    findings = source.findings
    page = (folder / "index.html").read_text(encoding="utf-8")
    rules = [rule for rule in (findings.primary, findings.secondary) if rule]
    start = page.find('id="table-unmask"')
    body = page[start : page.find("</tbody>", start)]
    for line in re.findall(r"<tr>(.*?)</tr>", body):
        cells = re.findall(r'data-sort="([^"]*)"', line)
        calls = [cell for cell in cells if cell in CALLS.values()]
        for rule, call in zip(rules, calls, strict=False):
            yield Statement("page", (cells[0], findings.main_budget, rule, "test"), call)


def contradictions(source: ReportSource, folder: Path) -> list[str]:
    """Everything in a report that says two things about one comparison."""
    write_report(source, folder, formats=("tex", "csv", "card", "methods", "html"))
    found = [
        *of_terminal(source), *of_tables(folder, source), *of_numbers(folder, source), *of_card(folder),
        *of_page(folder, source),
    ]  # fmt: skip
    statements = [one for one in found if isinstance(one, Statement)]
    assert {one.place for one in statements} >= {
        "terminal",
        "floor.csv",
        "numbers.json",
        "card.json",
        "verdict",
    }
    wrong: list[str] = []
    said: dict[Any, Statement] = {}
    for one in statements:
        first = said.setdefault(one.about, one)
        if first.call != one.call:
            wrong.append(f"{one.about}: {first.place} says {first.call}, {one.place} says {one.call}")
    plan = source.findings.plan
    for tested in (one for one in found if isinstance(one, Tested)):
        method = plan.gap_method if tested.about[-1] == "gap" else plan.floor_method
        if tested.about[-1] == "gap" and method == "paper":
            continue  # Fisher's p asks whether any run differs; the paper's interval is of the mean gap.
        # The paper's bootstrap interval and its test may part where p is near alpha; that is the paper's own.
        far = (plan.alpha / 5, plan.alpha * 5) if method == "paper" else (plan.alpha, plan.alpha)
        excludes = tested.low > 0 or tested.high < 0
        if math.isfinite(tested.p) and (
            (tested.p < far[0] and not excludes)
            or (method == "recommended" and tested.p >= far[1] and excludes)
        ):
            wrong.append(
                f"{tested.about}: {tested.place} has [{tested.low}, {tested.high}] with p = {tested.p}"
            )
    methods = (folder / "methods.txt").read_text(encoding="utf-8")
    if ("by Welch's two-sided test" in methods) != (plan.floor_method == "paper"):
        wrong.append("The methods paragraph describes another method than the plan's.")
    return wrong


def test_the_papers_plan(paper_source: ReportSource, tmp_path: Path) -> None:
    assert contradictions(paper_source, tmp_path) == []


def test_the_same_data_without_a_plan(paper_store: Path, tmp_path: Path) -> None:
    assert contradictions(load_report_source(paper_store), tmp_path) == []


@pytest.mark.parametrize("name", ["miniature", "miniature-census"])
def test_the_studies_that_come_with_the_repository(name: str, tmp_path: Path) -> None:
    assert contradictions(load_report_source(DATA / name), tmp_path) == []


def test_a_table_of_a_stranger(tmp_path: Path) -> None:
    """Eight games around the floor with few runs, where the two methods disagree."""
    parts = [
        game_rows(
            game=f"g{i}", test=1.9 + 0.12 * i, train=2.0 + 0.2 * i, n_runs=3 + i % 2, run_sd=0.15, seed=i
        )
        for i in range(8)
    ]
    path = tmp_path / "episodes.csv"
    pyarrow.csv.write_csv(table(*parts), path)
    assert contradictions(load_report_source(path), tmp_path / "report") == []


def test_a_strangers_two_checkpoints_without_level_seeds(tmp_path: Path) -> None:
    rows = [
        row
        for rule in ("sampled", "greedy")
        for row in game_rows(n_runs=2, has_levels=False, budget="", rule=rule)
        if row["reference"] == "" or rule == "sampled"
    ]
    path = tmp_path / "episodes.csv"
    pyarrow.csv.write_csv(table([{k: v for k, v in row.items() if k != "level_seed"} for row in rows]), path)
    assert contradictions(load_report_source(path), tmp_path / "report") == []
