"""Calibration of Gymnasium environments: dicts of arrays, states that are objects, states that are replayed."""

from __future__ import annotations

import numpy as np
import pytest

from gapfloor.api.evaluate import evaluate
from gapfloor.calibration.class_measurement import measure_classes
from gapfloor.calibration.classes import CalibrationSettings, read_classes, write_classes
from gapfloor.calibration.cloning import split
from gapfloor.engines.registry import make_spec
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.records.store import Store

FEW = CalibrationSettings(states=24, spacing=4)


def names_of(game, settings=FEW, **options):
    classes = measure_classes(make_spec(game, options=options), settings)
    return [{classes.action_names[action] for action in members} for members in classes.partition.classes]


def test_minigrids_actions_that_do_nothing_in_four_rooms_are_one_class():
    assert names_of("gym:MiniGrid-FourRooms-v0") == [
        {"left"}, {"right"}, {"forward"}, {"pickup", "drop", "toggle", "done (no-op)"},
    ]  # fmt: skip


def test_a_door_makes_toggle_an_action_of_its_own():
    settings = CalibrationSettings(states=80, spacing=6)
    assert {"toggle"} in names_of("gym:MiniGrid-MultiRoom-N2-S4-v0", settings)


def test_replayed_states_give_the_classes_of_copied_ones():
    copied = measure_classes(make_spec("gymnasium_envs:corridor"), FEW)
    replayed = measure_classes(make_spec("gymnasium_envs:rebuilding"), FEW)
    assert (copied.partition, copied.equal_states) == (replayed.partition, replayed.equal_states)
    assert copied.action_names == ("left", "no-op", "right")


def test_classes_of_an_environment_are_stored_with_its_options(tmp_path):
    spec = make_spec("gymnasium_envs:corridor", options={"slip": 0.0, "most": 9})
    measured = measure_classes(spec, FEW)
    path = write_classes(tmp_path, measured)
    assert path.name.startswith("gymnasium_envs_corridor-default-")
    assert read_classes(tmp_path, spec) == measured


def test_an_environment_that_cannot_be_cloned_is_refused_before_anything_is_played():
    with pytest.raises(UsageError, match="cannot clone the states of gymnasium_envs:uses_global"):
        measure_classes(make_spec("gymnasium_envs:uses_global"), FEW)


def test_the_probe_clones_states_of_an_environment(tmp_path):
    def policy(observations):
        return np.stack([observations[:, 0] / 10, observations[:, 1] * 0, observations[:, 1] / 10], axis=1)

    evaluate(
        policy, game="gymnasium_envs:corridor", rules="sampled,merged", train="none", draws=(0,), episodes=16,
        batch=4, probe=12, workers=1, store=tmp_path,
    )  # fmt: skip
    records = {cell.manifest.labels["rule"]: cell.manifest.record for cell in Store(tmp_path).cells()}
    assert set(records) == {"uniform", "sampled", "merged"}
    sampled = records["sampled"]
    assert sampled["probe_states"] == 12
    assert 0 <= sampled["merged_state"] <= sampled["merged_game"] <= sampled["entropy_probe"] <= np.log(3)


@pytest.mark.fast
def test_observations_in_a_dict_are_compared_in_all_their_parts():
    same = {"image": np.zeros((3, 2, 2), dtype=np.uint8), "words": np.array(["go", "go", "go"])}
    rewards, firsts = np.zeros(3), np.zeros(3, dtype=bool)
    assert split([0, 0, 0], same, rewards, firsts) == [0, 0, 0]
    other = {**same, "words": np.array(["go", "no", "go"])}
    assert split([0, 0, 0], other, rewards, firsts) == [0, 1, 0]


def test_outcomes_that_do_not_repeat_are_an_error(monkeypatch):
    from gapfloor.engines.gymnasium import engine

    monkeypatch.setattr(engine, "_replays", lambda recipe: True)
    with pytest.raises(CheckFailedError, match="gapfloor doctor"):
        measure_classes(make_spec("gymnasium_envs:uses_global"), FEW)
