"""`evaluate` and `measure_floor` as campaigns."""

import small_policies
from gapfloor.api.evaluate import evaluate
from gapfloor.api.floor import floor as measure_floor
from gapfloor.records.store import Store
from gapfloor.tables.table import flat_headers

SMALL = {"design": "census", "train": "0:3", "test": "100:102", "workers": 1}


def test_an_evaluation_scans_the_store_once_and_plays_the_floor_it_does_not_find(tmp_path, monkeypatch):
    measure_floor("bigfish", store=tmp_path, **SMALL)
    scans = []
    scan = Store.cells
    monkeypatch.setattr(Store, "cells", lambda self: scans.append(self) or scan(self))
    result = evaluate(
        small_policies.linear(), game="bigfish", rules="sampled,greedy", references=["sticky:0.5"],
        store=tmp_path, **SMALL,
    )  # fmt: skip
    assert len(scans) == 1
    assert {row.rule for row in result.floor_comparisons} == {"sampled", "greedy"}
    assert {row.reference for row in result.reference_comparisons} == {"sticky:0.5"}


def test_a_policy_is_tried_once_in_one_small_engine(monkeypatch):
    from gapfloor.play import candidate

    opened = []
    open_engine = candidate.engine_from_spec
    monkeypatch.setattr(
        candidate, "engine_from_spec", lambda *a, **k: opened.append(k["slots"]) or open_engine(*a, **k)
    )
    evaluate(small_policies.linear(), game="bigfish", rules="greedy", **SMALL)
    assert opened == [16]


def test_an_evaluation_on_one_level_set_prints_its_returns_without_a_gap() -> None:
    settings = {**SMALL, "train": "none"}
    result = evaluate(small_policies.linear(), game="maze", rules="greedy", progress=False, **settings)
    (table,) = result.tables()
    (row,) = table.body
    shown = {title: cell.plain for title, cell in zip(flat_headers(table), row, strict=True)}
    assert (shown["levels"], shown["n"], shown["call"]) == ("test", "1", "not tested (1 run)")
    assert shown["return"]
    assert shown["floor"]
