"""Every column of the report's CSV files is explained, and no explanation is left over."""

import ast
import re
from pathlib import Path

import pytest
from tests.report.printed_cka import write_cka
from tests.report.printed_results import printed_results

from gapfloor.report.cka_input import read_cka
from gapfloor.report.findings import Findings
from gapfloor.report.tables.build import build_tables
from gapfloor.report.tables.csv_columns import CSV_COLUMNS, column_meaning

pytestmark = pytest.mark.fast

TABLES = Path(__file__).parents[2] / "src" / "gapfloor" / "report" / "tables"


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
    for path in TABLES.glob("*.py"):
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
        path.read_text(encoding="utf-8") for path in TABLES.glob("*.py") if path.name != "csv_columns.py"
    )
    plain = {name for name in CSV_COLUMNS if "RULE" not in name and "CUT" not in name}
    computed = {"A", "B", "C", "D", "floor_train", "floor_test"}
    assert {name for name in plain - computed if not re.search(rf'[" ]{name}[" ]', code)} == set()
