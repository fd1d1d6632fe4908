"""Verifying a store: what a hash shows, what only a replay shows, and what is said about the rest."""

import hashlib
import json
import os
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gapfloor
from command_line import document_of, run
from gapfloor.errors import UsageError
from gapfloor.play.replay import recorded_episodes, replay_episodes
from gapfloor.records.dataset import write_dataset
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import EPISODES, Manifest, content_key, parse_manifest
from gapfloor.records.verification import read_verification

POLICY = "small_policies:linear"
SMALL = {"episodes": 8, "slots": 4, "draws": (0,), "train": "0:20", "test": "100:120", "workers": 1}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measured") / "store"
    gapfloor.evaluate(POLICY, game="starpilot", rules="sampled,greedy", store=folder, **SMALL)
    return folder


@pytest.fixture
def store(measured, tmp_path):
    shutil.copytree(measured, tmp_path / "store")
    return tmp_path / "store"


def first_cell(store, *, reference):
    return next(cell for cell in Store(store).cells() if cell.is_reference == reference)


def write_again(cell, *, manifest=None, change=lambda rows: None):
    """Edit a cell as somebody would who knows the format: every hash is made again."""
    rows = pq.read_table(cell.path).to_pylist()
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema=EPISODES), cell.path)
    old = manifest or cell.manifest
    sha256 = hashlib.sha256(cell.path.read_bytes()).hexdigest()
    new = Manifest(old.key, old.content, old.labels, old.record, sha256)
    cell.path.with_suffix(".json").write_bytes(new.to_bytes())


def test_every_episode_of_an_honest_store_plays_as_recorded(store):
    found = gapfloor.Store.verify(store, episodes=1000, policies=[POLICY])
    assert found.is_sound
    assert (found.cells, found.replayed_cells) == (6, 6)
    assert found.replayed == found.replayable == found.episodes == 48
    assert found.not_replayed == ()
    assert found.noticed_share == 0


@pytest.mark.parametrize("reference", [True, False])
@pytest.mark.parametrize("column", ["episode_return", "length"])
def test_an_edited_outcome_that_was_hashed_again_is_found_by_replay(store, reference, column):
    def change(rows):
        rows[3][column] += 1
        rows[4][column] -= 1

    write_again(first_cell(store, reference=reference), change=change)
    assert Store(store).cells()  # hashes alone do not show it
    found = gapfloor.Store.verify(store, episodes=1000, policies=[POLICY])
    assert len(found.problems) == 2
    assert all("is recorded" in problem for problem in found.problems)


@pytest.mark.parametrize(
    ("field", "value"),
    [("entropy_raw", 1.5), ("entropy_first1024", None), ("action_counts", "rotated"), ("backend", "other")],
)
def test_an_edited_record_is_found_where_the_whole_cell_is_played_again(store, field, value):
    cell = next(each for each in Store(store).cells() if each.manifest.labels["rule"] == "sampled")
    old = cell.manifest.record
    changed = [*old["action_counts"][1:], old["action_counts"][0]] if value == "rotated" else value
    manifest = Manifest(
        cell.manifest.key, cell.manifest.content, cell.manifest.labels, {**old, field: changed}, ""
    )
    write_again(cell, manifest=manifest)
    missed = gapfloor.Store.verify(store, episodes=1000, whole_cells=0, policies=[POLICY])
    assert missed.is_sound
    assert missed.recomputed_cells == 0
    found = gapfloor.Store.verify(store, episodes=0, whole_cells=6, policies=[POLICY])
    assert found.recomputed_cells == 6
    assert len(found.problems) == 1
    assert f"{cell.path.stem}: it records {field} " in found.problems[0]


