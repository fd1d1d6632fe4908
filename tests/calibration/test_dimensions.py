"""Dimensions of real-valued actions that have no effect."""

from __future__ import annotations

import pytest

import command_line
import gapfloor
from gapfloor.calibration.classes import CalibrationSettings
from gapfloor.calibration.dimensions import measure_dimensions
from gapfloor.engines.registry import make_spec
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet

FEW = CalibrationSettings(levels=LevelSet(0, 20), states=12, spacing=3)


def test_the_dimension_that_earns_nothing_is_found() -> None:
    found = measure_dimensions(make_spec("action_space_envs:box"), FEW)
    assert found.states_with_effect == (12, 0)
    assert found.without_effect == (1,)


def test_every_dimension_of_a_real_task_matters() -> None:
    found = gapfloor.calibrate("gym:Pendulum-v1", states=8, spacing=3)
    assert found.games[0].states_with_effect == (8,)
    assert found.to_dict()["games"][0]["without_effect"] == []


def test_numbered_actions_are_refused() -> None:
    with pytest.raises(UsageError, match="not a Box"):
        measure_dimensions(make_spec("gym:CartPole-v1"), FEW)


def test_the_command_names_the_dimension_and_refuses_what_needs_classes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    few = ["--states", "6"]
    done = command_line.run(capsys, "calibrate", "action_space_envs:box", *few)
    assert done[0] == 0
    assert "0/6" in done[1]
    assert "no effect" in done[1]
    refused = command_line.run(capsys, "calibrate", "action_space_envs:box", *few, "--replace")
    assert refused[0] == 2
    assert "dimensions, not classes" in refused[2]
