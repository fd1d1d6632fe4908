"""Every column and field that a user meets has a meaning on the page of numbers, and no meaning is left over."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from field_docs import field_docs
from gapfloor.analysis.checkpoints import Played, TrainingCurves, analyse_sweep
from gapfloor.analysis.columns import comparison_table, floor_table, gap_table, score_table
from gapfloor.levels.overlap import Leakage
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity
from gapfloor.representation.cka_measurement import CkaMeasurement
from gapfloor.study.model import Study
from gapfloor.tables.table import flat_headers
from number_pages import generated_columns, number_pages
from result_sections import SECTIONS

pytestmark = pytest.mark.fast

ROOT = Path(__file__).parents[2]
#: Command -> the columns that the page of printed tables explains.
PRINTED = {
    title: re.findall(r"^\| (?!column|---)(.+?) \|", text, flags=re.M)
    for title, text in re.findall(
        r"^### `(.+?)`\n(.*?)(?=^##|\Z)",
        (ROOT / "docs" / "columns.md").read_text(encoding="utf-8"),
        flags=re.M | re.S,
    )
}
#: Columns that say what was played; the page explains them once for all tables.
LABELS = {"game", "mode", "budget", "agent", "rule"}
FIELDS = [(cls, doc) for section in SECTIONS for cls in section.classes for doc in field_docs(cls)]


@pytest.mark.parametrize(("cls", "doc"), FIELDS, ids=[f"{cls.__name__}.{doc.name}" for cls, doc in FIELDS])
def test_every_field_of_every_result_has_a_meaning(cls, doc):
    assert doc.words, f"say below {cls.__name__}.{doc.name} in the source what it means"


def test_the_page_of_columns_has_every_column_of_the_shared_tables():
    text = generated_columns()
    tables = (comparison_table(()), gap_table(()), score_table(()), floor_table(()))
    for column in {column.key: column for table in tables for column in table.columns}.values():
        assert f"| {', '.join(f'`{name}`' for name in column.csv)} |" in text
        assert column.meaning in text


def without_labels(headings):
    return [heading for heading in headings if heading not in LABELS]


def test_headings_of_contrasts_are_explained():
    assert without_labels(flat_headers(TrainingCurves((), "").table())) == PRINTED["gapfloor training-curve"]
    assert without_labels(flat_headers(Leakage(()).table())) == PRINTED["gapfloor levels"]


def test_headings_of_sweep_are_explained():
    sample = EpisodeSample(np.arange(4.0), np.arange(4), 1.0, 1.0, 0.2)
    both = {"train": sample, "test": sample}
    grid = [Played(RunIdentity(), rule, at, both) for at, rule in ((0.0, "greedy"), (1.0, "sampled"))]
    sweep = analyse_sweep(grid, both, design="", draws=(0,))
    assert without_labels(flat_headers(sweep.table())) == PRINTED["gapfloor sweep"]


def test_headings_of_cka_and_study_status_are_explained():
    assert flat_headers(CkaMeasurement((), ()).table()) == PRINTED["gapfloor cka"]
    study = Study.read("studies/demo.toml")
    assert flat_headers(study.status(store="no-such-store").table()) == PRINTED["gapfloor study status"]


def test_the_generated_page_names_every_field():
    text = number_pages()["json.md"]
    assert all(f"| `{doc.name}` | " in text for _, doc in FIELDS)
