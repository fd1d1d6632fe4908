"""`gapfloor levels` as a user meets it, on the real engine."""

import json

import pytest

from command_line import document_of, exit_code, run

SETS = ["--train", "0:50", "--test", "1000:1030"]


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checked")
    assert exit_code("levels", "maze", *SETS, "--store", folder) == 0
    return folder / "leakage" / "maze-easy.json"


def test_check_writes_the_list_of_levels(checked):
    document = json.loads(checked.read_text())
    (game,) = document["games"]
    assert (game["game"], game["train"], game["test"]) == ("maze", "0:50", "1000:1030")
    assert game["leaked"]
    assert [path.name for path in checked.parent.iterdir()] == ["maze-easy.json"]


def test_json_is_one_document_and_says_the_same(capsys, checked):
    status, out, _ = run(capsys, "levels", "maze", *SETS, "--json")
    assert status == 0
    assert document_of(out) == json.loads(checked.read_text())


@pytest.mark.fast
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["mazze"], "did you mean maze"),
        (["maze", "--mode", "extreme"], "has no extreme mode"),
        (["maze", "--test", "100:300"], "share the levels 100:200"),
        (["maze", "--test", "all"], "give a range"),
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
    status, _, err = run(capsys, "levels", "maze", "--store", str(path))
    assert status == 2
    assert "taken is a file" in err
    assert path.read_text() == "mine"
