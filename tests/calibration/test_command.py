"""`gapfloor calibrate` as a user meets it."""

import json
import os
from pathlib import Path

import pytest

import command_line
import gapfloor

FEW = ["--states", "12"]
KEPT = Path("gapfloor-store/classes/fruitbot-easy.json")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def run(capsys, *arguments):
    return command_line.run(capsys, "calibrate", *arguments)


def test_json_holds_every_game_with_its_classes(capsys):
    code, out, _ = run(capsys, "fruitbot", "miner", *FEW, "--json")
    games = json.loads(out)["games"]
    assert code == 0
    assert [game["game"] for game in games] == ["fruitbot", "miner"]
    for game in games:
        assert game["mode"] == "easy"
        assert game["n_states"] == 12
        assert game["k"] == len(game["classes"]) == len(game["class_names"])
        assert sorted(action for members in game["classes"] for action in members) == list(range(15))
        assert 1 <= game["mean_state_k"] <= game["k"]


def test_classes_are_printed_and_compared_with_the_shipped_ones(capsys):
    code, out, _ = run(capsys, "fruitbot", *FEW)
    assert code == 0
    assert "LEFT = LEFT+DOWN = LEFT+UP" in out
    (row,) = [line.split() for line in out.splitlines() if line.startswith("fruitbot  easy")]
    assert (row[2], row[3], row[5], row[6]) == ("random", "4", "12", "same")


def test_the_store_keeps_its_classes_unless_told_to_replace_them(capsys):
    run(capsys, "fruitbot", *FEW)
    first = KEPT.read_text()
    assert "keeps its classes" in run(capsys, "fruitbot", *FEW, "--seed", "1")[1]
    assert KEPT.read_text() == first
    assert "Kept in" in run(capsys, "fruitbot", *FEW, "--seed", "1", "--replace")[1]
    assert KEPT.read_text() != first


def test_any_number_of_workers_writes_the_same_bytes():
    gapfloor.calibrate("miner", states=12, workers=1, store="one")
    gapfloor.calibrate("miner", states=12, workers=2, store="two")
    one, two = (Path(store, "classes/miner-easy.json").read_bytes() for store in ("one", "two"))
    assert one == two


def test_a_policy_s_own_states_are_shown_next_to_random_play(capsys):
    arguments = ("coinrun", *FEW, "--policy", "small_policies:constant_logits")
    code, out, _ = run(capsys, *arguments, "--json")
    game, visited = json.loads(out)["games"]
    assert code == 0
    assert (game["game"], visited["game"]) == ("coinrun", "coinrun")
    assert game["play"] == "random" != visited["play"]
    assert visited["equal_states"] != game["equal_states"]
    out = run(capsys, *arguments)[1]
    assert [line.split()[2] for line in out.splitlines() if line.startswith("coinrun  easy")] == [
        "random",
        "policy",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fruitbt"], "did you mean fruitbot?"),
        (["fruitbot", "--mode", "hart"], "did you mean hard?"),
        (["fruitbot", "--mode", "memory"], "has no memory mode"),
        (["fruitbot", "--states", "0"], "at least 1"),
        (["fruitbot", "--horizon", "0"], "at least 1"),
        (["fruitbot", "--seed", "-1"], "out of range"),
        (["fruitbot", "--levels", "5:5"], "is empty"),
        (["fruitbot", "--option", "use_backgrounds=perhaps"], "must be true or false"),
        (["fruitbot", "--picture", "matrix.gif"], "No such option"),
        (["fruitbot", "--policy", "nowhere.safetensors"], "no checkpoint"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert message in err
    assert os.listdir(".") == []
