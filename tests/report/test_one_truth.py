"""A report never contradicts itself: every statement about a comparison, in every output, says the same.

Two statements that differ in the call, an interval that disagrees with the p next to it, or an interval that disagrees
with the call, fail. The last tests change one output at a time and see that this is found.
"""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from tests.report.statements import Statement, statements

from gapfloor.report.findings import Findings
from gapfloor.report.source import ReportSource, load_report_source
from gapfloor.report.verdict import headline
from gapfloor.report.write import WrittenReport, write_report
from gapfloor.tables.cells import count_word
from known_truth import game_rows, table

DATA = Path(__file__).parents[2] / "data"
FORMATS = ("tex", "csv", "md", "card", "methods", "html")
#: Where a report of any study says something; the page's marks and the CSV and LaTeX of a table are added by name.
PLACES = {
    "json", "terminal", "summary", "numbers.json", "numbers.tex", "card.json", "card.json reading", "card.md",
    "model-card.md", "badge", "badge words", "page", "mark", "unmask.csv", "unmask.tex", "page table unmask",
    "tables.md unmask", "floor.csv", "floor.tex", "page table floor",
}  # fmt: skip
_MADE = {"above", "below", "train higher", "test higher"}


def contradictions(source: ReportSource, written: WrittenReport) -> list[str]:
    """Everything in a report that says two things about one comparison."""
    found = list(statements(source, written))
    assert {one.place for one in found} >= PLACES
    said: dict[Any, Statement] = {}
    wrong: list[str] = []
    for one in found:
        first = said.setdefault(one.about, one)
        if first.call != one.call:
            wrong.append(f"{one.about}: {first.place} says {first.call}, {one.place} says {one.call}")
    wrong += [reason for one in found for reason in _against_its_interval(one, source.findings)]
    return (
        wrong
        + _wrong_counts(source.findings, written.folder)
        + _wrong_methods(source.findings, written.folder)
    )


def _against_its_interval(one: Statement, findings: Findings) -> list[str]:
    """Whether an interval excludes zero exactly if its p is small and a call was made."""
    plan, is_gap = findings.plan, one.about[-1] == "gap"
    method = plan.method
    if one.call == "not tested" or not (math.isfinite(one.low) and math.isfinite(one.high)):
        return []
    if method == "paper" and is_gap:
        return []  # Fisher's p asks whether any run differs; the paper's interval is of the mean gap.
    if one.is_rounded and 0.0 in (one.low, one.high):
        return []
    excludes = one.low > 0 or one.high < 0
    text = f"{one.about}: {one.place} has [{one.low}, {one.high}]"
    wrong = []
    # The paper's bootstrap interval and its test may part where p is near alpha; that is the paper's own.
    far = (plan.alpha / 5, math.inf) if method == "paper" else (plan.alpha, plan.alpha)
    if (one.p < far[0] and not excludes) or (one.p >= far[1] and excludes):
        wrong.append(f"{text} with p = {one.p}")
    if method == "recommended" and excludes != (one.call in _MADE):
        wrong.append(f"{text} and calls it {one.call}")
    return wrong


def _wrong_counts(findings: Findings, folder: Path) -> list[str]:
    """Whether the numbers of calls, and the headline in terminal and page, count the calls of the rows."""
    numbers = json.loads((folder / "numbers.json").read_text(encoding="utf-8"))
    page = (folder / "index.html").read_text(encoding="utf-8")
    wrong = []
    for budget in findings.budgets if findings.is_one_pool else ():
        rows = [
            row
            for row in findings.results.floor_comparisons
            if (row.budget, row.level_set) == (budget, "test")
        ]
        for letter, rule in (("s", "sampled"), ("g", "greedy")):
            calls = Counter(row.call for row in rows if row.rule == rule)
            key = ".".join(filter(None, ("count", "above", findings.keys["budget"][budget], letter)))
            if calls and numbers[key]["value"] != calls["above"]:
                wrong.append(f"{key} is {numbers[key]['value']}, the rows have {calls['above']}")
        calls = Counter(row.call for row in rows if row.rule == findings.primary)
        if calls.total() > 1:
            many = "none" if not calls["above"] else count_word(calls["above"]).plain
            words = rf"[Oo]f {count_word(calls.total()).plain} games{f' at {budget}' if budget else ''}, {many} score"
            wrong += [
                f"{place} does not say: {words}"
                for place, text in (("terminal", headline(findings)), ("page", page))
                if not re.search(words, text)
            ]
    return wrong


def _wrong_methods(findings: Findings, folder: Path) -> list[str]:
    """Whether the methods paragraph describes the plan's tests, and counts what was not tested."""
    text = (folder / "methods.txt").read_text(encoding="utf-8")
    wrong = []
    if ("by Welch's two-sided test" in text) != (findings.plan.method == "paper"):
        wrong.append("The methods paragraph describes another method than the plan's.")
    untested = sum(row.call == "not tested" for row in findings.results.floor_comparisons)
    told = re.findall(r"(\d+) comparisons? (?:with fewer than|could not be called)", text)
    if sum(map(int, told)) != untested:
        wrong.append(f"The methods paragraph counts {told} untested comparisons, the rows have {untested}.")
    return wrong


def written_report(source: ReportSource, folder: Path) -> WrittenReport:
    return write_report(source, folder, formats=FORMATS)


