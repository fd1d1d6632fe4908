"""Models that the real libraries trained for a moment, with the environments they were trained in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import minigrid  # noqa: F401 (registers its environments)
import numpy as np
import pytest
import torch
from minigrid.wrappers import ImgObsWrapper, RGBImgPartialObsWrapper
from sb3_contrib import RecurrentPPO
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, VecFrameStack, VecNormalize

from policies.formats.playing import save_numbers


class Raw(VecEnvWrapper):
    """Keeps what the environment itself gave: that is what an engine hands to a policy."""

    def reset(self) -> Any:
        self.seen, self.first = self.venv.reset(), np.ones(self.num_envs, dtype=bool)
        return _copy(self.seen)

    def step_wait(self) -> Any:
        self.seen, rewards, self.first, infos = self.venv.step_wait()
        return _copy(self.seen), rewards, self.first, infos


def _copy(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {key: each.copy() for key, each in observations.items()}
    return observations.copy()


class WithoutMission(gymnasium.ObservationWrapper):
    """MiniGrid's dict without the text."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Dict(
            {key: space for key, space in env.observation_space.items() if key != "mission"}
        )

    def observation(self, observation: Any) -> Any:
        return {key: each for key, each in observation.items() if key != "mission"}


@dataclass
class Saved:
    """A trained model, its file, and the environments as the model sees them and as they are."""

    model: Any
    path: Path
    environments: VecEnv
    raw: Raw


def grid() -> Any:
    return ImgObsWrapper(gymnasium.make("MiniGrid-Empty-Random-5x5-v0", max_steps=9))


def pixels() -> Any:
    return ImgObsWrapper(RGBImgPartialObsWrapper(gymnasium.make("MiniGrid-Empty-Random-5x5-v0", max_steps=9)))


def entries() -> Any:
    inner = RGBImgPartialObsWrapper(gymnasium.make("MiniGrid-Empty-Random-5x5-v0", max_steps=9))
    return WithoutMission(inner)


def cart() -> Any:
    return gymnasium.make("CartPole-v1")


def _train(
    folder: Path, name: str, algorithm: Any, policy: str, make: Callable[[], Any],
    wrap: Callable[[Any], Any] = lambda raw: raw, **settings: Any,
) -> Saved:  # fmt: skip
    raw = Raw(DummyVecEnv([make] * 3))
    environments = wrap(raw)
    model = algorithm(policy, environments, seed=3, device="cpu", **settings)
    model.learn(96)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        # A moment's training leaves logits all but uniform: observations must matter for a test to mean anything.
        for weights in model.policy.parameters():
            weights.add_(0.3 * torch.randn(weights.shape, generator=generator))
    path = folder / f"{name}.zip"
    model.save(path)
    return Saved(model, path, model.get_env(), raw)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


PPO_STEPS = {"n_steps": 32, "batch_size": 32, "n_epochs": 2}


@pytest.fixture(scope="session")
def ppo(folder: Path) -> Saved:
    return _train(folder, "ppo", PPO, "MlpPolicy", grid, **PPO_STEPS)


@pytest.fixture(scope="session")
def a2c(folder: Path) -> Saved:
    kwargs = {"activation_fn": torch.nn.ReLU, "net_arch": {"pi": [16], "vf": [8, 8]}}
    return _train(folder, "a2c", A2C, "MlpPolicy", cart, policy_kwargs=kwargs)


@pytest.fixture(scope="session")
def dqn(folder: Path) -> Saved:
    return _train(
        folder, "dqn", DQN, "MlpPolicy", cart, buffer_size=200, learning_starts=16, exploration_final_eps=0.1
    )


@pytest.fixture(scope="session")
def normalised(folder: Path) -> Saved:
    saved = _train(
        folder, "normalised", PPO, "MlpPolicy", cart, lambda raw: VecNormalize(raw, clip_obs=2.0), **PPO_STEPS
    )
    save_numbers(saved.environments, folder / "stats.npz")
    saved.environments.training = False
    return saved


@pytest.fixture(scope="session")
def stacked(folder: Path) -> Saved:
    return _train(folder, "stacked", PPO, "CnnPolicy", pixels, lambda raw: VecFrameStack(raw, 3), **PPO_STEPS)


@pytest.fixture(scope="session")
def stacked_vectors(folder: Path) -> Saved:
    saved = _train(
        folder,
        "vectors",
        PPO,
        "MlpPolicy",
        cart,
        lambda raw: VecFrameStack(VecNormalize(raw), 4),
        **PPO_STEPS,
    )
    save_numbers(saved.environments.venv, folder / "before.npz")
    saved.environments.venv.training = False
    return saved


@pytest.fixture(scope="session")
def multi(folder: Path) -> Saved:
    kwargs = {"features_extractor_kwargs": {"cnn_output_dim": 16}}
    return _train(folder, "multi", PPO, "MultiInputPolicy", entries, policy_kwargs=kwargs, **PPO_STEPS)


@pytest.fixture(scope="session")
def recurrent(folder: Path) -> Saved:
    kwargs = {"lstm_hidden_size": 32, "n_lstm_layers": 2}
    return _train(folder, "recurrent", RecurrentPPO, "MlpLstmPolicy", grid, policy_kwargs=kwargs, **PPO_STEPS)


@pytest.fixture(scope="session")
def recurrent_pixels(folder: Path) -> Saved:
    kwargs = {"lstm_hidden_size": 16, "shared_lstm": True, "enable_critic_lstm": False}
    return _train(
        folder, "recurrent-cnn", RecurrentPPO, "CnnLstmPolicy", pixels, policy_kwargs=kwargs, **PPO_STEPS
    )
