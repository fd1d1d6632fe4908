"""Tables as other people's tools write them."""

import errno
import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.episodes import read_inputs
from gapfloor.analysis.foreign_formats import read_folder
from gapfloor.analysis.table_files import read_table
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast

THEIRS = {"game": "env", "agent": "algo", "level_set": "split", "episode_return": "reward"}


@pytest.fixture
def plain(rows):
    """Rows as text, without what most tools do not write."""
    kept = ("game", "agent", "seed", "rule", "level_set", "episode_return")
    return [{name: row[name] for name in kept} for row in rows]


def as_lines(rows, delimiter=","):
    lines = [delimiter.join(rows[0])]
    lines += [delimiter.join("" if value is None else str(value) for value in row.values()) for row in rows]
    return "\n".join(lines) + "\n"


def calls(results):
    return [
        (row.game, row.rule, row.decision.call, round(row.delta.value, 9))
        for row in results.floor_comparisons
    ]


def renamed(rows):
    return [{THEIRS.get(name, name): value for name, value in row.items()} for row in rows]


def test_common_names_of_columns_are_understood_and_said(plain, tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(as_lines(renamed(plain)))
    inputs = read_inputs(path)
    assert calls(analyse(inputs)) == calls(analyse(pa.Table.from_pylist(plain)))
    assert "the column 'env' is read as game" in inputs.assumed
    assert any("no column 'budget'" in note for note in inputs.assumed)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_encoding_and_delimiter_are_found(plain, tmp_path, encoding, delimiter):
    named = [{**row, "agent": row["agent"] and f"{row['agent']}é"} for row in plain]
    path = tmp_path / "results.csv"
    path.write_bytes(as_lines(named, delimiter).encode(encoding))
    inputs = read_inputs(path)
    assert any(name.endswith("é") for name in inputs.labels["agent"][1])
    assert calls(analyse(inputs)) == calls(analyse(pa.Table.from_pylist(named)))


def test_a_decimal_comma_is_read_only_where_the_user_says_so(plain, tmp_path):
    path = tmp_path / "results.csv"
    path.write_text(as_lines(plain, ";").replace(".", ","))
    with pytest.raises(UsageError, match="Write a decimal point, or in Python"):
        read_inputs(path)
    spoken = read_inputs(path, options=TableOptions(decimal=","))
    assert calls(analyse(spoken)) == calls(analyse(pa.Table.from_pylist(plain)))


def test_what_the_file_does_not_say_is_given_as_a_label(plain, tmp_path):
    sampled = [
        {name: value for name, value in row.items() if name != "rule"} | {"agent": row["agent"] or "random"}
        for row in plain
        if row["rule"] in ("sampled", "uniform")
    ]
    path = tmp_path / "results.csv"
    path.write_text(as_lines(sampled))
    with pytest.raises(UsageError, match=r"has no column for rule.*--label rule=VALUE"):
        read_inputs(path)
    options = TableOptions(floor="random", labels=("budget=8M",)).with_rule("sampled")
    results = analyse(read_inputs(path, options=options))
    expected = analyse(pa.Table.from_pylist([row for row in plain if row["rule"] in ("sampled", "uniform")]))
    assert calls(results) == calls(expected)
    assert {row.budget for row in results.floor_comparisons} == {"8M"}


def test_two_columns_that_could_be_the_same_thing_are_not_guessed(plain, as_table):
    both = [{**row, "score": 1.0, "reward": 2.0} for row in plain]
    for row in both:
        del row["episode_return"]
    with pytest.raises(UsageError, match=r"could be 'episode_return' \(reward, score\)"):
        read_inputs(as_table(both))
    chosen = read_inputs(as_table(both), options=TableOptions(columns={"episode_return": "score"}))
    assert set(chosen.returns) == {1.0}


def test_level_sets_are_read_in_any_case(plain, as_table):
    mixed = [
        {**row, "level_set": row["level_set"].upper() if i % 2 else row["level_set"]}
        for i, row in enumerate(plain)
    ]
    assert read_inputs(as_table(mixed)).labels["level_set"][1] == ("test", "train")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("rule", "stochastic", "rename it to sampled"),
        ("rule", "deterministic", "rename it to greedy"),
        ("rule", "random", "--floor random"),
        ("level_set", "validation", "neither train nor test"),
        ("level_set", "held-out", "did you mean test"),
        ("seed", "one", "'one' is not a whole number"),
    ],
)
def test_near_misses_are_refused_with_the_nearest_name(plain, as_table, column, value, message):
    plain[0][column] = value
    with pytest.raises(UsageError, match=message):
        read_inputs(as_table([{**row, "seed": row["seed"] and str(row["seed"])} for row in plain]))


