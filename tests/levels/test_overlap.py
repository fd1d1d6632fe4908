"""Groups of levels with equal fingerprints, and the file that keeps them."""

import json

import pytest

from gapfloor.errors import UsageError
from gapfloor.levels.overlap import (
    Leakage,
    LevelOverlap,
    LevelPair,
    equal_groups,
    equal_pairs,
    read_leakage,
)
from gapfloor.levels.schedule import LevelSet

pytestmark = pytest.mark.fast

TRAIN, TEST = LevelSet(0, 4), LevelSet(10, 13)
MARKS = {0: "a", 1: "b", 2: "a", 3: "c", 10: "a", 11: "d", 12: "b"}


def overlap(game="coinrun", mode="easy", pairs=((10, 0), (10, 2), (12, 1)), refuted=()):
    return LevelOverlap(
        game=game, mode=mode, engine="procgen", version="0.10.7", train=TRAIN, test=TEST,
        pairs=tuple(LevelPair(*pair, pair not in refuted, pair not in refuted) for pair in pairs),
        first_screen=3, first_frame=2, distinct_train=3, distinct_test=3, compared="frames", later="",
    )  # fmt: skip


def test_groups_hold_every_level_of_a_fingerprint_once():
    assert equal_groups(MARKS) == [(0, 2, 10), (1, 12)]


def test_groups_do_not_depend_on_the_order_in_which_levels_were_looked_at():
    assert equal_groups(dict(reversed(MARKS.items()))) == equal_groups(MARKS)


def test_a_held_out_level_is_paired_with_all_its_training_twins():
    assert equal_pairs(MARKS, train=TRAIN, test=TEST) == [(10, 0), (10, 2), (12, 1)]


def test_levels_that_are_alike_within_one_set_are_not_leaks():
    assert equal_pairs({0: "a", 1: "a", 10: "b", 11: "b"}, train=TRAIN, test=TEST) == []


def test_a_leaked_level_counts_once_however_many_twins_it_has():
    assert overlap().leaked == (10, 12)
    assert overlap().twins == {10: (0, 2), 12: (1,)}


def test_a_level_stays_confirmed_while_one_twin_is_left():
    assert overlap(refuted=[(10, 0)]).confirmed_by_moves == 2
    assert overlap(refuted=[(10, 0), (10, 2)]).confirmed_by_moves == 1


def test_a_leakage_file_is_read_back_as_it_was_written(tmp_path):
    found = Leakage((overlap(), overlap("maze", pairs=())))
    path = tmp_path / "leakage.json"
    path.write_text(found.to_json())
    assert read_leakage([path]) == found


def test_a_stores_files_are_read_together(tmp_path):
    (tmp_path / "leakage").mkdir()
    for game in ("coinrun", "maze"):
        path = tmp_path / "leakage" / f"{game}-easy.json"
        path.write_text(Leakage((overlap(game),)).to_json())
    read = read_leakage(sorted(tmp_path.glob("leakage/*.json")))
    assert [game.game for game in read.games] == ["coinrun", "maze"]
    assert read.of("maze", "easy") == overlap("maze")
    assert read.of("maze", "hard") is None


def test_the_file_names_levels_sets_and_definition():
    game = json.loads(Leakage((overlap(),)).to_json())["games"][0]
    assert (game["train"], game["test"], game["leaked"], game["compared"]) == (
        "0:4",
        "10:13",
        [10, 12],
        "frames",
    )


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "other", "games": []}', '{"format": "gapfloor-leakage/1"}']
)
def test_another_file_is_refused_by_name(tmp_path, text):
    path = tmp_path / "leakage.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"leakage\.json is not a leakage file"):
        read_leakage([path])


def test_level_sets_that_are_not_text_are_refused_by_name(tmp_path):
    path = tmp_path / "leakage.json"
    names = ("game", "mode", "engine", "version", "compared", "later")
    counts = ("first_screen", "first_frame", "distinct_train", "distinct_test")
    game = {**dict.fromkeys(names, ""), **dict.fromkeys(counts, 0), "pairs": [], "train": 5, "test": 6}
    path.write_text(json.dumps({"format": "gapfloor-leakage/1", "games": [game]}))
    with pytest.raises(UsageError, match=r"leakage\.json is not a leakage file"):
        read_leakage([path])
