"""Classes in a store and in the package."""

import dataclasses
import json

import pytest

from gapfloor.actions import Partition
from gapfloor.calibration.classes import (
    ActionClasses,
    CalibrationSettings,
    class_name,
    classes_path,
    load_classes,
    shipped_classes,
    write_classes,
)
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.procgen import GAMES
from gapfloor.errors import StoreError, UsageError
from gapfloor.levels.schedule import LevelSet

pytestmark = pytest.mark.fast

SPEC = EngineSpec("procgen", "0.10.7", "heist", "easy")


def some_classes(spec=SPEC):
    return ActionClasses(
        engine=spec,
        settings=CalibrationSettings(states=7, horizon=3, seed=2, levels=LevelSet(5, 9)),
        play="random",
        partition=Partition.from_classes([[0], [1, 2]]),
        action_names=("LEFT", "no-op", "A"),
        equal_states=((7, 0, 0), (0, 7, 7), (0, 7, 7)),
        mean_state_k=2.0,
    )


def test_what_is_written_is_read_back(tmp_path):
    classes = some_classes()
    path = write_classes(tmp_path, classes)
    assert path == tmp_path / "classes" / "heist-easy.json"
    assert ActionClasses.from_json(json.loads(path.read_text())) == classes
    assert load_classes(tmp_path, SPEC) == classes.partition


def test_the_content_tells_how_it_was_measured_and_nothing_of_time_or_place():
    content = some_classes().to_json()
    assert set(content) == {
        "format", "engine", "engine_version", "game", "mode", "options", "k", "classes", "class_names", "n_states",
        "mean_state_k", "play", "seed", "horizon", "levels", "spacing", "action_names", "equal_states",
    }  # fmt: skip
    assert some_classes().to_text() == some_classes().to_text()


def test_other_options_are_kept_apart(tmp_path):
    plain = dataclasses.replace(SPEC, options=(("use_backgrounds", False),))
    write_classes(tmp_path, some_classes())
    assert load_classes(tmp_path, plain) is None
    assert classes_path(tmp_path, plain).name.startswith("heist-easy-")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": "another"}', '{"format": "gapfloor action classes 1", "classes": [[0, 0]]}'],
)
def test_a_damaged_file_is_refused_and_named(tmp_path, text):
    path = write_classes(tmp_path, some_classes())
    path.write_text(text)
    with pytest.raises(StoreError, match=r"heist-easy\.json does not hold action classes"):
        load_classes(tmp_path, SPEC)


def test_a_setting_that_is_not_finite_is_refused_and_named(tmp_path):
    path = write_classes(tmp_path, some_classes())
    path.write_text(json.dumps({**json.loads(path.read_text()), "spacing": float("inf")}))
    with pytest.raises(StoreError, match=r"heist-easy\.json does not hold action classes"):
        load_classes(tmp_path, SPEC)


def test_classes_of_another_engine_version_are_refused(tmp_path):
    write_classes(tmp_path, some_classes())
    with pytest.raises(StoreError, match=r"measured with procgen 0\.10\.7 and procgen 9\.9 is in use"):
        load_classes(tmp_path, dataclasses.replace(SPEC, version="9.9"))


def test_all_games_are_shipped_in_easy_and_hard_with_provenance():
    for mode in ("easy", "hard"):
        for game in GAMES:
            shipped = shipped_classes(game, mode)
            assert (shipped.engine.game, shipped.engine.mode, shipped.play) == (game, mode, "random")
            assert shipped.settings == CalibrationSettings()
            assert shipped.engine.version
    assert shipped_classes("starpilot", "extreme") is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [(("LEFT+UP", "LEFT"), "LEFT"), (("UP", "no-op", "W"), "no-op"), (("D", "W"), "D")],
)
def test_a_class_is_called_by_its_plainest_action(names, expected):
    assert class_name(tuple(range(len(names))), names) == expected


@pytest.mark.parametrize("setting", ["states", "horizon", "spacing"])
def test_settings_below_one_are_refused(setting):
    with pytest.raises(UsageError, match="at least 1"):
        CalibrationSettings(**{setting: 0})
