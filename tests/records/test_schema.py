"""Training logs that come with somebody else's store."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gapfloor.records.stored_cell import read_run_log

WANTED = {"steps": pa.int64(), "entropy_nats": pa.float64()}


def test_columns_have_the_types_that_were_asked_for(tmp_path):
    pq.write_table(
        pa.table({"entropy_nats": [1, 2], "more": ["a", "b"], "steps": [64, 128]}), tmp_path / "log.parquet"
    )
    table = read_run_log(tmp_path / "log.parquet", WANTED)
    assert table.to_pydict() == {"steps": [64, 128], "entropy_nats": [1.0, 2.0]}
    assert table.schema.types == list(WANTED.values())


@pytest.mark.parametrize("steps", [["a", "b"], [[1], [2]], [{"x": 1}, {"x": 2}], [b"1a", b"2"]])
def test_a_column_of_another_type_is_an_error_of_reading(steps, tmp_path):
    pq.write_table(pa.table({"steps": steps, "entropy_nats": [1.0, 2.0]}), tmp_path / "log.parquet")
    with pytest.raises(pa.ArrowException):
        read_run_log(tmp_path / "log.parquet", WANTED)
