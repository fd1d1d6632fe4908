"""The methods paragraph: every sentence follows from the data, and changes when the fact changes."""

from __future__ import annotations

import re
import shutil
import subprocess

import pyarrow.csv
import pyarrow.parquet
import pytest

from gapfloor.plan.lock import lock_plan
from gapfloor.report.card import build_card
from gapfloor.report.methods import WORKS, Methods, build_methods
from gapfloor.report.source import load_report_source
from gapfloor.report.write import write_report
from known_truth import game_rows, repeated, table

pytestmark = pytest.mark.fast

METHOD = 'method = "recommended"\n'
RECOMMENDED = f'name = "x"\n[scope]\nrules = ["sampled"]\n[floor]\n{METHOD}[gaps]\n{METHOD}'


class Said(Methods):
    def of(self, topic):
        return " ".join(clause.sentence for clause in self.clauses if clause.topic == topic)


@pytest.fixture
def methods(tmp_path):
    def build(rows, plan=None, *, cells_seen=0, seen_in="declared", locked=True):
        path = tmp_path / "episodes.parquet"
        pyarrow.parquet.write_table(table(rows), path)
        file = None
        if plan is not None:
            file = tmp_path / "plan.toml"
            file.write_text(plan)
            if locked:
                lock_plan(file, cells_seen=cells_seen, seen_in=seen_in)
        return Said(build_methods(load_report_source(path, plan=file)).clauses)

    return build


def without_floor(rows):
    return [row for row in rows if row["rule"] != "uniform"]


OTHER_FLOOR = {"train": range(5000, 5060), "test": range(6000, 6060)}
FEWER = {"train": range(40), "test": range(900, 950)}
SHARED = {"train": range(0, 60), "test": range(30, 90)}
SKEWED = (-1.5, -1.5, -1.5, -1.4, -1.4, 0.9)

#: topic -> (rows of the one fact, its words, rows of the other fact, its words)
FLIPS = {
    "number of runs": ("design", {}, "6 runs per game", {"n_runs": 4}, "4 runs per game"),
    "agents": ("design", {}, "6 runs of a on", {"agents": ("a", "b"), "n_runs": 3}, "6 runs of a and b on"),
    "game": ("design", {}, "(coinrun)", {"game": "maze"}, "(maze)"),
    "budget": ("design", {}, "at 8M", {"budget": "25M"}, "at 25M"),
    "episodes": ("design", {}, "1,680 episodes", {"repeats": 1}, "840 episodes"),
    "levels": ("levels", {}, "no level was played as both", {"levels": SHARED}, "some levels were played as both"),
    "level seeds": ("levels", {}, "levels 0:60", {"has_levels": False}, "do not record their levels"),
    "same levels": ("floor", {}, "(verified by level seed)", {"floor_levels": OTHER_FLOOR}, "not on the same levels"),
    "unknown levels": ("floor", {}, "(verified by level seed)", {"has_levels": False}, "is not recorded"),
    "floor episodes": ("floor", {}, "over 120 episodes", {"repeats": 3}, "over 180 episodes"),
    "too few runs": ("not tested", {}, "", {"n_runs": 2}, "2 comparisons with fewer than 3 different runs"),
    "margin": ("calls", {}, "margin 0.25", {"floor_train": 8.0, "floor_test": 8.0}, "margins 0.7"),
    "skew": ("not tested", {}, "", {"train": 0.2, "test": 0.2, "run_values": SKEWED, "run_sd": 0}, "right-skewed"),
    "common levels": ("gaps", {}, "60 training and 60 held-out", {"levels": FEWER},
                      "40 training and 50 held-out"),
    "untested gap": ("gaps", {}, "new runs on new levels", {"has_levels": False}, "not be tested (no level seeds)"),
}  # fmt: skip


@pytest.mark.parametrize("name", FLIPS)
def test_a_sentence_changes_with_its_fact(name, methods):
    topic, first, words, second, other = FLIPS[name]
    before, after = methods(game_rows(**first)).of(topic), methods(game_rows(**second)).of(topic)
    assert words in before
    assert other in after
    assert other not in before
    assert not words or words not in after


def test_a_missing_floor_is_said(methods):
    rows = game_rows()
    partly = [row for row in rows if row["rule"] != "uniform" or row["level_set"] == "train"]
    assert "There is no floor for" not in methods(rows).of("floor")
    assert "no floor for coinrun, 8M, test" in methods(partly).of("floor")
    assert "There is no floor, so no return" in methods(without_floor(rows)).of("floor")


