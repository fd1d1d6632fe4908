"""Results filed in a store: they come back as they were, and only for the data and the plan that they belong to."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import small_stores
from gapfloor.analysis.apply import analyse
from gapfloor.analysis.episodes import tidy
from gapfloor.analysis.results import AnalysisResults, keep_results, read_stored_results, results_digest
from gapfloor.json_values import to_exact
from gapfloor.plan.model import Plan

pytestmark = pytest.mark.fast


@pytest.fixture(scope="module")
def inputs():
    import pyarrow as pa

    table = pa.Table.from_pylist(small_stores.small_rows(small_stores.by_agent))
    return tidy(table, cells=None, source="rows", unit="row", first=1)


@pytest.fixture(scope="module")
def results(inputs) -> AnalysisResults:
    return analyse(inputs)


def test_rows_come_back_as_they_were(results: AnalysisResults, tmp_path: Path) -> None:
    keep_results(results, tmp_path, digest="d")
    back = read_stored_results(tmp_path, digest="d")
    assert back is not None
    # NaN differs from itself, so the texts are compared.
    assert repr(back) == repr(results)


def test_infinity_is_not_mistaken_for_a_missing_number(results: AnalysisResults, tmp_path: Path) -> None:
    row = dataclasses.replace(results.floors[0], mean=float("inf"), sem=float("nan"))
    keep_results(dataclasses.replace(results, floors=(row,)), tmp_path, digest="d")
    back = read_stored_results(tmp_path, digest="d")
    assert back is not None
    assert back.floors[0].mean == float("inf")
    assert np.isnan(back.floors[0].sem)


def test_results_of_other_inputs_are_not_read(results: AnalysisResults, tmp_path: Path) -> None:
    keep_results(results, tmp_path, digest="d")
    assert read_stored_results(tmp_path, digest="other") is None
    assert read_stored_results(tmp_path / "nowhere", digest="d") is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema": "gapfloor-rows/1", "inputs": "d", "results": {}}', "[" * 99999]
)
def test_a_damaged_file_counts_as_missing(text: str, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "rows.json").write_text(text)
    assert read_stored_results(tmp_path, digest="d") is None


def test_a_call_that_does_not_exist_is_refused(results: AnalysisResults, tmp_path: Path) -> None:
    keep_results(results, tmp_path, digest="d")
    path = tmp_path / "results" / "rows.json"
    document = json.loads(path.read_text())
    document["results"]["floor_comparisons"][0]["decision"]["call"] = r"\input{secret}"
    path.write_text(json.dumps(document))
    assert read_stored_results(tmp_path, digest="d") is None


def test_the_digest_follows_every_input_and_the_plan(inputs) -> None:
    first = results_digest(inputs)
    assert results_digest(inputs) == first
    returns = inputs.returns.copy()
    returns[3] += 1e-12
    plan = Plan.paper()
    others = [
        dataclasses.replace(inputs, returns=returns),
        dataclasses.replace(inputs, damaged=("x",)),
        dataclasses.replace(inputs, replay_failures=("x",)),
        dataclasses.replace(inputs, census=frozenset({("a", "b", "c")})),
        dataclasses.replace(inputs, agent_order=("x",)),
    ]
    digests = {first, results_digest(inputs, plan), *(results_digest(other) for other in others)}
    assert len(digests) == 2 + len(others)


def test_what_has_no_finite_value_is_a_word() -> None:
    assert to_exact([float("nan"), float("-inf"), 0.5]) == ["nan", "-inf", 0.5]