def test_cells_of_policies_are_played_completely_before_references(store):
    found = gapfloor.Store.verify(store, episodes=0, whole_cells=4, policies=[POLICY])
    assert found.is_sound
    assert "entropies and action counts of 4 whole cells were computed again" in found.sentence
    cell = first_cell(store, reference=True)
    manifest = Manifest(
        cell.manifest.key, cell.manifest.content, cell.manifest.labels,
        {**cell.manifest.record, "device": "odd"}, "",
    )  # fmt: skip
    write_again(cell, manifest=manifest)
    assert gapfloor.Store.verify(store, episodes=0, whole_cells=4, policies=[POLICY]).is_sound
    assert not gapfloor.Store.verify(store, episodes=0, whole_cells=6, policies=[POLICY]).is_sound


def test_an_edited_specification_under_the_old_key_is_not_a_cell(store):
    cell = first_cell(store, reference=True)
    content = {**cell.manifest.content, "mode": "hard"}
    manifest = Manifest(
        cell.manifest.key, content, cell.manifest.labels, cell.manifest.record, cell.manifest.episodes_sha256
    )
    cell.path.with_suffix(".json").write_bytes(manifest.to_bytes())
    reading = Store(store)
    assert cell.path.stem not in [each.path.stem for each in reading.cells()]
    assert [path.stem for path in reading.damaged] == [cell.path.stem]
    found = gapfloor.Store.verify(store, episodes=0, whole_cells=0)
    assert found.problems == (f"{cell.path.stem}: the key is not the hash of the specification",)


def test_an_edited_specification_with_a_new_key_does_not_fit_its_name_or_its_episodes(store):
    cell = first_cell(store, reference=True)
    content = {**cell.manifest.content, "draw": 7}
    manifest = Manifest(
        content_key(content),
        content,
        cell.manifest.labels,
        cell.manifest.record,
        cell.manifest.episodes_sha256,
    )
    write_again(cell, manifest=manifest)
    problems = " ".join(gapfloor.Store.verify(store, episodes=0, whole_cells=0).problems)
    for words in ("not named after the key", "labelled draw 0", "level_seed is not that of the schedule"):
        assert words in problems


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_a_damaged_file_is_a_problem(store, suffix):
    path = first_cell(store, reference=False).path.with_suffix(suffix)
    path.write_bytes(path.read_bytes()[:-10])
    found = gapfloor.Store.verify(store, episodes=0, whole_cells=0)
    assert len(found.problems) == 1
    assert found.problems[0].startswith(path.stem)


def test_a_pipe_with_the_name_of_a_cell_is_not_waited_for(store):
    path = first_cell(store, reference=False).path
    path.unlink()
    os.mkfifo(path)
    os.mkfifo(path.with_name("other.json"))
    assert len(gapfloor.Store.verify(store, episodes=0, whole_cells=0).problems) == 2


def test_what_could_not_be_played_again_is_said(store):
    found = gapfloor.Store.verify(store)
    assert found.is_sound
    assert found.replayed == found.replayable == 16  # the floor
    assert found.episodes == 48
    assert len(found.not_replayed) == 1
    assert found.not_replayed[0].startswith("4 cells: The policy of")


def test_the_sample_is_chosen_by_its_seed(store):
    first, again = (gapfloor.Store.verify(store, episodes=3, seed=5) for _ in range(2))
    assert first == again
    assert gapfloor.Store.verify(store, episodes=3).seed != gapfloor.Store.verify(store, episodes=3).seed


def replace_cells(store, cell, *, content, labels):
    """A store whose only cell is `cell` with another specification and other labels."""
    names = ("slot", "index", "level_seed", "episode_return", "length")
    rows = {name: pq.read_table(cell.path).column(name) for name in names}
    shutil.rmtree(store / "cells")
    content, labels = {**cell.manifest.content, **content}, {**cell.manifest.labels, **labels}
    Store(store).write_cell(
        file_name=f"x-{content_key(content)[:16]}", content=content, labels=labels, columns=rows,
        record=cell.manifest.record,
    )  # fmt: skip


