"""Environments of two steps and a network, so that a damaged policy which still loads is played within milliseconds."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces

SHAPE, N_ACTIONS = (16, 16, 3), 15


class Vectors(gymnasium.Env):
    """Four numbers, three actions; every episode has two steps and its level's number as return."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(3)
        self.observation_space = spaces.Box(-1, 1, (4,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.level, self.steps = int(self.np_random.integers(5)), 0
        return self.observation_space.low * 0 + self.level / 5, {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        reward = float(int(action) == self.level % 3)
        return self.observation_space.low * 0 + self.level / 5, reward, self.steps == 2, False, {}


class Pictures(Vectors):
    """Pictures and the actions of ProcGen, for gapfloor's own checkpoints."""

    def __init__(self) -> None:
        self.action_space = spaces.Discrete(N_ACTIONS)
        self.observation_space = spaces.Box(0, 255, SHAPE, np.uint8)


class Agent(torch.nn.Module):
    """An agent with the interface of CleanRL's."""

    def __init__(self, envs: Any) -> None:
        super().__init__()
        self.critic = torch.nn.Linear(4, 1)
        self.actor = torch.nn.Linear(4, 3)

    def get_action_and_value(self, x: torch.Tensor, action: Any = None) -> Any:
        return action, self.actor(x), None, self.critic(x)
