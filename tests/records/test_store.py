import concurrent.futures
import errno
import json
import os
import time

import pyarrow.parquet as pq
import pytest

import small_stores
from gapfloor.errors import StoreError, UsageError
from gapfloor.machine import this_place
from gapfloor.records import atomic
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import CELLS, EPISODES, content_key

pytestmark = pytest.mark.fast

write = small_stores.write_cell


@pytest.fixture
def store(empty_store):
    return empty_store


def test_what_is_written_is_read_back(store):
    write(store)
    episodes, cells = store.episodes(), store.cell_records()
    assert episodes.schema == EPISODES
    assert episodes.column("episode_return").to_pylist() == [0.0, 10.0]
    assert cells.schema == CELLS
    assert cells.to_pylist()[0]["entropy_raw"] == 2.5


def test_the_same_cell_gives_the_same_bytes(store):
    write(store)
    first = {path.name: path.read_bytes() for path in store.cells_folder.iterdir()}
    write(store)
    assert {path.name: path.read_bytes() for path in store.cells_folder.iterdir()} == first


@pytest.mark.parametrize("suffix", [".parquet", ".json"])
@pytest.mark.parametrize("harm", ["cut", "alter", "empty"])
def test_a_cut_or_altered_cell_is_noticed_and_named(store, suffix, harm):
    write(store)
    path = store.cells_folder / f"one{suffix}"
    data = path.read_bytes()
    middle = len(data) // 2
    harmed = {
        "cut": data[:middle],
        "alter": data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :],
        "empty": b"",
    }
    path.write_bytes(harmed[harm])
    assert store.cells() == []
    assert [damaged.stem for damaged in store.damaged] == ["one"]


def test_episodes_without_a_manifest_are_not_a_cell(store):
    write(store)
    (store.cells_folder / "one.json").unlink()
    assert store.cells() == []


def test_duckdb_reads_all_cells_as_one_table(store):
    import duckdb

    write(store)
    write(store, "two", level_set="test", content={"levels": "1000:1100"})
    episodes, cells = store.episodes(), store.cell_records()  # DuckDB finds them by their names
    answer = duckdb.sql(
        "select level_set, count(*) as n, avg(episode_return) as mean from episodes group by all order by 1"
    )
    assert answer.to_arrow_table().to_pylist() == [
        {"level_set": "test", "n": 2, "mean": 5.0},
        {"level_set": "train", "n": 2, "mean": 5.0},
    ]
    assert duckdb.sql("select count(*) from cells").fetchall() == [(2,)]
    assert episodes.num_rows == 2 * cells.num_rows


def test_the_parquet_files_alone_are_one_table_too(store):
    import duckdb

    write(store)
    write(store, "two", draw=1)
    count = duckdb.sql(f"select count(*) from read_parquet('{store.cells_folder}/*.parquet')").fetchall()
    assert count == [(4,)]


def test_nothing_in_a_cell_tells_time_host_or_path(store):
    write(store)
    metadata = pq.read_metadata(store.cells_folder / "one.parquet").metadata or {}
    assert set(metadata) <= {b"ARROW:schema"}
    text = (store.cells_folder / "one.json").read_text()
    assert str(store.root) not in text
    assert os.uname().nodename not in json.loads(text)["labels"].values()


def test_a_floor_of_another_design_is_left_aside_when_runs_have_one(store):
    write(store)
    floor = {"reference": "uniform", "rule": "uniform", "agent": "", "seed": None, "budget": ""}
    write(store, "same", **floor)
    write(store, "other", content={"slots": 8}, **floor)
    assert sorted(cell.path.stem for cell in store.comparable_cells()) == ["one", "same"]


def test_runs_of_two_designs_are_not_compared(store):
    write(store)
    write(store, "other", content={"slots": 8})
    with pytest.raises(StoreError, match="under 2 designs"):
        store.episodes()


def test_a_floor_under_other_options_of_the_engine_is_left_aside(store):
    write(store)
    floor = {"reference": "uniform", "rule": "uniform", "agent": "", "seed": None, "budget": ""}
    write(store, "other", content={"options": {"use_backgrounds": False}}, **floor)
    assert [cell.path.stem for cell in store.comparable_cells()] == ["one"]
    write(store, "run", seed=2, content={"options": {"use_backgrounds": False}})
    with pytest.raises(StoreError, match=r'2 designs .*options \{"use_backgrounds": false\}'):
        store.episodes()


