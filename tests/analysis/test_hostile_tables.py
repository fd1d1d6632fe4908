"""Small files that once became tables of any size, took time without end, or were read in two ways."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import gapfloor
from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.foreign_formats import run_labels
from gapfloor.analysis.known_floors import parse_cell
from gapfloor.analysis.table_files import read_table
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast
FAR_TOO_LONG = 20.0


@pytest.fixture(autouse=True)
def soon() -> Iterator[None]:
    """Each of these took minutes or gigabytes; refusing or reading takes milliseconds."""
    started = time.process_time()
    yield
    assert time.process_time() - started < FAR_TOO_LONG


@pytest.mark.parametrize(
    "cell", ["1" + " " * 5000 + "x", "1" * 5000 + "x", "1" + ",000" * 5000 + "x", "1±1" + " " * 5000 + "x"]
)
def test_a_long_cell_is_not_a_number_and_is_not_tried_in_all_ways(cell: str, tmp_path: Path) -> None:
    assert parse_cell(cell) is None
    (tmp_path / "t.csv").write_text(
        f'game,agent,mean,std,n\nheist,impala,"{cell}",0.3,8\nheist,random,3.1,0.2,8\n'
    )
    with pytest.raises(UsageError, match="is not a number") as refused:
        gapfloor.analyse(tmp_path / "t.csv")
    assert len(str(refused.value)) < 500


def test_a_long_name_of_a_run_is_a_name() -> None:
    name = "a__" * 50_000
    assert run_labels(name) == {"agent": name}
    assert run_labels("CartPole-v1__ppo__3__1674672938")["seed"] == "3"


def write_sparse(path: Path, n: int) -> None:
    """Rows that each have a column of their own."""
    rows = [{f"a{at}": at} for at in range(n)]
    texts = {
        ".json": json.dumps(rows),
        ".jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        ".csv": ",".join(f"a{at}" for at in range(n)) + "\n" + "1,\n" * n,
        ".md": "|".join(f"a{at}" for at in range(n)) + "\n" + "1|2\n" * n,
    }
    path.write_text(texts[path.suffix])


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".csv", ".md"])
@pytest.mark.parametrize("n", [5_000, 30_000])
def test_rows_with_columns_of_their_own_do_not_become_a_table_of_all_of_them(
    suffix: str, n: int, tmp_path: Path
) -> None:
    path = tmp_path / f"t{suffix}"
    write_sparse(path, n)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(UsageError, match="most of them empty"):
        read_table(path, TableOptions())


def test_names_that_are_written_with_escapes_count_too(tmp_path: Path) -> None:
    lines = (json.dumps({f"\u00e9{at}": at}) for at in range(5_000))
    (tmp_path / "t.jsonl").write_text("\n".join(lines))
    with pytest.raises(UsageError, match="most of them empty"):
        read_table(tmp_path / "t.jsonl", TableOptions())


def test_columns_of_pandas_that_share_no_row_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(json.dumps({f"a{at}": {f"r{at}": at} for at in range(5_000)}))
    with pytest.raises(UsageError, match="most of them empty"):
        read_table(tmp_path / "t.json", TableOptions())


def test_files_of_a_folder_with_columns_of_their_own_are_refused(tmp_path: Path) -> None:
    for at in range(150):
        (tmp_path / f"{at}.csv").write_text(f"a{at},b{at}\n" + "1,2\n" * 1_000)
    with pytest.raises(UsageError, match="most of them empty"):
        read_table(tmp_path, TableOptions())


def test_json_inside_a_text_has_no_columns(tmp_path: Path) -> None:
    rows = [{"game": "g", "prompt": json.dumps({f"a{at}": 1, f"b{at}": "x"})} for at in range(20_000)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read_table(tmp_path / "t.jsonl", TableOptions()).table.column_names == ["game", "prompt"]


LOG = {"eval": {"task": "coin", "model": "stub"}, "plan": {}}
SAMPLES = [{"id": at, "epoch": 1, "scores": {"match": {"value": "C"}}} for at in range(4)]


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("name", ["header.json", "summaries.json"])
def test_a_log_that_holds_a_document_twice_is_refused(name: str, tmp_path: Path) -> None:
    """One reader takes the first, another the last."""
    other = {**LOG, "eval": {"task": "coin", "model": "another"}} if name == "header.json" else SAMPLES[:1]
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", json.dumps(LOG))
        archive.writestr("summaries.json", json.dumps(SAMPLES))
        archive.writestr(name, json.dumps(other))
    with pytest.raises(UsageError, match=f"{name} is in it twice"):
        read_table(tmp_path / "log.eval", TableOptions())
