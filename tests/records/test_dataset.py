"""A published dataset gives the results of the store that it was made from."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gapfloor
import small_stores
from gapfloor.analysis.apply import analyse
from gapfloor.analysis.episodes import read_inputs
from gapfloor.errors import GapfloorError, StoreError
from gapfloor.plan.model import Plan, builtin_text
from gapfloor.records.dataset import CELL_FILE, EPISODE_FILE, store_of, write_dataset
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import read_episodes

pytestmark = pytest.mark.fast
ENGINE = {"engine": "procgen", "engine_version": "0.10.7"}


@pytest.fixture
def store(empty_store):
    """Two runs and a floor on two draws."""
    for draw in (0, 1):
        for seed in (1, 2):
            content = {**ENGINE, "policy": f"run {seed}", "draw": draw}
            small_stores.write_cell(empty_store, f"run{seed}-{draw}", content=content, seed=seed, draw=draw)
        floor = {"agent": "", "budget": "", "seed": None, "reference": "uniform", "rule": "uniform"}
        content = {**ENGINE, "policy": "uniform", "draw": draw}
        small_stores.write_cell(empty_store, f"floor-{draw}", content=content, draw=draw, **floor)
    empty_store.write_order(games=["coinrun"], agents=["impala"])
    return empty_store


def test_a_dataset_holds_the_cells_of_its_store_byte_for_byte(store, tmp_path):
    write_dataset(store.root, tmp_path / "data")
    again = Store(store_of(tmp_path / "data"))
    assert [cell.manifest for cell in again.cells()] == [cell.manifest for cell in store.cells()]
    assert again.episodes().equals(store.episodes())


def test_the_analysis_of_a_dataset_is_that_of_its_store_with_the_times_of_its_cells(store, tmp_path):
    store.publish(tmp_path / "data")
    assert analyse(tmp_path / "data").to_dict() == analyse(store.root).to_dict()
    times = read_inputs(tmp_path / "data").stored_at
    assert len(times) == 6
    assert times == read_inputs(store.root).stored_at


def test_a_plan_that_is_published_with_a_dataset_applies_unless_another_is_named(store, tmp_path):
    (tmp_path / "mine.toml").write_text(builtin_text("paper").replace('name = "paper"', 'name = "mine"'))
    write_dataset(store.root, tmp_path / "data", plan=tmp_path / "mine.toml")
    assert gapfloor.analyse(tmp_path / "data").plan.name == "mine"
    assert gapfloor.analyse(tmp_path / "data", Plan.paper()).plan.name == "paper"


def test_two_agents_of_a_dataset_are_compared_as_those_of_its_store(store, tmp_path):
    for draw in (0, 1):
        for seed in (1, 2):
            content = {**ENGINE, "policy": f"other run {seed}", "draw": draw}
            labels = {"agent": "fpn", "seed": seed, "draw": draw}
            small_stores.write_cell(store, f"other{seed}-{draw}", content=content, **labels)
    write_dataset(store.root, tmp_path / "data")
    found, expected = (
        gapfloor.compare(source, agents=("impala", "fpn")) for source in (tmp_path / "data", store.root)
    )
    assert found.rows
    assert found.to_dict() == expected.to_dict()


def test_anyone_can_read_its_episodes_without_gapfloor(store, tmp_path):
    write_dataset(store.root, tmp_path / "data")
    table = pq.read_table(tmp_path / "data" / EPISODE_FILE)
    assert {"game", "rule", "level_set", "level_seed", "episode_return"} <= set(table.column_names)
    assert table.num_rows == 12


def test_another_dataset_of_the_same_name_is_another_dataset(store, tmp_path, monkeypatch):
    """In a notebook the folder may change, or the files in it."""
    for place, cells in (("one", 6), ("two", 4)):
        for path in sorted(store.cells_folder.iterdir())[2 * cells :]:
            path.unlink()
        write_dataset(store.root, tmp_path / place / "data")
        monkeypatch.chdir(tmp_path / place)
        assert len(Store(store_of(Path("data"))).cells()) == cells
    write_dataset(store.root, tmp_path / "one" / "data")
    assert len(Store(store_of(tmp_path / "one" / "data")).cells()) == 4


@pytest.mark.parametrize("missing", ["store", "plan"])
def test_a_store_or_plan_that_does_not_exist_gets_one_sentence(store, tmp_path, missing):
    source = tmp_path / "nowhere" if missing == "store" else store.root
    with pytest.raises(GapfloorError, match=r"There is no store|does not exist") as stopped:
        Store(source).publish(tmp_path / "data", plan=tmp_path / "no.toml")
    assert "\n" not in str(stopped.value)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("change", ["label", "lost row", "manifest"])
def test_an_altered_dataset_is_refused(store, tmp_path, change):
    data = tmp_path / "data"
    write_dataset(store.root, data)
    episodes, cells = pq.read_table(data / EPISODE_FILE), pq.read_table(data / CELL_FILE)
    if change == "label":
        rules = ["greedy" if rule == "sampled" else rule for rule in episodes["rule"].to_pylist()]
        episodes = episodes.set_column(episodes.column_names.index("rule"), "rule", [rules])
    elif change == "lost row":
        episodes = episodes.slice(0, episodes.num_rows - 1)
    else:
        texts = [text.replace('"n_steps": 15', '"n_steps": 16') for text in cells["manifest"].to_pylist()]
        cells = cells.set_column(cells.column_names.index("manifest"), "manifest", [texts])
    pq.write_table(episodes, data / EPISODE_FILE)
    pq.write_table(cells, data / CELL_FILE)
    with pytest.raises(StoreError, match="is not a dataset that can be read"):
        store_of(data)


def test_of_what_lies_around_a_dataset_only_the_regular_files_that_a_report_reads_are_used(store, tmp_path):
    """A copy of the whole folder would read a device without end, and follow links out of it."""
    data = tmp_path / "data"
    write_dataset(store.root, data)
    (data / "zeros").symlink_to("/dev/zero")
    (data / "replays").mkdir()
    (data / "replays" / "x.json").symlink_to("/dev/zero")
    os.mkfifo(data / "replays" / "x.npz")
    (data / "everything").symlink_to("/")
    (data / "results" / "cka").mkdir(parents=True)
    (data / "results" / "cka" / "a.json").write_text("{}")
    made = store_of(data)
    assert sorted(path.name for path in made.iterdir()) == ["cells", "log", "order.json", "results"]
    assert (made / "results" / "cka" / "a.json").read_text() == "{}"
    assert Store(made).episodes().equals(store.episodes())


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("rows", -1),
        ("rows", 0),
        ("rows", 2**62),
        ("rows", None),
        ("written_at", "0001-01-01T00:00:00+14:00"),
        ("cell", "a\0"),
    ],
)
def test_a_dataset_with_odd_values_is_refused_in_a_sentence(store, tmp_path, column, value):
    data = tmp_path / "data"
    write_dataset(store.root, data)
    rows = pq.read_table(data / CELL_FILE).to_pylist()
    rows[1][column] = value
    pq.write_table(pa.Table.from_pylist(rows), data / CELL_FILE)
    with pytest.raises(StoreError, match="is not a dataset that can be read"):
        store_of(data)


def test_a_dataset_or_a_cell_that_declares_too_many_episodes_is_refused_before_it_is_read(store, tmp_path):
    data, cell = tmp_path / "data", store.cells()[0]
    write_dataset(store.root, data)
    table = pq.read_table(cell.path)
    many = pa.concat_tables([table.slice(0, 1)] * 1_000_001).combine_chunks()
    write = {"compression": "zstd", "row_group_size": 1 << 20}
    pq.write_table(many, cell.path, **write)
    with pytest.raises(StoreError, match="1,000,001 episodes in one cell"):
        read_episodes(cell.path)
    pq.write_table(pa.concat_tables([many] * 10), data / EPISODE_FILE, **write)
    with pytest.raises(StoreError, match="10,000,010 rows"):
        store_of(data)


def test_the_temporary_store_of_a_killed_process_goes_with_the_next_start(store, tmp_path, monkeypatch):
    write_dataset(store.root, tmp_path / "data")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    script = (
        "import os, pathlib, sys\n"
        "from gapfloor.records.dataset import store_of\n"
        "from gapfloor.records.store import open_store\n"
        "store_of(pathlib.Path(sys.argv[1]))\n"
        "with open_store(None):\n    "
    )
    for end, left in (("os.kill(os.getpid(), 9)", ["dataset", "store"]), ("pass", [])):
        subprocess.run([sys.executable, "-c", script + end, str(tmp_path / "data")], check=False)
        found = sorted(path.name.split("-")[1] for path in (tmp_path / "temporary").iterdir())
        assert found == left
