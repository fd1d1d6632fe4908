"""The public functions behind calibrate, replay and levels."""

import pytest

import gapfloor
from gapfloor.api.calibrate import calibrate
from gapfloor.api.levels import levels as check_levels
from gapfloor.api.replay import replay
from gapfloor.errors import UsageError


def test_every_public_name_is_a_function_that_is_loaded_on_first_use():
    for name in set(gapfloor.__all__) - {"__version__"}:
        assert callable(getattr(gapfloor, name))


def test_calibrate_returns_what_it_keeps_in_the_store(tmp_path):
    heard = []
    (game,) = calibrate("fruitbot", store=tmp_path, states=8, workers=1, progress=heard.append)
    assert heard == [f"fruitbot: {game.k} classes"]
    assert game.play == "random"
    assert game.to_json()["n_states"] == 8
    assert (tmp_path / "classes" / "fruitbot-easy.json").is_file()


def test_replay_plays_one_level_under_the_rule_and_the_floor(tmp_path):
    gapfloor.evaluate(
        "small_policies:linear", game="starpilot", rules="greedy", store=tmp_path, design="census",
        train="none", test="1000:1002", workers=1,
    )  # fmt: skip
    replays = replay(tmp_path, level=1001, policies=["small_policies:linear"])
    assert [episode.level_seed for episode in replays.episodes] == [1001, 1001]
    assert all(path.is_file() for path in replays.written)


def test_levels_without_a_twin_do_not_leak():
    found = check_levels("bigfish", train="0:2", test="1000:1002")
    assert found.of("bigfish", "easy").leaked == ()


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="is a file, not a folder"):
        check_levels("bigfish", store=tmp_path / "file")


def test_one_draw_and_a_range_of_levels_mean_what_they_say():
    plain = gapfloor.floor("maze", train="0:3", test="none", draws=(1,), episodes=16)
    typed = gapfloor.floor("maze", train=range(3), test="none", draws=1, episodes=16)
    assert typed == plain


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"train": 200}, "train=200 is not a level set"),
        ({"train": range(0, 9, 2)}, "leaves levels out"),
        ({"draws": "one"}, "does not name draws"),
    ],
)
def test_an_argument_of_another_type_is_named(settings, words):
    with pytest.raises(UsageError, match=words):
        gapfloor.floor("maze", **settings)
