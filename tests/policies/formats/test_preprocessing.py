"""What stands before the network: statistics from files of numbers, and both ways of stacking."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import FrameStackObservation
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.preprocessing import (
    FrameStack,
    Preparation,
    PreparedStatefulPolicy,
    read_statistics,
)
from gapfloor.policies.load import PolicySource
from policies.formats.playing import assert_same_play, save_numbers


@pytest.mark.parametrize("name", ["stats.npz", "stats.pkl"])
def test_saved_numbers_are_those_of_the_wrapper(name: str, normalised: Any, folder: Path) -> None:
    normalised.environments.save(folder / "stats.pkl")
    line = f"sb3:{normalised.path},vecnormalize={folder / name}"
    policy: Any = PolicySource(line, backend="torch").load()
    assert_same_play(normalised, policy, steps=60)
    assert policy.fingerprint == PolicySource("memory", given=normalised.model).load().fingerprint  # type: ignore[union-attr]


def test_statistics_are_part_of_the_hash(normalised: Any, tmp_path: Path) -> None:
    hashes = set()
    for change in ({}, {"clip": 3.0}, {"epsilon": 1e-6}):
        save_numbers(normalised.environments, tmp_path / "stats.npz", **change)
        hashes.add(
            PolicySource(f"sb3:{normalised.path},vecnormalize={tmp_path / 'stats.npz'}").load().fingerprint
        )
    hashes.add(PolicySource(f"sb3:{normalised.path}").load().fingerprint)
    assert len(hashes) == 4


def test_json_statistics_are_read(tmp_path: Path) -> None:
    path = tmp_path / "stats.json"
    path.write_text(json.dumps({"mean": [1.0, 2.0], "var": [4.0, 9.0], "epsilon": 0.0, "clip": 1.5}))
    seen = np.array([[3.0, 2.0], [9.0, -1.0]])
    assert read_statistics(path).normalise(seen).tolist() == [[1.0, 0.0], [1.5, -1.0]]


@pytest.mark.parametrize(
    "numbers", [{"mean": [1.0]}, {"mean": [1.0], "var": [1.0, 2.0], "epsilon": 0, "clip": 1}, [1]]
)
def test_files_without_statistics_are_refused(tmp_path: Path, numbers: Any) -> None:
    path = tmp_path / "stats.json"
    path.write_text(json.dumps(numbers))
    with pytest.raises(PolicyError, match="does not hold statistics"):
        read_statistics(path)
    with pytest.raises(PolicyError, match="There is no file"):
        read_statistics(tmp_path / "none.npz")


def test_only_the_entries_that_were_normalised_are(tmp_path: Path) -> None:
    space = gymnasium.spaces.Dict(
        {
            "a": gymnasium.spaces.Box(-9, 9, (2,), np.float32),
            "b": gymnasium.spaces.Box(-9, 9, (3,), np.float32),
        }
    )

    class Both(gymnasium.Env):
        observation_space, action_space = space, gymnasium.spaces.Discrete(2)

        def reset(self, **_: Any) -> Any:
            return space.sample(), {}

        def step(self, action: Any) -> Any:
            return space.sample(), 0.0, False, False, {}

    theirs = VecNormalize(DummyVecEnv([Both]), norm_obs_keys=["b"])
    theirs.reset()
    for _ in range(5):
        theirs.step(np.zeros(1))
    save_numbers(theirs, tmp_path / "stats.npz")
    ours = read_statistics(tmp_path / "stats.npz")
    seen = {key: np.stack([space.sample()[key] for _ in range(4)]) for key in ("a", "b")}
    expected = theirs.normalize_obs(seen)
    for key, each in ours.normalise(seen).items():
        assert np.array_equal(each, expected[key])
    with pytest.raises(PolicyError, match=r"statistics are those of observations b \(3,\), not a \(2,\)"):
        ours.normalise({"a": seen["a"]})


class Counting(gymnasium.Env):
    """Observations that count, episodes that end at different times; as image, turned image or vector."""

    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, shape: tuple[int, ...], length: int) -> None:
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self._length, self._episode = length, 0

    def reset(self, **_: Any) -> Any:
        self._step = 0
        self._episode += 1
        return self._see(), {}

    def step(self, action: Any) -> Any:
        self._step += 1
        return self._see(), 0.0, self._step >= self._length, False, {}

    def _see(self) -> np.ndarray:
        count = np.arange(np.prod(self.observation_space.shape)).reshape(self.observation_space.shape)
        return (count + 20 * self._step + 70 * self._episode).astype(np.uint8)


@pytest.mark.parametrize("shape", [(4, 5, 2), (2, 5, 4), (3,), (6, 6)])
def test_joined_frames_are_vecframestacks(shape: tuple[int, ...]) -> None:
    raw = DummyVecEnv([lambda: Counting(shape, 3), lambda: Counting(shape, 5)])
    theirs = VecFrameStack(raw, 3)
    ours = FrameStack("framestack", 3)
    expected = theirs.reset()
    first, stack = np.ones(2, dtype=bool), None
    for _ in range(12):
        stack = ours.push(stack, raw._obs_from_buf(), first)
        assert np.array_equal(stack, expected)
        expected, _, first, _ = theirs.step(np.zeros(2, dtype=int))


@pytest.mark.parametrize("shape", [(4, 5, 2), (3,)])
def test_separate_frames_are_gymnasiums(shape: tuple[int, ...]) -> None:
    environment = Counting(shape, 4)
    theirs = FrameStackObservation(environment, 3)
    ours, stack = FrameStack("gymstack", 3), None
    for _ in range(2):
        expected, _ = theirs.reset()
        first = np.ones(1, dtype=bool)
        for _ in range(4):
            stack = ours.push(stack, environment._see()[None], first)
            assert np.array_equal(stack[0], expected)
            expected, *_ = theirs.step(0)
            first = ~np.ones(1, dtype=bool)


def test_repeated_frames_are_joined_and_begin_with_the_first_frame() -> None:
    stack, ours = None, FrameStack("repeatstack", 3)
    for step, first in enumerate([True, False, True]):
        stack = ours.push(stack, np.full((1, 2, 2, 1), step), np.array([first]))
        assert stack.shape == (1, 2, 2, 3)
        assert stack[0, 0, 0].tolist() == {0: [0, 0, 0], 1: [0, 0, 1], 2: [2, 2, 2]}[step]


def test_numbers_and_texts_given_with_the_frames_are_not_stacked() -> None:
    seen = {
        "image": np.ones((2, 3, 3, 1), np.uint8),
        "mission": np.array(["go", "get"]),
        "direction": np.arange(2),
    }
    stack = None
    for _ in range(2):
        stack = FrameStack("framestack", 2).push(stack, seen, np.zeros(2, dtype=bool))
    assert stack["image"].shape == (2, 3, 3, 2)
    assert stack["mission"].tolist() == ["go", "get"]
    assert stack["direction"].tolist() == [0, 1]


def test_the_policy_keeps_no_stack_of_its_own() -> None:
    class Sums:
        name, header, backend, device, fingerprint = "sums", {}, "numpy", "cpu", "x"

        def logits(self, observations: np.ndarray) -> np.ndarray:
            return observations.astype(np.float32)

    policy = PreparedStatefulPolicy(Sums(), Preparation(stack=FrameStack("framestack", 2)))
    one, other = policy.initial_state(1), policy.initial_state(1)
    first = np.ones(1, dtype=bool)
    _, one = policy.logits(np.array([[1.0]]), one, first)
    _, other = policy.logits(np.array([[5.0]]), other, first)
    assert policy.logits(np.array([[2.0]]), one, ~first)[0].tolist() == [[1.0, 2.0]]
    assert policy.logits(np.array([[6.0]]), other, ~first)[0].tolist() == [[5.0, 6.0]]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04cut", b"no archive"])
def test_a_damaged_npz_is_refused_in_a_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "stats.npz"
    path.write_bytes(content)
    with pytest.raises(PolicyError, match="does not hold statistics"):
        read_statistics(path)


def test_one_array_in_an_npzs_place_is_refused_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "stats.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(PolicyError, match=r"is not a \.npz archive"):
        read_statistics(path)
