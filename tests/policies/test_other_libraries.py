"""Agents of RLlib and of TD3 act as they do in their own libraries, without a change to them."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import TD3

import gapfloor
from gapfloor.policies.acting import acting_policy
from gapfloor.records.store import Store

SMALL: dict[str, Any] = {
    "draws": 0, "train": "0:8", "test": "100:108", "episodes": 8, "slots": 2, "progress": False, "workers": 1,
}  # fmt: skip


def episodes(store: Path, rule: str) -> list[tuple[int, float]]:
    """Level seed and return of the episodes that a rule played."""
    rows = Store(store).episodes().to_pylist()
    return sorted((row["level_seed"], row["episode_return"]) for row in rows if row["rule"] == rule)


def played_by_hand(game: str, act: Any, seeds: list[int]) -> list[tuple[int, float]]:
    """The same from a plain loop over the environment."""
    found = []
    for seed in seeds:
        env = gymnasium.make(game)
        observation, _ = env.reset(seed=seed)
        total, done = 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(act(observation))
            total, done = total + float(reward), terminated or truncated
        found.append((seed, total))
    return sorted(found)


class AsItsAuthorsWriteIt:
    """The class of sfujim/TD3: networks as attributes, and `select_action` of one state."""

    def __init__(self, model: TD3) -> None:
        self.actor, self.critic, self.max_action, self.total_it = model.actor, model.critic, 2.0, 0

    def select_action(self, state: np.ndarray) -> np.ndarray:
        state = torch.FloatTensor(state.reshape(1, -1))
        return self.max_action * self.actor(state).cpu().data.numpy().flatten()


@pytest.fixture(scope="module")
def td3() -> TD3:
    model = TD3(
        "MlpPolicy", "Pendulum-v1", seed=1, device="cpu", buffer_size=64, policy_kwargs={"net_arch": [16]}
    )
    with torch.no_grad():
        model.actor.mu[-2].weight *= 30  # untrained networks hardly push
    return model


def test_td3_plays_what_a_plain_loop_plays_in_three_forms(td3: TD3, tmp_path: Path) -> None:
    predict = functools.partial(td3.predict, deterministic=True)
    forms = {"predict": predict, "authors": AsItsAuthorsWriteIt(td3)}
    for name, policy in forms.items():
        policy.is_deterministic = True
        gapfloor.evaluate(policy, store=tmp_path / name, game="gym:Pendulum-v1", rules="own", **SMALL)
    gapfloor.evaluate(td3, store=tmp_path / "network", game="gym:Pendulum-v1", rules="greedy", **SMALL)
    own = episodes(tmp_path / "predict", "own")
    expected = played_by_hand(
        "Pendulum-v1", lambda observation: predict(observation)[0], [seed for seed, _ in own]
    )
    for found in (own, episodes(tmp_path / "authors", "own"), episodes(tmp_path / "network", "greedy")):
        assert [seed for seed, _ in found] == [seed for seed, _ in expected]
        assert [total for _, total in found] == pytest.approx([total for _, total in expected], rel=1e-3)
    assert own != episodes(tmp_path / "predict", "uniform")


def test_two_td3_agents_are_two_policies(td3: TD3) -> None:
    other = copy.deepcopy(td3)
    with torch.no_grad():
        other.actor.mu[0].weight += 1
    hashes = [
        acting_policy(AsItsAuthorsWriteIt(model), name="td3").fingerprint
        for model in (td3, copy.deepcopy(td3), other)
    ]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.fixture(scope="module")
def rllib() -> Iterator[Any]:
    """An untrained PPO of RLlib in this process, by its old interface, which has `compute_single_action`."""
    ray = pytest.importorskip("ray")
    ppo = pytest.importorskip(
        "ray.rllib.algorithms.ppo", exc_type=ImportError,
        reason='RLlib needs more than Ray: pip install "ray[rllib]"',
    )  # fmt: skip
    ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    config = ppo.PPOConfig().api_stack(
        enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False
    )
    config = config.environment("CartPole-v1").framework("torch").env_runners(num_env_runners=0)
    algorithm = config.debugging(seed=0).build_algo()
    yield algorithm
    algorithm.stop()
    ray.shutdown()


def test_an_rllib_algorithm_is_played_as_it_acts(rllib: Any, tmp_path: Path) -> None:
    act = functools.partial(rllib.compute_single_action, explore=False)
    act.is_deterministic = True
    gapfloor.evaluate(act, store=tmp_path, game="gym:CartPole-v1", rules="own", **SMALL)
    found = episodes(tmp_path, "own")
    assert found == played_by_hand("CartPole-v1", act, [seed for seed, _ in found])
    # The algorithm itself explores, and its `reset(config)` has nothing to do with episodes.
    summary = gapfloor.evaluate(
        rllib, store=tmp_path / "itself", game="gym:CartPole-v1", rules="own", **SMALL
    )
    assert "own" in str(summary)
    assert len(episodes(tmp_path / "itself", "own")) == 16


def test_two_rllib_algorithms_are_two_policies(rllib: Any) -> None:
    policy = rllib.get_policy()
    before = acting_policy(rllib, name="rllib").fingerprint
    weights = {name: value.copy() for name, value in policy.get_weights().items()}
    policy.set_weights({name: value + 1 for name, value in weights.items()})
    changed = acting_policy(rllib, name="rllib").fingerprint
    policy.set_weights(weights)
    assert before == acting_policy(rllib, name="rllib").fingerprint != changed
