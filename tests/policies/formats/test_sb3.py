"""Stable-Baselines3 and sb3-contrib models: their own logits, from a file that is not unpickled."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from gapfloor.errors import GapfloorError, PolicyError, UsageError
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import Policy, StatefulPolicy
from policies.formats.bombs import rewrite
from policies.formats.playing import assert_same_play


def load(path: Path, options: str = "") -> Any:
    return PolicySource(f"sb3:{path}{options}", backend="torch").load()


def test_ppo_on_images_gives_the_librarys_logits(ppo: Any) -> None:
    policy = load(ppo.path)
    assert isinstance(policy, Policy)
    assert not isinstance(policy, StatefulPolicy)
    assert_same_play(ppo, policy)


def test_a2c_with_its_own_layers_and_activation_gives_the_librarys_logits(a2c: Any) -> None:
    assert_same_play(a2c, load(a2c.path), steps=60)


def test_a_dict_of_observations_gives_the_librarys_logits(multi: Any) -> None:
    assert_same_play(multi, load(multi.path))


def test_entries_that_the_policy_was_not_shown_are_left_aside(multi: Any) -> None:
    policy = load(multi.path)
    multi.environments.reset()
    seen = multi.raw.seen
    assert np.array_equal(policy.logits(seen | {"mission": np.zeros((3, 5))}), policy.logits(seen))


def test_statistics_that_vecnormalize_took_are_applied(normalised: Any, folder: Path) -> None:
    policy = load(normalised.path, f",vecnormalize={folder / 'stats.npz'}")
    assert_same_play(normalised, policy, steps=60)


def test_a_frame_stack_of_images_starts_from_zeros_in_every_episode(stacked: Any) -> None:
    policy = load(stacked.path, ",framestack=3")
    assert isinstance(policy, StatefulPolicy)
    assert_same_play(stacked, policy)


def test_normalisation_before_stacking_is_seen_by_its_shape(stacked_vectors: Any, folder: Path) -> None:
    policy = load(stacked_vectors.path, f",framestack=4,vecnormalize={folder / 'before.npz'}")
    assert_same_play(stacked_vectors, policy, steps=60)


def test_recurrent_ppo_keeps_its_state_over_whole_episodes(recurrent: Any) -> None:
    policy = load(recurrent.path)
    assert isinstance(policy, StatefulPolicy)
    assert_same_play(recurrent, policy, steps=40)


def test_recurrent_ppo_on_pixels_with_a_shared_lstm(recurrent_pixels: Any) -> None:
    assert_same_play(recurrent_pixels, load(recurrent_pixels.path))


def test_the_state_of_a_recurrent_policy_matters(recurrent: Any) -> None:
    policy = load(recurrent.path)
    recurrent.environments.reset()
    first = np.ones(3, dtype=bool)
    fresh, state = policy.logits(recurrent.raw.seen, policy.initial_state(3), first)
    later, _ = policy.logits(recurrent.raw.seen, state, ~first)
    again, _ = policy.logits(recurrent.raw.seen, state, first)
    assert not np.array_equal(fresh, later)
    assert np.array_equal(fresh, again)


def test_a_dqn_is_the_epsilon_greedy_policy_that_it_plays(dqn: Any) -> None:
    policy = load(dqn.path)
    dqn.environments.reset()
    seen = np.random.default_rng(0).normal(0, 3, (64, 4)).astype(np.float32)
    logits = policy.logits(seen)
    best, _ = dqn.model.predict(seen, deterministic=True)
    assert np.array_equal(logits.argmax(axis=1), best)
    assert len(set(best)) == 2
    rate = dqn.model.exploration_rate
    assert 0 < rate < 1
    probabilities = np.exp(logits)
    assert probabilities.sum(axis=1) == pytest.approx(np.ones(64))
    assert probabilities.max(axis=1) == pytest.approx(np.full(64, 1 - rate + rate / 2))


@pytest.mark.parametrize("name", ["ppo", "a2c", "multi", "recurrent", "dqn"])
def test_rebuilt_and_in_memory_are_the_same_policy(name: str, request: pytest.FixtureRequest) -> None:
    saved = request.getfixturevalue(name)
    assert load(saved.path).fingerprint == PolicySource(name, given=saved.model).load().fingerprint  # type: ignore[union-attr]


def test_what_the_file_says_of_its_run_becomes_the_labels(ppo: Any) -> None:
    policy = load(ppo.path)
    assert policy.header == {"encoder": "sb3-mlp", "budget": "96", "seed": 3}
    assert (policy.name, policy.backend, policy.device) == ("ppo", "torch", "cpu")


@pytest.mark.parametrize("name", ["ppo", "stacked", "recurrent"])
def test_a_rows_logits_do_not_depend_on_its_companions(name: str, request: pytest.FixtureRequest) -> None:
    saved = request.getfixturevalue(name)
    policy = load(saved.path)
    shape = (16, *saved.model.observation_space.shape)
    frames = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    alone = np.zeros_like(frames)
    alone[5] = frames[5]
    first = np.ones(16, dtype=bool)

    def logits(observations: np.ndarray) -> np.ndarray:
        if isinstance(policy, StatefulPolicy):
            return policy.logits(observations, policy.initial_state(16), first)[0]
        return policy.logits(observations)

    assert np.array_equal(logits(frames)[5], logits(alone)[5])


def test_the_hash_changes_with_weights_activation_and_nothing_else(
    ppo: Any, folder: Path, tmp_path: Path
) -> None:
    before = load(ppo.path).fingerprint
    copy = tmp_path / "copy.zip"
    copy.write_bytes(ppo.path.read_bytes())
    assert load(copy).fingerprint == before
    relu = tmp_path / "relu.zip"
    model = PPO("MlpPolicy", ppo.environments, device="cpu", policy_kwargs={"activation_fn": torch.nn.ReLU})
    model.policy.load_state_dict(ppo.model.policy.state_dict())
    model.save(relu)
    assert load(relu).fingerprint != before
    with torch.no_grad():
        model.policy.action_net.bias[0] += 1e-6
    model.save(copy)
    assert load(copy).fingerprint not in (before, load(relu).fingerprint)


class OwnExtractor(BaseFeaturesExtractor):
    """A user's own part, which only the pickle names."""

    def __init__(self, space: Any) -> None:
        super().__init__(space, 4)
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        return torch.sin(self.layer(observations))


