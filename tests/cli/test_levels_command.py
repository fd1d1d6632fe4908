"""`gapfloor levels` as a user meets it, on the real engine."""

import csv
import json

import pytest

from command_line import document_of, exit_code, run

SETS = ["--train", "0:50", "--test", "1000:1030"]


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checked")
    assert exit_code("levels", "maze", *SETS, "--out", folder / "out", "--store", folder / "store") == 0
    return folder


def test_check_writes_the_list_of_levels(checked):
    document = json.loads((checked / "out" / "leakage.json").read_text())
    (game,) = document["games"]
    assert (game["game"], game["train"], game["test"]) == ("maze", "0:50", "1000:1030")
    assert game["leaked"]
    assert sorted(path.name for path in (checked / "out").iterdir()) == ["leakage.json"]
    assert json.loads((checked / "store" / "leakage" / "maze-easy.json").read_text()) == document


def test_json_is_one_document_and_says_the_same(capsys, checked):
    status, out, _ = run(capsys, "levels", "maze", *SETS, "--json")
    assert status == 0
    assert document_of(out) == json.loads((checked / "out" / "leakage.json").read_text())


def test_gap_reads_anyones_episodes(capsys, checked, tmp_path):
    leaked = json.loads((checked / "out" / "leakage.json").read_text())["games"][0]["leaked"]
    path = tmp_path / "episodes.csv"
    with open(path, "w", newline="") as handle:
        writer = csv.writer(handle)
        labels = ["game", "budget", "agent", "seed", "rule", "level_set", "draw"]
        writer.writerow([*labels, "level_seed", "episode_return"])
        for level in range(50):
            writer.writerow(["maze", "8M", "mine", 1, "greedy", "train", 0, level, 10])
        for level in range(1000, 1030):
            writer.writerow(
                ["maze", "8M", "mine", 1, "greedy", "test", 0, level, 10 if level in leaked else 0]
            )
    status, out, _ = run(capsys, "levels", "--gap", str(path), "--leaks", str(checked / "out"), "--json")
    assert status == 0
    every, without, _ = json.loads(out)["gaps"]
    assert every["gap"] == pytest.approx(10 - 10 * len(leaked) / 30)
    assert (without["left_out"], without["gap"], without["n_levels"][1]) == ("leaked", 10, 30 - len(leaked))
    assert every["floor_gap"] is None
    status, out, _ = run(capsys, "levels", "--gap", str(path), "--leaks", str(checked / "out"))
    assert "left out" in out
    assert str(30 - len(leaked)) in out


@pytest.mark.fast
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mazze"], "did you mean maze"),
        (["maze", "--mode", "extreme"], "has no extreme mode"),
        (["maze", "--test", "100:300"], "share the levels 100:200"),
        (["maze", "--test", "all"], "give a range"),
        (["--gap", "nothing.csv"], "There is no store or file at nothing.csv"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_2(capsys, arguments, words):
    status, out, err = run(capsys, "levels", *arguments)
    assert status == 2
    assert words in err
    assert out == ""
    assert "Traceback" not in err


@pytest.mark.fast
def test_a_file_in_the_way_is_named_before_anything_is_measured(capsys, tmp_path):
    path = tmp_path / "taken"
    path.write_text("mine")
    status, _, err = run(capsys, "levels", "maze", "--out", str(path))
    assert status == 2
    assert "taken is a file" in err
    assert path.read_text() == "mine"
