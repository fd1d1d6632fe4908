"""The index of whole cells: it saves reading, and never hides a change."""

import json
from pathlib import Path

import pytest

from gapfloor.records import verified_cells
from gapfloor.records.store import Store

pytestmark = pytest.mark.fast


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(verified_cells, "_WORTH_WRITING", 1)
    store = Store(tmp_path)
    store.prepare()
    for name in ("a", "b", "c"):
        write(store, name)
    return store


def write(store: Store, name: str, *, value: float = 1.0) -> None:
    labels = {
        "game": "maze", "mode": "easy", "budget": "", "agent": "", "seed": None, "reference": "uniform",
        "rule": "uniform", "level_set": "train", "draw": 0,
    }  # fmt: skip
    columns = {"slot": [0], "index": [0], "level_seed": [3], "episode_return": [value], "length": [9]}
    store.write_cell(
        file_name=name, content={"policy": name}, labels=labels, columns=columns, record={"k": 1}
    )


def index_of(store: Store) -> Path:
    return store.root / "log" / "verified-cells.json"


def names(store: Store) -> list[str]:
    return [cell.path.stem for cell in store.known_cells()]


def test_the_index_lists_what_reading_every_cell_lists(store: Store) -> None:
    read = store.cells()
    assert store.known_cells() == read
    assert index_of(store).is_file()
    assert Store(store.root).known_cells() == read


def test_a_cell_that_has_not_changed_is_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.known_cells()
    monkeypatch.setattr("gapfloor.records.store.read_manifest", lambda path: pytest.fail(f"{path} was read"))
    assert names(store) == ["a", "b", "c"]


def test_a_cell_that_was_cut_after_it_was_indexed_is_damaged(store: Store) -> None:
    store.known_cells()
    path = store.cells_folder / "b.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    assert names(store) == ["a", "c"]
    assert [found.stem for found in store.damaged] == ["b"]


def test_an_altered_manifest_is_noticed(store: Store) -> None:
    store.known_cells()
    path = store.cells_folder / "b.json"
    path.write_text(path.read_text().replace("maze", "mazes"))
    assert names(store) == ["a", "c"]


def test_new_cells_are_found_and_deleted_ones_are_gone(store: Store) -> None:
    store.known_cells()
    write(store, "d")
    for kind in ("json", "parquet"):
        (store.cells_folder / f"a.{kind}").unlink()
    assert names(store) == ["b", "c", "d"]


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"0" * 64 + b"\n{}"])
def test_a_damaged_index_is_made_again(store: Store, damage: bytes) -> None:
    store.known_cells()
    index_of(store).write_bytes(damage)
    assert names(store) == ["a", "b", "c"]
    assert set(json.loads(index_of(store).read_bytes().partition(b"\n")[2])) == {"a", "b", "c"}


def test_an_altered_entry_of_the_index_is_not_believed(store: Store) -> None:
    store.known_cells()
    data = index_of(store).read_bytes()
    index_of(store).write_bytes(data.replace(b"maze", b"mole"))
    assert {cell.manifest.labels["game"] for cell in store.known_cells()} == {"maze"}
