r"""A report whose every label is hostile: LaTeX, Markdown, CSV, JSON, figures and page print labels as text."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.report.chromium import needs_chromium, visit
from tests.report.test_latex import compile_tex, needs_pdflatex

from gapfloor.escape import clean_text, escape_csv, escape_markdown, escape_tex, guard_row
from gapfloor.report.findings import Findings
from gapfloor.report.numbers import build_numbers
from gapfloor.report.source import load_report_source
from gapfloor.report.write import WrittenReport, write_report

GAMES = (
    r"\input{secret}_x", "[1cm]under_score", "*star", "(paren", "=1+1", "-2+3|' /C calc'!A0", "+SUM(1)", "@SUM(A1)",
    "a--b``c''?`!`", "<script>document.title='owned'</script>", "«ĄþŋÐŦĿŉ»", "日本", "x$y^z~&%#{}\\", "| pipe `code` |",
    "‮evil\u0007\t", r"\end{tabular}\end{document}", "http://a.b www.c.d @e ![i](http://j)", "a_b", "a-b",
)  # fmt: skip
BUDGETS = ("8M", "8m", r"8M_}\input{secret}", "[9M]")
AGENTS = ("*[x]_y", r"}\input{secret}_")
EPISODES = 3


def hostile_rows() -> list[dict[str, object]]:
    rows = []
    for number, (game, budget) in enumerate(product(GAMES, BUDGETS)):
        # Every game at the first budget, a few at the others.
        if budget != BUDGETS[0] and number % 5:
            continue
        runs = [(agent, seed) for agent in AGENTS for seed in (r"1_\x", "[2]")]
        for at, ((agent, seed), rule, level_set, episode) in enumerate(
            product(runs, ("sampled", "greedy"), ("train", "test"), range(EPISODES))
        ):
            rows.append(
                {
                    "game": game, "mode": "[easy]_$", "budget": budget, "agent": agent, "seed": seed, "reference": "",
                    "rule": rule, "level_set": level_set, "draw": "*0_", "slot": 0, "index": episode,
                    "level_seed": episode, "episode_return": float((at * 7 + number) % 11), "length": 5,
                }
            )  # fmt: skip
    for game, level_set, episode in product(GAMES, ("train", "test"), range(EPISODES)):
        rows.append(
            {
                "game": game, "mode": "[easy]_$", "budget": "", "agent": "", "seed": "", "reference": "uniform",
                "rule": "uniform", "level_set": level_set, "draw": "*0_", "slot": 0, "index": episode,
                "level_seed": episode, "episode_return": float(episode % 3), "length": 5,
            }
        )  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> WrittenReport:
    folder = tmp_path_factory.mktemp("hostile")
    path = folder / "episodes_[x]_{y}.parquet"
    pq.write_table(pa.Table.from_pylist(hostile_rows()), path)
    return write_report(load_report_source(path), folder / "out", tables=("audit", "commits", "hyper"))


@needs_pdflatex
def test_pdflatex_compiles_every_table_and_number(report: WrittenReport, tmp_path: Path) -> None:
    shutil.copytree(report.folder / "tables", tmp_path / "tables")
    shutil.copy(report.folder / "numbers.tex", tmp_path)
    (tmp_path / "secret.tex").write_text("SECRET", encoding="utf-8")
    inputs = [rf"\input{{tables/{table.name}.tex}}\clearpage" for table in report.made.tables]
    inputs += [rf"\N{{{key}}}" for key in report.numbers]
    (tmp_path / "all.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs,amsmath,amssymb,graphicx}\input{numbers.tex}\begin{document}"
        + "\n".join(inputs)
        + r"\end{document}",
        encoding="utf-8",
    )
    done = compile_tex(tmp_path, "all.tex")
    assert done.returncode == 0, done.stdout[-3000:]
    opened = re.findall(r"\(\./secret", done.stdout)
    assert opened == []
    if shutil.which("pdftotext"):
        text = subprocess.run(
            ["pdftotext", "all.pdf", "-"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        assert "SECRET" not in text
        # pdflatex draws an underscore as a line and a star as a symbol, which pdftotext may leave out or replace.
        assert re.search(r"\[1cm\]under\W?\s?_?score", text)
        assert re.search(r"\Wstar", text)


def test_no_cell_of_a_csv_file_is_a_formula(report: WrittenReport) -> None:
    for path in (report.folder / "csv").glob("*.csv"):
        with open(path, newline="", encoding="utf-8") as file:
            for row in csv.reader(file):
                for cell in row:
                    is_number = re.fullmatch(r"-?[0-9.]+(e[+-]?[0-9]+)?", cell)
                    assert is_number or not cell.startswith(("=", "+", "-", "@", "\t", "\r")), (
                        path.name,
                        cell,
                    )
                    assert cell.isprintable(), (path.name, cell)


def test_the_header_of_a_model_card_has_no_line_or_control_character_of_a_label(
    report: WrittenReport,
) -> None:
    header = (report.folder / "model-card.md").read_text(encoding="utf-8").split("\n---\n")[0]
    document = yaml.safe_load(header)
    named = [result["dataset"] for result in document["model-index"][0]["results"]]
    assert named
    assert all(text.isprintable() for each in named for text in each.values())


def test_every_table_has_files_of_its_own(report: WrittenReport) -> None:
    names = [table.name for table in report.made.tables]
    assert len(names) == len(set(names))
    assert len(list((report.folder / "csv").glob("*.csv"))) == len(names)
    assert "unmask_8m-2" in names or {"unmask_8m", "unmask"} <= set(names)
    figures = [path.name for path in report.files if path.suffix == ".pdf"]
    assert len(figures) == len(set(figures)) >= 4 * 2


def test_games_whose_keys_would_be_the_same_keep_their_own_numbers(report: WrittenReport) -> None:
    assert "floor.a-b.test" in report.numbers
    assert "floor.a-b-2.test" in report.numbers
    assert all(re.fullmatch(r"[A-Za-z0-9.:+\-_]+", key) for key in report.numbers)
    assert json.loads((report.folder / "numbers.json").read_text(encoding="utf-8"))


def test_markdown_holds_no_markup_of_a_label(report: WrittenReport) -> None:
    for name in ("tables.md", "card.md"):
        text = (report.folder / name).read_text(encoding="utf-8")
        assert "<script" not in text.replace("\\<script", "")
        assert "http://" not in text
        assert "![" not in text.replace("!\\[", "")
        lines = [line for line in text.splitlines() if line.startswith("|")]
        assert lines


def test_the_page_holds_one_script_and_it_is_ours(report: WrittenReport) -> None:
    page = (report.folder / "index.html").read_text(encoding="utf-8")
    assert page.count("<script") == 1
    assert "&lt;script&gt;document.title" in page
    assert "‮" not in page


@needs_chromium
def test_chromium_opens_the_page_and_runs_nothing_of_a_label(browser: Any, report: WrittenReport) -> None:
    visit(browser, report.folder / "index.html", width=390)
    assert browser.title != "owned"
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.scripts.length") == 1
    browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


@pytest.mark.fast
@pytest.mark.parametrize("name", GAMES)
def test_escapes_leave_nothing_special(name: str) -> None:
    tex = escape_tex(name)
    assert re.sub(r"\\(textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar)\{\}|\\[{}$&#%_]|\{\}"
                  r"|\$\\(ll|gg)\$", "", tex).isascii()  # fmt: skip
    assert not guard_row(tex).startswith(("[", "*", "("))
    assert not escape_csv(name).startswith(("=", "+", "-", "@"))
    assert clean_text(name).isprintable()
    assert not re.search(r"(?<!\\)([<>|`*\[\]]|\b_|_\b)", escape_markdown(name).replace("\\\\", ""))


@pytest.mark.fast
def test_half_a_surrogate_pair_is_written(tmp_path: Path) -> None:
    import dataclasses

    from tests.report.printed_results import printed_results

    from gapfloor.report.source import source_of_results

    full = printed_results()
    rows = tuple(dataclasses.replace(row, game="a\ud800b") for row in full.gaps if row.game == "heist")
    source = source_of_results(dataclasses.replace(full, gaps=rows, floor_comparisons=()))
    assert write_report(source, tmp_path).files
    assert build_numbers(Findings(source.findings.results))
