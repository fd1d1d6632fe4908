"""Every column and field that a user meets has a meaning on the page of numbers, and no meaning is left over."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.report.printed_cka import write_cka
from tests.report.printed_results import printed_results

from command_line import run
from field_docs import field_docs
from gapfloor.analysis.comparison import Comparison
from gapfloor.analysis.evaluation_results import Evaluation, FloorMeasurement, FloorRow, StricterReference
from gapfloor.analysis.sweep import Sweep, SweepTrend
from gapfloor.analysis.training_curves import TrainingCurves
from gapfloor.cli.tables import leak_table
from gapfloor.levels.overlap import Leakage
from gapfloor.records.schema import CELLS, EPISODES
from gapfloor.report.cka_input import read_cka
from gapfloor.report.findings import Findings
from gapfloor.report.tables.build import build_tables
from gapfloor.statistics.level_means import LevelContrast
from gapfloor.statistics.ranks import RankCorrelation
from meanings import COLUMNS, PRINTED, RECORDS
from number_pages import MARKER, column_meaning, generated_part
from result_sections import SECTIONS

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]
FIELDS = [(cls, doc) for section in SECTIONS for cls in section.classes for doc in field_docs(cls)]


@pytest.mark.parametrize(("cls", "doc"), FIELDS, ids=[f"{cls.__name__}.{doc.name}" for cls, doc in FIELDS])
def test_every_field_of_every_result_has_a_meaning(cls, doc):
    assert doc.words, f"say below {cls.__name__}.{doc.name} in the source what it means"


def test_every_column_of_a_store_has_a_meaning_and_no_other():
    assert set(RECORDS) == {*EPISODES.names, *CELLS.names}


def test_every_column_of_the_papers_tables_has_a_meaning(tmp_path: Path):
    write_cka(tmp_path)
    tables = build_tables(
        Findings(printed_results()), cka=read_cka(tmp_path), hyperparameters={"8M": {"gamma": 0.999}}
    ).tables
    names = {name for table in tables for column in table.columns for name in column.csv}
    assert len(names) > 60
    assert {name for name in names if column_meaning(name) is None} == set()


def columns_in_source() -> set[str]:
    """CSV names that stand as plain texts in the code of the report's tables: also those of tables not made here."""
    found = set()
    for path in (ROOT / "src" / "gapfloor" / "report" / "tables").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and getattr(node.func, "id", "") == "Column"
                and len(node.args) == 3
            ):
                inside = node.args[2].elts if isinstance(node.args[2], ast.Tuple) else []
                found |= {part.value for part in inside if isinstance(part, ast.Constant)}
    return found


def test_every_column_named_in_the_reports_code_has_a_meaning():
    assert len(columns_in_source()) > 60
    assert {name for name in columns_in_source() if column_meaning(name) is None} == set()


def test_no_column_is_explained_that_no_table_has():
    code = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "src" / "gapfloor" / "report" / "tables").glob("*.py")
    )
    plain = {name for name in COLUMNS if "RULE" not in name and "CUT" not in name}
    computed = {"A", "B", "C", "D", "floor_train", "floor_test"}
    assert {name for name in plain - computed if not re.search(rf'[" ]{name}[" ]', code)} == set()


def heads(printed: str) -> list[list[str]]:
    """The head lines of printed tables: columns are two spaces apart."""
    return [re.split(r"\s{2,}", line.strip()) for line in printed.splitlines() if line.startswith("game")]


@pytest.fixture
def episodes(tmp_path: Path) -> Path:
    lines = ["game,budget,agent,seed,rule,level_set,draw,episode_return"]
    for levels in ("train", "test"):
        lines += [f"heist,,,,uniform,{levels},0,{value}" for value in (0, 10, 0, 10, 0, 0)]
        lines += [
            f"heist,8M,mine,{seed},greedy,{levels},0,{value}" for seed in (1, 2, 3) for value in (10, 0, seed)
        ]
    path = tmp_path / "episodes.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_headings_of_analyse_are_explained(episodes: Path, capsys: pytest.CaptureFixture[str]):
    found = heads(run(capsys, "analyse", episodes).out)
    assert len(found) == 2
    assert {heading for head in found for heading in head} == set(PRINTED["gapfloor analyse"])


def test_headings_of_floor_evaluate_and_contrasts_are_explained():
    floor = [*FloorMeasurement(()).table()[0], "shipped", "paper"]
    assert floor == list(PRINTED["gapfloor floor"])
    assert Evaluation((), (), (), ()).table()[0] == list(PRINTED["gapfloor evaluate"])
    floor = FloorRow("g", "easy", "test", "0:9", "sticky:0.9", 1.0, 0.1, 8, (0,))
    row = StricterReference(floor, {"AGENT RULE": 0.5})
    assert Evaluation((), (), (), (), references=(row,)).reference_table()[0] == list(
        PRINTED["gapfloor evaluate --reference"]
    )
    assert TrainingCurves((), "").table()[0] == list(PRINTED["gapfloor training-curve"])
    compared = Comparison("AGENT A", "AGENT B", (), 0.05)
    assert {*compared.table()[0], *compared.settling_table()[0]} == set(PRINTED["gapfloor compare"])
    assert Leakage(()).table()[0] == list(PRINTED["gapfloor levels check"])
    assert {heading.strip() for heading in leak_table(())[0]} == set(PRINTED["gapfloor levels gap"])


def test_headings_of_sweep_are_explained():
    contrast = LevelContrast(
        value=1.0,
        se=0.1,
        df=9.0,
        p=0.5,
        interval=(0.8, 1.2),
        n_levels=10,
        n_episodes=10,
        estimand="the generator",
    )
    ranks = RankCorrelation(
        tau=0.0, p=1.0, smallest=0.1, n=3, is_exact=True, rises_always=False, n_rises=1
    )  # fmt: skip
    trends = [SweepTrend(name, ranks, "sampled", "greedy", contrast) for name in ("train", "test")]
    floors = {"train": contrast, "test": contrast}
    sweep = Sweep("heist", "easy", None, "", (0,), (), floors, {1.0: contrast}, tuple(trends))
    assert sweep.table()[0] == list(PRINTED["gapfloor sweep"])


@pytest.mark.parametrize(
    ("command", "file"),
    [("gapfloor cka", "cka"), ("gapfloor study status", "study")],
)
def test_headings_written_in_a_commands_file_are_explained(command: str, file: str):
    tree = ast.parse((ROOT / "src" / "gapfloor" / "cli" / f"{file}.py").read_text(encoding="utf-8"))
    lists = [
        [part.value.strip() for part in node.elts if isinstance(part, ast.Constant)]
        for node in ast.walk(tree)
        if isinstance(node, ast.List | ast.Tuple) and all(
            isinstance(part, ast.Constant | ast.Starred) and isinstance(getattr(part, "value", ""), str | ast.Name)
            for part in node.elts
        )
    ]  # fmt: skip
    wanted = set(PRINTED[command])
    assert any(wanted == set(words) or wanted - {"task"} == set(words) for words in lists)


def test_the_page_has_a_place_for_what_is_generated():
    page = (ROOT / "docs" / "numbers.md").read_text(encoding="utf-8")
    assert page.count(MARKER) == 1


def test_the_generated_page_names_every_field():
    text = generated_part()
    assert all(f"| `{doc.name}` | " in text for _, doc in FIELDS)
