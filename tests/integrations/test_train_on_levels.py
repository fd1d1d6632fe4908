"""Training on a level set with libraries that know nothing of levels."""

import gymnasium
import numpy as np
import pytest

import gapfloor
from gapfloor.errors import UsageError
from gapfloor.integrations.train_on_levels import TrainOnLevels


def levels_of(env, episodes, **first):
    return [env.reset(**(first if episode == 0 else {}))[1]["level_seed"] for episode in range(episodes)]


def test_every_level_of_the_set_is_played_and_no_other():
    env = TrainOnLevels(gymnasium.make("CartPole-v1"), "5:9")
    assert set(levels_of(env, 100)) == {5, 6, 7, 8}


def test_the_seed_of_a_library_seeds_the_draws_and_is_not_a_level():
    env = TrainOnLevels(gymnasium.make("CartPole-v1"), "0:200")
    once, again = levels_of(env, 20, seed=1000), levels_of(env, 20, seed=1000)
    assert once == again
    assert max(once) < 200
    assert levels_of(env, 20, seed=1001) != once


def test_a_level_begins_as_it_does_in_evaluation():
    plain = gymnasium.make("CartPole-v1")
    env = TrainOnLevels(gymnasium.make("CartPole-v1"), "0:200")
    np.testing.assert_array_equal(env.reset(options={"level": 7})[0], plain.reset(seed=7)[0])


def test_a_held_out_level_is_refused():
    env = TrainOnLevels(gymnasium.make("CartPole-v1"), "0:200")
    with pytest.raises(UsageError, match="Level 1000 is not a training level"):
        env.reset(options={"level": 1000})
    with pytest.raises(UsageError):
        TrainOnLevels(gymnasium.make("CartPole-v1"), "900:1050")


def test_copies_in_a_vector_environment_draw_levels_of_their_own():
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda: gapfloor.TrainOnLevels(gymnasium.make("CartPole-v1"), "0:200") for _ in range(4)]
    )
    _, info = envs.reset(seed=3)
    assert len(set(info["level_seed"].tolist())) > 1
    assert max(info["level_seed"]) < 200


def test_stable_baselines3_trains_on_the_set_alone():
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    seen = []

    class Noting(TrainOnLevels):
        def reset(self, **given):
            observation, info = super().reset(**given)
            seen.append(info["level_seed"])
            return observation, info

    env = Noting(gymnasium.make("CartPole-v1"), "0:50")
    stable_baselines3.PPO("MlpPolicy", env, seed=1000, n_steps=64, device="cpu").learn(256)
    assert len(seen) > 3
    assert max(seen) < 50
