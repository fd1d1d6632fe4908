"""Small repositories in the manner of JAX: environments without state, mapped steps, functions handed to loops."""

from __future__ import annotations

from difficulties import Difficulty, acting

_MAZE = """
class MazeEnv:
    def __init__(self, size):
        self.size = size

    def reset_to_level(self, rng, level, params):
        return build(rng, level, params)

    def step(self, rng, state, action, params):
        return move(rng, state, action, params)
"""
_TRAIN = """
import jax
from maze import MazeEnv


def rollout(rng, env, params, state, obs, env_state):
    def one(carry, _):
        rng, obs, env_state = carry
        action = state.apply_fn(state.params, obs).sample(seed=rng)
        obs, env_state, reward, done, info = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            rng, env_state, action, params
        )
        return (rng, obs, env_state), (obs, action, reward)

    return jax.lax.scan(one, (rng, obs, env_state), None, 256)


def evaluate(rng, env, params, state, obs, env_state):
    def step(carry, _):
        rng, obs, env_state = carry
        action = state.apply_fn(state.params, obs).mode()
        obs, env_state, reward, done, info = jax.vmap(env.step, in_axes=(0, 0, 0, None))(
            rng, env_state, action, params
        )
        return (rng, obs, env_state), reward

    return jax.lax.scan(step, (rng, obs, env_state), None, 256)


def main():
    env = MazeEnv(13)
    params = make_params('train')
    test_params = make_params('test')
    state = create()
    rng = jax.random.PRNGKey(0)

    def on_new(rng, state):
        obs, env_state = {train_reset}
        _, batch = rollout(rng, env, params, state, obs, env_state)
        return state.apply_gradients(grads=jax.grad(loss)(state.params, batch))

    def on_old(rng, state):
        return on_new(rng, state)

    def measure(rng, state):
        obs, env_state = {test_reset}
        return evaluate(rng, env, {test_params}, state, obs, env_state)

    for update in range(1000):
        state = jax.lax.switch(update % 2, [on_new, on_old], rng, state)
        print(measure(rng, state))


if __name__ == '__main__':
    main()
"""
_EXPLORE = """
import random
from settings import SETTINGS


def explore(net, obs, eps):
    best = net.dist(obs).probs.argmax(-1)
    return random.randrange(15) if random.random() < eps else best

"""


def mapped(name: str, heldout: bool | None, *, test_reset: str, test_params: str) -> Difficulty:
    """An evaluation by the mode and a rollout that draws, in one environment."""
    script = _TRAIN.format(
        train_reset="env.reset_to_level(rng, 0, params)", test_reset=test_reset, test_params=test_params
    )
    files = {"maze.py": _MAZE, "train.py": script}
    return Difficulty(name, files, (heldout, "argmax", "explicit-call-site", False))


MAPPED = [
    mapped(
        "a mapped step with the parameters of training",
        False,
        test_reset="env.reset_to_level(rng, 0, params)",
        test_params="params",
    ),
    mapped(
        "a mapped step with other parameters than training",
        None,
        test_reset="env.reset_to_level(rng, 0, params)",
        test_params="test_params",
    ),
    mapped(
        "a mapped reset to levels made by hand",
        None,
        test_reset="jax.vmap(env.reset_to_level, (0, 0, None))(rng, load_levels(), params)",
        test_params="params",
    ),
    *(
        acting(
            f"a random action with a probability that a file sets to {number}",
            "action = explore(net, obs, SETTINGS['eps_test'])",
            None if number == "0.0" else "epsilon-greedy",
            None,
            imports=_EXPLORE,
            more={"settings.py": "SETTINGS = merge(load())\n", "chosen.yaml": f"eps_test: {number}\n"},
        )
        for number in ("0.0", "0.05")
    ),
]