def test_the_papers_plan(paper_source: ReportSource, tmp_path: Path) -> None:
    assert contradictions(paper_source, written_report(paper_source, tmp_path)) == []


def test_the_same_data_without_a_plan(paper_store: Path, tmp_path: Path) -> None:
    source = load_report_source(paper_store)
    assert contradictions(source, written_report(source, tmp_path)) == []


@pytest.mark.parametrize("name", ["public", "miniature", "miniature-census"])
def test_the_studies_that_come_with_the_repository(name: str, tmp_path: Path) -> None:
    """`public` is the data of the first report of `make demo`."""
    source = load_report_source(DATA / name)
    assert contradictions(source, written_report(source, tmp_path)) == []


@pytest.fixture(scope="module")
def strangers_source(tmp_path_factory: pytest.TempPathFactory) -> ReportSource:
    """A table of eight games around the floor with few runs, where the two methods disagree."""
    parts = [
        game_rows(
            game=f"g{i}", test=1.9 + 0.12 * i, train=2.0 + 0.2 * i, n_runs=3 + i % 2, run_sd=0.15, seed=i
        )
        for i in range(8)
    ]
    path = tmp_path_factory.mktemp("stranger") / "episodes.csv"
    pyarrow.csv.write_csv(table(*parts), path)
    return load_report_source(path)


@pytest.fixture(scope="module")
def strangers_report(
    strangers_source: ReportSource, tmp_path_factory: pytest.TempPathFactory
) -> WrittenReport:
    return written_report(strangers_source, tmp_path_factory.mktemp("report"))


def test_a_table_of_a_stranger(strangers_source: ReportSource, strangers_report: WrittenReport) -> None:
    assert contradictions(strangers_source, strangers_report) == []


def test_a_strangers_two_checkpoints_without_level_seeds(tmp_path: Path) -> None:
    rows = [
        row
        for rule in ("sampled", "greedy")
        for row in game_rows(n_runs=2, has_levels=False, budget="", rule=rule)
        if row["reference"] == "" or rule == "sampled"
    ]
    path = tmp_path / "episodes.csv"
    pyarrow.csv.write_csv(table([{k: v for k, v in row.items() if k != "level_seed"} for row in rows]), path)
    source = load_report_source(path)
    assert contradictions(source, written_report(source, tmp_path / "report")) == []


@pytest.mark.parametrize(
    ("file", "pattern", "changed"),
    [
        ("csv/unmask.csv", r",above,", ",below,"),
        ("csv/gap8m.csv", r",not distinguishable\n", ",train higher\n"),
        ("tables/unmask.tabular.tex", r"& above ", "& n.d. "),
        ("tables/floor.tabular.tex", r"& n\.d\. ", "& above "),
        ("tables.md", r"\| above ", "| below "),
        ("numbers.json", r'"value": "above"', '"value": "below"'),
        ("numbers.json", r'(count\.above\.8M\.s": \{\s+"text": "\d",\s+"value": )\d', r"\g<1>8"),
        ("numbers.tex", r"\.label\}\{above the floor", ".label}{equivalent to the floor"),
        ("card.json", r'"call": "above"', '"call": "not distinguishable"'),
        ("card.json", r"above chance", "equivalent to random play"),
        ("card.json", r'"low": [.\d]+', '"low": -1.0'),
        ("card.md", r"above the floor", "below the floor"),
        ("model-card.md", r"\| not distinguishable \|", "| train higher |"),
        ("methods.txt", r"by the Behrens-Fisher test", "by Welch's two-sided test"),
        ("index.html", r'(data-tip="[^"]*; )above"', r'\1below"'),
        ("index.html", r'(<span class="badge [a-z-]+">)above', r"\1below"),
        ("index.html", r'<article class="card above"', '<article class="card below"'),
        ("index.html", r"above chance", "worse than random play"),
        ("index.html", r">above</td>", ">below</td>"),
        ("index.html", r"Of eight games at 8M, \w+ score", "Of eight games at 8M, eight score"),
    ],
)  # fmt: skip
def test_a_changed_file_is_found(
    strangers_source: ReportSource,
    strangers_report: WrittenReport,
    tmp_path: Path,
    file: str,
    pattern: str,
    changed: str,
) -> None:
    folder = shutil.copytree(strangers_report.folder, tmp_path / "copy")
    text = (folder / file).read_text(encoding="utf-8")
    # The badges of the legend belong to no game.
    start = text.find("<article") if pattern.startswith("(<span") else 0
    other = text[:start] + re.sub(pattern, changed, text[start:], count=1)
    assert other != text
    (folder / file).write_text(other, encoding="utf-8")
    assert contradictions(strangers_source, replace(strangers_report, folder=folder))


@pytest.mark.parametrize("kind", ["floor_comparisons", "gaps"])
def test_a_row_that_differs_from_the_files_is_found(
    strangers_source: ReportSource, strangers_report: WrittenReport, kind: str
) -> None:
    results = strangers_source.findings.results
    first, *others = getattr(results, kind)
    call = "above" if first.call != "above" else "below"
    row = replace(first, decision=replace(first.decision, call=call))
    findings = Findings(replace(results, **{kind: (row, *others)}), same_draws=True)
    assert contradictions(replace(strangers_source, findings=findings), strangers_report)