def test_copies_are_said(methods):
    rows = game_rows()
    assert methods(rows).of("copies") == ""
    assert methods(repeated(rows, seed=0, under=9)).of("copies").startswith("1 run that repeats")


def test_a_second_rule_is_named_and_a_files_label_is_called_one(methods):
    rows = game_rows()
    greedy = [{**row, "rule": "greedy"} for row in without_floor(rows)]
    assert "for comparison greedy" in methods(rows + greedy).of("rule")
    assert "for comparison" not in methods(rows).of("rule")
    assert "labels of the episode file" in methods(rows).of("rule")


def test_missing_and_unusual_cells_are_said(methods):
    rows = game_rows()
    assert methods(rows).of("problems") == ""
    fewer = [row for row in rows if (row["seed"], row["level_set"]) != (2, "test")]
    assert "1 missing" in methods(fewer).of("problems")


def test_the_tests_are_those_of_the_plans_method(methods):
    recommended = methods(game_rows(), RECOMMENDED, locked=False)
    papers = methods(game_rows(), 'name = "x"\n[scope]\nrules = ["sampled"]\n', locked=False)
    assert "Behrens-Fisher" in recommended.of("calls")
    assert "Welch" in papers.of("calls")
    assert "runs and levels crossed" in recommended.of("gaps")
    assert "Fisher's method" in papers.of("gaps")
    assert set(re.findall(r"@\w+\{(\w+),", papers.bibtex())) >= {"welch1947", "fisher1932", "efron1993"}
    assert "banerjee1960" not in papers.bibtex()


def test_alpha_is_the_plans(methods):
    strict = RECOMMENDED.replace("[floor]\n", "[floor]\nalpha = 0.01\n")
    assert "level of 0.05;" in methods(game_rows(), RECOMMENDED, locked=False).of("calls")
    assert "level of 0.01;" in methods(game_rows(), strict, locked=False).of("calls")


def test_the_plans_status_is_that_of_its_lock(methods, tmp_path):
    rows = game_rows()
    assert "every result is exploratory" in methods(rows).of("plan")
    assert "every result is exploratory" in methods(rows, RECOMMENDED, locked=False).of("plan")
    declared = methods(rows, RECOMMENDED).of("plan")
    assert (
        "when none of its cells had been played, as its authors declare; its results are pre-registered"
        in declared
    )
    (tmp_path / "plan.lock").unlink()
    seen = methods(rows, RECOMMENDED, cells_seen=7, seen_in="counted in small").of("plan")
    assert (
        "after 7 cells of the data had been played (counted in small); its results are pre-specified" in seen
    )


def test_what_the_plan_does_not_name_is_said_to_be_exploratory(methods):
    rows = game_rows()
    merged = [{**row, "rule": "merged"} for row in without_floor(rows)]
    assert "3 of 6 tests are outside the plan" in methods(rows + merged, RECOMMENDED).of("plan")


def test_the_card_names_the_tests_that_were_used(tmp_path):
    path = tmp_path / "episodes.csv"
    pyarrow.csv.write_csv(table(game_rows()), path)
    assert "Behrens-Fisher" in build_card(load_report_source(path))["tests"]["floor"]
    plan = tmp_path / "plan.toml"
    plan.write_text('name = "x"\n[scope]\nrules = ["sampled"]\n')
    assert "Welch" in build_card(load_report_source(path, plan=plan))["tests"]["floor"]


def test_every_citation_has_an_entry_and_every_entry_is_cited(methods):
    found = methods(game_rows())
    cited = {key for group in re.findall(r"\\cite\{([^}]*)\}", found.tex()) for key in group.split(",")}
    assert cited == set(re.findall(r"@\w+\{(\w+),", found.bibtex()))
    assert cited <= set(WORKS)


def test_names_from_the_data_cannot_become_markup(methods):
    found = methods(game_rows(game="co_in\\input{x}*"))
    assert "\\input{x}" not in found.tex()
    assert "\\*" in found.markdown()


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_pdflatex_prints_the_paragraph_with_its_references(tmp_path):
    path = tmp_path / "episodes.csv"
    pyarrow.csv.write_csv(table(game_rows(game="co_in")), path)
    write_report(load_report_source(path), tmp_path, formats=("methods",))
    (tmp_path / "main.tex").write_text(
        "\\documentclass{article}\\begin{document}\\input{methods}\\bibliographystyle{plain}\\bibliography{methods}"
        "\\end{document}"
    )
    for command in (("pdflatex", "-interaction=nonstopmode", "main"), ("bibtex", "main")):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
