"""Policies that only act: a planner, a script, a Q-table and a text agent; `evaluate_acting.py` measures all of them.

    cd examples
    gapfloor evaluate acting:acting_policies:RandomShooting --game gym:CartPole-v1 --rules own

A policy of this kind returns actions and has no distribution, so it has one rule, `own`. Give it `seed(n)`, or keep its
generator as an attribute, and its episodes can be repeated.
"""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np


class RandomShooting:
    """Plans CartPole: tries random sequences of pushes in a copy of its equations, and takes the best first push."""

    def __init__(self, n_plans: int = 16, horizon: int = 12) -> None:
        self.n_plans, self.horizon = n_plans, horizon
        self.rng = np.random.default_rng()  # a new one for each episode

    def act(self, observation: np.ndarray) -> int:
        plans = self.rng.integers(0, 2, (self.n_plans, self.horizon))
        return int(plans[np.argmax([self._score(observation, plan) for plan in plans])][0])

    def _score(self, observation: np.ndarray, plan: np.ndarray) -> float:
        x, speed, angle, turning = map(float, observation)
        score = 0.0
        for push in plan:
            force = 10.0 if push else -10.0
            pull = (force + 0.05 * turning**2 * math.sin(angle)) / 1.1
            turn = (9.8 * math.sin(angle) - math.cos(angle) * pull) / (
                0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
            )
            x, speed = x + 0.02 * speed, speed + 0.02 * (pull - 0.05 * turn * math.cos(angle) / 1.1)
            angle, turning = angle + 0.02 * turning, turning + 0.02 * turn
            score -= abs(angle) + 0.1 * abs(x)
        return score


def solve_minigrid(observation: dict[str, Any]) -> int:
    """Walks to the green goal of an empty room as far as it sees it: a script, written as a plain function."""
    seen = observation["image"][:, :, 0]  # a view of 7x7 from the agent at column 3 of the last row
    goals = np.argwhere(seen == 8)
    if len(goals) == 0:
        return 1 if seen[3, 5] == 2 else 2  # turn at a wall, else walk on
    column, row = goals[0]
    if row < 6 and seen[3, 5] != 2:
        return 2
    return 0 if column < 3 else 1


solve_minigrid.is_deterministic = True  # type: ignore[attr-defined]


class EpsilonGreedy:
    """A Q-table over a coarse view of CartPole, which explores as it did in training."""

    def __init__(self, epsilon: float = 0.1) -> None:
        self.epsilon = epsilon
        angles, speeds = np.meshgrid(np.arange(5) - 2, np.arange(5) - 2, indexing="ij")
        self.values = np.stack([-(angles + speeds), angles + speeds], axis=-1).astype(float)

    def seed(self, number: int) -> None:
        self.rng = np.random.default_rng(number)

    def select_action(self, observation: np.ndarray) -> int:
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(2))
        angle = int(np.clip(observation[2] / 0.05, -2, 2)) + 2
        speed = int(np.clip(observation[3] / 0.5, -2, 2)) + 2
        return int(np.argmax(self.values[angle, speed]))


class Corridor(gymnasium.Env):
    """A text environment: a lamp is somewhere along a corridor, and the level decides where."""

    observation_space = gymnasium.spaces.Text(60, charset=frozenset("abcdefghijklmnopqrstuvwxyz .TY"))
    action_space = gymnasium.spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._lamp, self._here, self._steps = int(self.np_random.integers(-3, 4)), 0, 0
        return self._text(), {}

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._steps += 1
        self._here += (-1, 0, 1)[action]
        found = action == 1 and self._here == self._lamp
        return self._text(), float(found), found, self._steps >= 8, {}

    def _text(self) -> str:
        side = (
            "here"
            if self._lamp == self._here
            else "to the left"
            if self._lamp < self._here
            else "to the right"
        )
        return f"You are in a corridor. The lamp is {side}."


class TextAgent:
    """Text in, text out: a language model stands behind `complete`, here a stub that sometimes does not listen."""

    temperature = 0.7  # recorded as the rule that the agent states
    words = ("go left", "take the lamp", "go right")

    def reset(self, seed: int) -> None:
        self.rng, self.history = np.random.default_rng(seed), []

    def act(self, observation: str) -> int:
        self.history.append(observation)
        return self.words.index(self.complete("\n".join(self.history)))

    def complete(self, prompt: str) -> str:
        if self.rng.random() < 0.2 * self.temperature:
            return str(self.rng.choice(self.words))
        last = prompt.splitlines()[-1]
        return self.words[0 if "left" in last else 2 if "right" in last else 1]
