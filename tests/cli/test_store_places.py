"""Where a store can be: the home folder by `~`, a folder that cannot be written, never an address."""

import os
from pathlib import Path

import pytest

from command_line import run
from gapfloor import evaluate, sweep, training_curve
from gapfloor.api.floor import floor as measure_floor
from gapfloor.errors import StoreError, UsageError
from gapfloor.records.store import Store

SMALL = ["--episodes", "4", "--slots", "4", "--draws", "0", "--workers", "1"]


@pytest.mark.fast
def test_a_tilde_means_the_home_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Store("~/x").root == tmp_path / "x"
    assert Store(Path("~/x")).root == tmp_path / "x"


@pytest.mark.fast
@pytest.mark.parametrize("place", ["s3://bucket/x", "file:///tmp/x", "gs://x", "https://host/x"])
def test_an_address_is_refused(place):
    for given in (place, Path(place)):
        with pytest.raises(StoreError, match="is an address, and a store is a folder"):
            Store(given)
    assert Store("C:/Users/x").root == Path("C:/Users/x")


@pytest.mark.fast
@pytest.mark.parametrize("place", ["/", "//", "/tmp/..", "../" * 50])
def test_the_root_of_all_files_is_refused(place):
    for given in (place, Path(place)):
        with pytest.raises(StoreError, match="is the root folder of this machine"):
            Store(given)


@pytest.mark.fast
def test_a_folder_whose_name_is_not_utf_8_is_refused_before_play():
    with pytest.raises(StoreError, match="name that is not UTF-8"):
        Store(os.fsdecode(b"/tmp/\xff"))


@pytest.mark.fast
@pytest.mark.parametrize(
    ("place", "why"),
    [("s3://bucket/study", "s3://bucket/study is an address"), ("/", "The store / is the root folder")],
    ids=["address", "root"],
)
@pytest.mark.parametrize(
    "command",
    [
        ["floor", "starpilot"],
        ["evaluate", "x:y", "--game", "starpilot", "--rules", "sampled"],
        ["train", "starpilot"],
        ["calibrate", "starpilot"],
        ["levels", "bigfish"],
        ["study", "run", "studies/demo.toml"],
        ["study", "status", "studies/demo.toml"],
    ],
    ids=lambda command: "-".join(command[:2]),
)
def test_every_command_refuses_a_place_that_cannot_be_a_store_before_anything_is_done(
    capsys, monkeypatch, tmp_path, command, place, why
):
    monkeypatch.chdir(tmp_path)
    before = set(os.listdir("/"))
    done = run(capsys, *command, "--store", place)
    assert done.code == 2
    assert why in done.err
    assert os.listdir(tmp_path) == []
    assert set(os.listdir("/")) == before


@pytest.mark.fast
@pytest.mark.parametrize(
    ("place", "why"), [("/", "is the root folder of this machine"), ("file", "is a file, not a folder")]
)
@pytest.mark.parametrize(
    "command",
    [
        ["analyse", "nothing.csv"],
        ["compare", "nothing.csv", "--agents", "a,b"],
        ["report", "nothing.csv"],
    ],
    ids=lambda command: command[0],
)
def test_a_place_that_cannot_be_a_folder_of_results_is_refused_before_anything_is_done(
    capsys, monkeypatch, tmp_path, command, place, why
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    done = run(capsys, *command, "--out", place)
    assert done.code == 2
    assert why in done.err
    assert os.listdir(tmp_path) == ["file"]


@pytest.mark.fast
def test_functions_that_play_refuse_it_too():
    with pytest.raises(UsageError, match="is the root folder of this machine"):
        sweep("x:y", game="maze", temperatures=[1], out="/")
    with pytest.raises(UsageError, match="is the root folder of this machine"):
        training_curve("nothing", out="/")


def test_the_environment_names_a_store_in_the_home_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GAPFLOOR_STORE", "~/mine")
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "floor", "starpilot", *SMALL).code == 0
    assert os.listdir(tmp_path) == ["mine"]


def everything(folder):
    """Every path below a folder with its time of change: also a file that came and went changes its folder's."""
    return {path: os.stat(path).st_mtime_ns for path in [folder, *sorted(folder.rglob("*"))]}


def test_a_store_that_holds_every_cell_is_only_read(capsys, tmp_path):
    few = {"episodes": 4, "slots": 4, "draws": (0,), "workers": 1, "store": tmp_path}
    floor = measure_floor("starpilot", **few)
    result = evaluate("small_policies:linear", game="starpilot", rules="sampled,greedy", **few)
    before = everything(tmp_path)
    assert measure_floor("starpilot", **few) == floor
    again = evaluate("small_policies:linear", game="starpilot", rules="sampled,greedy", **few)
    assert again.to_dict() == result.to_dict()
    assert run(capsys, "floor", "starpilot", *SMALL, "--store", tmp_path).code == 0
    assert everything(tmp_path) == before
