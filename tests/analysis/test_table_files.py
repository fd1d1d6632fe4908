"""Tables in pieces: the same episodes as the whole table, whatever the types and the size of the pieces."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from gapfloor.analysis import table_files
from gapfloor.analysis.episodes import read_inputs

pytestmark = pytest.mark.fast
N = 4000


def episodes() -> pa.Table:
    rng = np.random.default_rng(0)
    seed = pa.array([None if i % 4 == 0 else i % 3 for i in range(N)])
    return pa.table(
        {
            "game": ["heist", "maze"] * (N // 2),
            "agent": [f"agent{i % 5}" for i in range(N)],
            "seed": seed,
            "rule": ["uniform" if i % 4 == 0 else "sampled" for i in range(N)],
            "level_set": ["train"] * (N // 2) + ["test"] * (N // 2),
            "level_seed": rng.integers(0, 200, N),
            "episode_return": rng.random(N),
            "wall time": rng.random(N),
        }
    )


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet"])
def test_pieces_of_any_size_give_the_episodes_of_the_table(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_files, "_BLOCK", 1000)
    monkeypatch.setattr(table_files, "_ROWS", 100)
    table, path = episodes(), tmp_path / f"episodes.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.output_stream(path, compression="detect") as out:
            pa_csv.write_csv(table, out)
    found = read_inputs(path)
    expected = read_inputs(table)
    for name, (codes, names) in expected.labels.items():
        assert found.labels[name][1] == names
        np.testing.assert_array_equal(found.labels[name][0], codes)
    np.testing.assert_array_equal(found.returns, expected.returns)
    np.testing.assert_array_equal(found.level_seed, expected.level_seed)
    assert found.extra_columns == ("wall time",)


def test_whole_numbers_written_as_3_0_are_read_as_3(tmp_path: Path) -> None:
    path = tmp_path / "episodes.csv"
    table = episodes().set_column(5, "level_seed", pa.array([f"{i % 7}.0" for i in range(N)]))
    pa_csv.write_csv(table, path, pa_csv.WriteOptions(quoting_style="none"))
    assert read_inputs(path).level_seed.tolist() == [i % 7 for i in range(N)]
