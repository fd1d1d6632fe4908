"""Every column and field that a user meets has a meaning on the page of numbers, and no meaning is left over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from command_line import run
from field_docs import field_docs
from gapfloor.analysis.comparison import Comparison
from gapfloor.analysis.evaluation_results import Evaluation, FloorMeasurement, FloorRow, StricterReference
from gapfloor.analysis.sweep import Sweep, SweepTrend
from gapfloor.analysis.training_curves import TrainingCurves
from gapfloor.api.leaked_gaps import leak_table
from gapfloor.levels.overlap import Leakage
from gapfloor.representation.cka_measurement import CkaMeasurement
from gapfloor.statistics.level_means import LevelContrast
from gapfloor.statistics.ranks import RankCorrelation
from gapfloor.study.commands import StudyStatus
from number_pages import number_pages
from result_sections import SECTIONS

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]
#: Command -> the columns that the page of printed tables explains.
PRINTED = {
    title: re.findall(r"^\| (?!column|---)(.+?) \|", text, flags=re.M)
    for title, text in re.findall(
        r"^## `(.+?)`\n(.*?)(?=^## |\Z)",
        (ROOT / "docs" / "numbers-printed.md").read_text(encoding="utf-8"),
        flags=re.M | re.S,
    )
}
FIELDS = [(cls, doc) for section in SECTIONS for cls in section.classes for doc in field_docs(cls)]


@pytest.mark.parametrize(("cls", "doc"), FIELDS, ids=[f"{cls.__name__}.{doc.name}" for cls, doc in FIELDS])
def test_every_field_of_every_result_has_a_meaning(cls, doc):
    assert doc.words, f"say below {cls.__name__}.{doc.name} in the source what it means"


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
    assert floor == PRINTED["gapfloor floor"]
    assert Evaluation((), (), (), ()).table()[0] == PRINTED["gapfloor evaluate"]
    floor = FloorRow("g", "easy", "test", "0:9", "sticky:0.9", 1.0, 0.1, 8, (0,))
    row = StricterReference(floor, {"AGENT RULE": 0.5})
    assert (
        Evaluation((), (), (), (), references=(row,)).reference_table()[0]
        == PRINTED["gapfloor evaluate --reference NAME"]
    )
    assert TrainingCurves((), "").table()[0] == PRINTED["gapfloor training-curve"]
    compared = Comparison("AGENT A", "AGENT B", (), 0.05)
    assert {*compared.table()[0], *compared.settling_table()[0]} == set(PRINTED["gapfloor compare"])
    assert Leakage(()).table()[0] == PRINTED["gapfloor levels"]
    assert {heading.strip() for heading in leak_table(())[0]} == set(PRINTED["gapfloor levels --gap STORE"])


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
    assert sweep.table()[0] == PRINTED["gapfloor sweep"]


def test_headings_of_cka_and_study_status_are_explained():
    assert CkaMeasurement((), ()).table()[0] == PRINTED["gapfloor cka"]
    assert StudyStatus("small", {}, (), {}, ()).table()[0] == PRINTED["gapfloor study status"]


def test_the_generated_page_names_every_field():
    text = number_pages()["numbers-json.md"]
    assert all(f"| `{doc.name}` | " in text for _, doc in FIELDS)
