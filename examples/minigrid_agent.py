"""A PPO agent of Stable-Baselines3 on levels 0 to 199 of a MiniGrid task."""

import os
import sys

import gymnasium
import minigrid  # noqa: F401 (its import registers the tasks)
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

TASK = "MiniGrid-MultiRoom-N2-S4-v0"
STEPS = int(os.environ.get("TUTORIAL_STEPS", "25000"))


class Flat(gymnasium.ObservationWrapper):
    """The 7 x 7 fields in front of the agent, as one row of small numbers."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(0, 2, (147,), np.float32)

    def observation(self, observation):
        return observation["image"].reshape(-1).astype(np.float32) / 5


class TrainingLevels(gymnasium.Wrapper):
    """Every episode starts on one of the levels 0 to 199."""

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.levels = np.random.default_rng(seed)
        return self.env.reset(seed=int(self.levels.integers(200)))


def train(seed):
    """Train one run and save it as ppo-SEED.zip."""
    envs = make_vec_env(lambda: TrainingLevels(Flat(gymnasium.make(TASK))), n_envs=8, seed=seed)
    model = PPO("MlpPolicy", envs, n_steps=128, ent_coef=0.01, learning_rate=1e-3, seed=seed, device="cpu")
    model.learn(STEPS).save(f"ppo-{seed}.zip")


if __name__ == "__main__":
    for seed in map(int, sys.argv[1:]):
        train(seed)