def test_a_file_in_the_stores_place_is_named(tmp_path):
    path = tmp_path / "file"
    path.write_text("")
    with pytest.raises(StoreError, match="is a file, not a folder"):
        Store(path).prepare()


def test_a_store_that_is_not_there_is_named(tmp_path):
    with pytest.raises(StoreError, match="There is no store"):
        Store(tmp_path / "none").check_readable()


def test_a_full_disk_leaves_the_old_file_and_says_so(tmp_path, monkeypatch):
    path = tmp_path / "value"
    atomic.write_text_atomically(path, "old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full)
    with pytest.raises(StoreError, match="the disk is full"):
        atomic.write_text_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["value"]


def leave_partial(folder, *, place, process):
    path = folder / f"{atomic.PARTIAL}{place}-{process}-0a1b2c3d-x"
    path.write_text("half")
    return path


def test_a_pipe_or_device_is_refused_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="not a regular file"):
        atomic.write_text_atomically(pipe, "text")
    assert pipe.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_leftovers_of_dead_processes_are_removed_and_those_of_living_ones_kept(tmp_path):
    dead = leave_partial(tmp_path, place=this_place(), process=999999999)
    living = leave_partial(tmp_path, place=this_place(), process=os.getpid())
    atomic.remove_leftovers(tmp_path)
    assert not dead.exists()
    assert living.exists()


def test_a_write_under_way_on_another_host_is_left_alone_until_it_is_a_day_old(tmp_path):
    recent = leave_partial(tmp_path, place="anotherhost1", process=999999999)
    old = leave_partial(tmp_path, place="anotherhost2", process=os.getpid())
    yesterday = time.time() - atomic.ABANDONED_SECONDS - 1
    os.utime(old, (yesterday, yesterday))
    atomic.remove_leftovers(tmp_path)
    assert recent.exists()
    assert not old.exists()


def test_two_threads_that_write_one_file_do_not_share_a_temporary_file(tmp_path):
    path = tmp_path / "value"
    texts = [str(number) * 50_000 for number in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: atomic.write_text_atomically(path, text), texts))
    assert path.read_text() in texts
    assert os.listdir(tmp_path) == ["value"]


def test_episodes_come_in_the_order_in_which_a_study_names_agents(store):
    write(store, "a", agent="fpn", content={"policy": "x"})
    write(store, "b", agent="impala")
    assert store.episodes().column("agent").unique().to_pylist() == ["fpn", "impala"]
    store.write_order(games=["coinrun"], agents=["impala", "fpn"])
    assert Store(store.root).episodes().column("agent").unique().to_pylist() == ["impala", "fpn"]


def forge(store, change):
    """Edit a manifest and hash it again."""
    path = store.cells_folder / "one.json"
    document = json.loads(path.read_text())
    del document["sha256"]
    change(document)
    document["key"] = content_key(document["content"])
    path.write_text(json.dumps({**document, "sha256": content_key(document)}))


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.update(labels=3),
        lambda document: document.update(record=[]),
        lambda document: document["labels"].pop("agent"),
        lambda document: document["labels"].update(game=7),
        lambda document: document["labels"].update(seed="one"),
        lambda document: document["labels"].update(draw=2**70),
        lambda document: document["content"].pop("policy"),
        lambda document: document["content"].update(slots=[1]),
        lambda document: document["content"].update(options=[]),
        lambda document: document["record"].update(n_steps={"a": 1}),
        lambda document: document["record"].update(n_steps=10**30),
    ],
)
def test_a_manifest_with_values_that_gapfloor_does_not_write_is_not_a_cell(store, change):
    write(store)
    forge(store, change)
    assert store.cells() == []
    assert [path.stem for path in store.damaged] == ["one"]


def test_a_record_of_the_wrong_kind_is_refused_in_a_sentence(store):
    write(store)
    forge(store, lambda document: document["record"].update(entropy_raw="high"))
    with pytest.raises(StoreError, match="holds a value of the wrong kind"):
        store.cell_records()


@pytest.mark.parametrize("text", ["3", "[]", '{"games": 3, "agents": []}', '{"games": [[1]]}', "[" * 100_000])
def test_an_order_that_makes_no_sense_is_passed_over(store, text):
    write(store)
    (store.root / "order.json").write_text(text)
    assert store.episodes().num_rows == 2


def test_a_record_may_hold_counts_of_several_dimensions(empty_store):
    small_stores.write_cell(empty_store, record={"action_counts_by_dimension": [[1, 2], [3]]})
    (cell,) = empty_store.cells()
    assert cell.manifest.record["action_counts_by_dimension"] == [[1, 2], [3]]