@pytest.fixture(scope="module")
def custom(folder: Path) -> Path:
    path = folder / "custom.zip"
    PPO(
        "MlpPolicy", "CartPole-v1", device="cpu", policy_kwargs={"features_extractor_class": OwnExtractor}
    ).save(path)
    return path


def test_a_users_own_extractor_is_named_by_the_user(custom: Path) -> None:
    with pytest.raises(
        PolicyError, match=r"features_extractor_class=.*OwnExtractor.*add ,extractor=MODULE:CLASS"
    ):
        load(custom)
    named = load(custom, f",extractor={OwnExtractor.__module__}:OwnExtractor")
    in_memory: Any = PolicySource("memory", given=PPO.load(custom, device="cpu")).load()
    assert named.fingerprint == in_memory.fingerprint
    assert named.logits(np.zeros((2, 4), dtype=np.float32)).shape == (2, 2)


def refusal(name: str) -> str:
    with pytest.raises(GapfloorError) as stopped:
        PolicySource(name).load()
    assert stopped.value.exit_code == 2
    return str(stopped.value)


def test_files_that_are_not_models_are_refused(tmp_path: Path, ppo: Any) -> None:
    text = tmp_path / "model.zip"
    assert "There is no file" in refusal(f"sb3:{text}")
    text.write_text("not a zip")
    assert "is not a zip that Stable-Baselines3" in refusal(f"sb3:{text}")
    with zipfile.ZipFile(text, "w") as archive:
        archive.writestr("other", "")
    assert "is not a zip that Stable-Baselines3" in refusal(f"sb3:{text}")
    assert "is a folder" in refusal(f"sb3:{tmp_path}")


def test_observations_of_another_shape_are_refused_with_both(stacked: Any, multi: Any) -> None:
    with pytest.raises(PolicyError, match=r"shape \(56, 56, 9\), not \(56, 56, 3\): .*framestack=4"):
        load(stacked.path).logits(np.zeros((2, 56, 56, 3), dtype=np.uint8))
    with pytest.raises(PolicyError, match="a dict of direction, image, not one array"):
        load(multi.path).logits(np.zeros((2, 56, 56, 3), dtype=np.uint8))
    with pytest.raises(PolicyError, match="add ,key=NAME to choose one"):
        load(stacked.path).logits({"image": np.zeros((2, 56, 56, 3), dtype=np.uint8)})


def test_one_entry_of_a_dict_is_chosen_by_its_key(ppo: Any) -> None:
    ppo.environments.reset()
    chosen = load(ppo.path, ",key=image")
    seen = {"image": ppo.raw.seen, "direction": np.zeros(3, dtype=np.int64)}
    assert np.array_equal(chosen.logits(seen), load(ppo.path).logits(ppo.raw.seen))
    assert chosen.fingerprint != load(ppo.path).fingerprint
    with pytest.raises(PolicyError, match="no entry 'image': they are one array"):
        chosen.logits(ppo.raw.seen)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (",framestck=4", "Unknown option of sb3: 'framestck': did you mean framestack"),
        (",framestack=one", "is not a whole number of at least 2"),
        (",framestack=4,framestack=4", "given twice"),
        (",framestack=4,gymstack=4", "are both given"),
        (",agent=ppo:Agent", "Unknown option of sb3: 'agent'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(ppo: Any, options: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(ppo.path, options)


def test_a_device_that_an_old_file_names_is_not_looked_at(folder: Path) -> None:
    path = folder / "plain.zip"
    PPO("MlpPolicy", "CartPole-v1", device="cpu").save(path)
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("data")) | {"policy_kwargs": {"device": "cpu"}}
    old = rewrite(path, folder / "old.zip", data=json.dumps(data).encode())
    assert load(old).fingerprint == load(path).fingerprint


def test_spaces_that_are_described_in_text_are_read_back(folder: Path) -> None:
    spaces = gymnasium.spaces

    class Many(gymnasium.Env):
        observation_space = spaces.Dict(
            {
                "bounded": spaces.Box(np.array([-1, -np.inf], np.float32), np.array([1, 2], np.float32)),
                "choice": spaces.Discrete(4),
                "choices": spaces.MultiDiscrete([2, 3]),
                "flags": spaces.MultiBinary(3),
                "grid": spaces.Box(0, 10, (2, 3), np.float32),
            }
        )
        action_space = spaces.Discrete(3)

    path = folder / "many.zip"
    model = PPO("MultiInputPolicy", Many(), device="cpu")
    model.save(path)
    policy = load(path)
    assert policy.fingerprint == PolicySource("memory", given=model).load().fingerprint
    samples = [Many.observation_space.sample() for _ in range(4)]
    batch = {key: np.stack([each[key] for each in samples]) for key in samples[0]}
    with torch.no_grad():
        theirs = model.policy.get_distribution(model.policy.obs_to_tensor(batch)[0]).distribution.logits
    assert np.array_equal(policy.logits(batch), theirs.numpy())
