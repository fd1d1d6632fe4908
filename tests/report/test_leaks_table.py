"""The table of gaps without leaked levels: there when a store says which levels leaked, and only then."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from tests import paper_shaped
from tests.report.fixture_store import write_store

from gapfloor.levels.schedule import LevelSet
from gapfloor.report.source import ReportSource, load_report_source
from gapfloor.report.write import write_report
from gapfloor.tables.formats import to_csv, to_markdown, to_tabular
from small_stores import leaked_levels

pytestmark = pytest.mark.fast

LEAKED = range(1000, 1027)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Coinrun of the paper-shaped study, with invented leaks of twenty-seven levels."""
    root = tmp_path_factory.mktemp("leaks") / "store"
    data = paper_shaped.load()
    write_store(root, data.episodes, data.cells, games=["coinrun"])
    leaks = leaked_levels(
        LEAKED, train=LevelSet(0, 200), test=LevelSet(1000, 1100), first_screen=92, first_frame=27,
        distinct_train=171, distinct_test=93,
    )  # fmt: skip
    (root / "leakage").mkdir()
    (root / "leakage" / "coinrun-easy.json").write_text(leaks.to_json())
    return root


@pytest.fixture(scope="module")
def source(store: Path) -> ReportSource:
    return load_report_source(store)


def test_a_report_gives_the_gap_with_and_without(source: ReportSource, tmp_path: Path) -> None:
    written = write_report(source, tmp_path, formats=["md", "tex", "csv"])
    table = written.made.get("leaks")
    assert table is not None
    assert {row[3].plain for row in table.body} >= {"sampled", "greedy"}
    assert {(row[5].plain, row[7].plain) for row in table.body} == {
        ("", "100"),
        ("leaked", "73"),
        ("shared", "73"),
    }
    assert "(exploratory)" in to_markdown(table)
    assert "Floor's gap" in to_tabular(table)
    assert to_csv(table).startswith("env,budget,agent,rule,runs,left_out,train_levels,test_levels,")
    assert (tmp_path / "tables" / "leaks.tex").is_file()


def test_the_whole_gap_of_the_table_is_the_gap_of_the_analysis(source: ReportSource) -> None:
    gaps = {(row.agent, row.budget, row.rule): row.gap for row in source.findings.results.gaps}
    together = [row for row in source.leaked if row.agent is not None and not row.left_out]
    assert together
    for row in together:
        assert row.gap == pytest.approx(gaps[row.agent, row.budget, row.rule])


def test_without_a_leakage_file_there_is_no_table(source: ReportSource, tmp_path: Path) -> None:
    written = write_report(dataclasses.replace(source, leaked=()), tmp_path, formats=["md"])
    assert written.made.get("leaks") is None
    assert all(entry.name != "leaks" for entry in written.made.missing)