def test_code_that_only_the_store_names_is_not_imported(store, tmp_path, monkeypatch):
    (tmp_path / "evil_envs.py").write_text("open('ran', 'w')\ndef make(): ...\n")
    monkeypatch.chdir(tmp_path)
    cell = first_cell(store, reference=True)
    named = {"game": "evil_envs:make"}
    replace_cells(store, cell, content={"engine": "gymnasium", **named}, labels=named)
    found = gapfloor.Store.verify(store, episodes=10)
    assert found.is_sound
    assert "add --allow evil_envs:make" in found.not_replayed[0]
    with pytest.raises(UsageError, match="add --allow evil_envs:make"):
        replay_episodes(recorded_episodes(Store(store).cells()[0]), store=Store(store))
    assert not (tmp_path / "ran").exists()


def test_the_name_of_a_reference_in_a_store_is_not_read_as_a_factory(store, tmp_path, monkeypatch):
    (tmp_path / "random-weights_evil.py").write_text("open('ran', 'w')\n")
    monkeypatch.chdir(tmp_path)
    name = "random-weights_evil"
    labels = {"agent": "", "budget": "", "reference": name, "rule": name}
    replace_cells(store, first_cell(store, reference=False), content={}, labels=labels)
    found = gapfloor.Store.verify(store, episodes=10)
    assert "is not a random network" in found.not_replayed[0]
    with pytest.raises(UsageError, match="is not a random network"):
        replay_episodes(recorded_episodes(Store(store).cells()[0]), store=Store(store))
    assert not (tmp_path / "ran").exists()


def test_a_result_is_no_longer_valid_when_a_cell_changes(store):
    found = gapfloor.Store.verify(store, episodes=4, seed=1)
    opened = Store(store)
    assert read_verification(store, opened.cells()) == found
    cell = first_cell(store, reference=True)
    write_again(cell, change=lambda rows: rows[0].update(episode_return=99.0))
    assert read_verification(store, opened.cells()) is None


def test_the_card_and_the_page_say_what_was_verified(store, capsys):
    def card():
        assert (
            run(capsys, "report", store, "--out", store.parent / "report", "--formats", "card,html").code == 0
        )
        page = (store.parent / "report" / "index.html").read_text()
        return json.loads((store.parent / "report" / "card.json").read_text())["verification"], page

    before, page = card()
    assert before is None
    assert "gapfloor verify has not seen these cells" in page
    found = gapfloor.Store.verify(store, episodes=5, seed=1)
    after, page = card()
    assert after["sentence"] == found.sentence
    assert found.sentence in page
    assert "5 of 48 episodes" in (store.parent / "report" / "card.md").read_text()


def test_the_command_exits_1_and_names_the_episode(store, capsys):
    assert run(capsys, "verify", store, "--episodes", "4").code == 0
    write_again(
        first_cell(store, reference=True),
        change=lambda rows: [row.update(episode_return=99.0) for row in rows],
    )
    done = run(capsys, "verify", store, "--policy", POLICY, "--episodes", "1000", "--json")
    assert done.code == 1
    document = document_of(done.out)
    assert document["is_sound"] is False
    assert len(document["problems"]) == 8
    assert "99 in" in document["problems"][0]


def test_an_empty_folder_and_no_folder_are_named(tmp_path, capsys):
    assert "holds no cells" in run(capsys, "verify", tmp_path).err
    assert run(capsys, "verify", tmp_path / "none").code == 2


def test_manifests_of_version_0_1_have_the_key_of_their_content():
    folder = os.path.join(os.path.dirname(__file__), "..", "data", "version-0.1", "store")
    cells = Store(folder).cells()
    assert len(cells) == 14
    for cell in cells:
        assert parse_manifest(cell.path.with_suffix(".json")).key == content_key(cell.manifest.content)


def test_a_result_that_cannot_be_kept_is_still_given(store):
    (store / "results").write_text("a file where the folder of results would be")
    found = gapfloor.Store.verify(store, episodes=2, whole_cells=0)
    assert found.is_sound
    assert "The result was not kept in the store" in found.notes[0]
    assert found.notes[0] in repr(found)


def test_a_dataset_is_verified_like_a_store(store, tmp_path):
    write_dataset(store, tmp_path / "published")
    found = gapfloor.Store.verify(tmp_path / "published", episodes=2, whole_cells=0)
    assert (found.is_sound, found.cells) == (True, 6)
