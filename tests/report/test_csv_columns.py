"""Every column of the report's CSV files is explained."""

from pathlib import Path

import pytest
from tests.report.printed_cka import write_cka
from tests.report.printed_results import printed_results

from gapfloor.report.cka_input import read_cka
from gapfloor.report.findings import Findings
from gapfloor.report.tables.build import build_tables
from gapfloor.report.tables.csv_columns import column_meaning

pytestmark = pytest.mark.fast


def test_every_column_of_the_papers_tables_has_a_meaning(tmp_path: Path):
    write_cka(tmp_path)
    tables = build_tables(
        Findings(printed_results()), cka=read_cka(tmp_path), hyperparameters={"8M": {"gamma": 0.999}}
    ).tables
    names = {name for table in tables for column in table.columns for name in column.csv}
    assert len(names) > 60
    assert {name for name in names if column_meaning(name) is None} == set()