def test_json_lines_are_read_as_they_are(plain, tmp_path):
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in plain))
    assert calls(analyse(read_inputs(path))) == calls(analyse(pa.Table.from_pylist(plain)))


def test_an_sb3_evaluations_file_is_its_last_evaluation(tmp_path):
    path = tmp_path / "evaluations.npz"
    np.savez(path, timesteps=[10, 20], results=[[1.0, 2.0], [3.0, 5.0]], ep_lengths=[[1, 1], [1, 1]])
    labels = ("game=heist", "agent=ppo", "seed=1", "rule=greedy", "level_set=test")
    inputs = read_inputs(path, options=TableOptions(labels=labels))
    assert sorted(inputs.returns) == [3.0, 5.0]


def test_an_sb3_monitor_file_is_read_below_its_comment(tmp_path):
    path = tmp_path / "0.monitor.csv"
    path.write_text('#{"t_start": 1.0, "env_id": "heist"}\nr,l,t\n3.0,10,0.5\n5.0,12,0.9\n')
    labels = ("game=heist", "agent=ppo", "seed=1", "rule=sampled", "level_set=train")
    inputs = read_inputs(path, options=TableOptions(labels=labels))
    assert sorted(inputs.returns) == [3.0, 5.0]
    path.write_text(path.read_text().replace("3.0,10", "three,10"))
    with pytest.raises(UsageError, match="in line 3 "):
        read_inputs(path, options=TableOptions(labels=labels))


def test_rliable_matrices_are_runs_by_games(tmp_path):
    path = tmp_path / "scores.npz"
    np.savez(path, ppo=np.array([[1.0, 2.0], [3.0, 4.0]]), daac=np.array([[5.0, 6.0]]))
    inputs = read_inputs(path, options=TableOptions(labels=("rule=sampled", "level_set=test")))
    assert inputs.n_rows == 6
    assert inputs.labels["game"][1] == ("game 1", "game 2")


def test_an_archive_of_objects_is_refused_and_not_unpickled(tmp_path):
    path = tmp_path / "scores.npz"
    np.savez(path, ppo=np.array([{"a": 1}], dtype=object))
    with pytest.raises(UsageError, match="cannot be read as a numpy archive"):
        read_inputs(path)


def test_a_fifo_is_refused_without_waiting(tmp_path):
    import os

    path = tmp_path / "results.csv"
    os.mkfifo(path)
    with pytest.raises(UsageError, match="is not a regular file"):
        read_inputs(path)


def test_a_written_table_is_read_back(plain, tmp_path):
    path = tmp_path / "results.csv"
    pa_csv.write_csv(pa.Table.from_pylist(plain), path)
    assert read_inputs(path).n_rows == len(plain)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("agent", pa.array([[1, 2]])),
        ("agent", pa.array([b"\xff\xfe"], type=pa.binary())),
        ("game", pa.array([{"a": 1}])),
        ("draw", pa.array([float("inf")])),
        ("seed", pa.array([1e308])),
        ("draw", pa.array([1.5]).cast(pa.float16())),
        ("episode_return", pa.array(["high"])),
    ],
    ids=["list", "binary", "struct", "inf", "huge", "half", "text"],
)
def test_a_column_of_another_type_is_refused_in_a_sentence(rows, as_table, tmp_path, column, values):
    table = as_table(rows[:1])
    path = tmp_path / "episodes.parquet"
    pq.write_table(table.set_column(table.column_names.index(column), column, values), path)
    with pytest.raises(UsageError, match=r"episodes\.parquet"):
        read_inputs(path)


def test_a_folder_that_cannot_be_listed_is_one_sentence(tmp_path, monkeypatch):
    """As below /proc, where listing the folders of a process that ends is an error."""
    (tmp_path / "inner").mkdir()
    listed = os.scandir

    def scandir(path):
        if str(path).endswith("inner"):
            raise OSError(errno.EINVAL, "Invalid argument", str(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(UsageError, match="cannot be listed"):
        read_folder(tmp_path, TableOptions(), read_table)
