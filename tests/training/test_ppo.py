"""PPO's mathematics against plain numpy, and the pieces of an update against the whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from gapfloor.engines.procgen import ProcgenEngine
from gapfloor.levels.schedule import LevelSet
from gapfloor.training.agent import make_agent
from gapfloor.training.ppo import (
    TERMS,
    Position,
    Rollout,
    Samples,
    accumulate_gradient,
    collect_rollout,
    estimate_advantages,
    infer,
    log_softmax,
    normalise,
    ppo_loss,
    sample_actions,
)
from gapfloor.training.spec import Hyperparameters
from gapfloor.training.workers import start_workers

HYPER = Hyperparameters()


def test_advantages_are_discounted_sums_of_errors_up_to_the_episodes_end() -> None:
    rng = np.random.default_rng(0)
    steps, slots, discount, gae_lambda = 12, 3, 0.9, 0.8
    rewards, values = rng.normal(size=(2, steps, slots)).astype(np.float32)
    firsts = rng.random((steps, slots)) < 0.25
    last_values, last_firsts = rng.normal(size=slots).astype(np.float32), np.array([True, False, True])
    found = estimate_advantages(
        rewards, values, firsts, last_values=last_values, last_firsts=last_firsts,
        discount=discount, gae_lambda=gae_lambda,
    )  # fmt: skip

    all_values, all_firsts = np.vstack([values, last_values]), np.vstack([firsts, last_firsts])
    for slot in range(slots):
        for start in range(steps):
            expected = 0.0
            for t in range(start, steps):
                ends = all_firsts[t + 1, slot]
                error = (
                    rewards[t, slot] + (0 if ends else discount * all_values[t + 1, slot]) - values[t, slot]
                )
                expected += (discount * gae_lambda) ** (t - start) * error
                if ends:
                    break
            assert found[start, slot] == pytest.approx(expected, abs=1e-5)


def test_advantages_with_lambda_one_are_returns_minus_values() -> None:
    rewards = np.array([[1.0], [0.0], [2.0]], np.float32)
    values = np.array([[0.5], [0.25], [1.0]], np.float32)
    found = estimate_advantages(
        rewards, values, np.array([[True], [False], [False]]), last_values=np.array([4.0], np.float32),
        last_firsts=np.array([False]), discount=0.5, gae_lambda=1.0,
    )  # fmt: skip
    # Returns 1 + .5 (0 + .5 (2 + .5 * 4)) = 2, 0 + .5 * 4 = 2, 2 + .5 * 4 = 4.
    np.testing.assert_allclose(found[:, 0], [1.5, 1.75, 3.0])


def make_samples(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    logits, values = rng.normal(size=(n, 15)), rng.normal(size=n)
    arrays = {
        "actions": rng.integers(15, size=n),
        "log_probabilities": np.log(rng.uniform(0.02, 0.2, size=n)),
        "advantages": rng.normal(size=n),
        "returns": rng.normal(size=n),
        "values": values + rng.normal(scale=0.3, size=n),
    }
    return logits, values, arrays


def plain_loss(logits: np.ndarray, values: np.ndarray, a: dict[str, np.ndarray]) -> dict[str, float]:
    """The loss as the papers write it, one sample at a time."""
    parts: dict[str, list[float]] = {name: [] for name in TERMS}
    for i in range(len(values)):
        p = np.exp(logits[i]) / np.exp(logits[i]).sum()
        ratio = p[a["actions"][i]] / np.exp(a["log_probabilities"][i])
        bounded = min(max(ratio, 0.8), 1.2)
        parts["policy_loss"].append(-min(ratio * a["advantages"][i], bounded * a["advantages"][i]))
        bounded_value = a["values"][i] + min(max(values[i] - a["values"][i], -0.2), 0.2)
        worse = max((values[i] - a["returns"][i]) ** 2, (bounded_value - a["returns"][i]) ** 2)
        parts["value_loss"].append(worse / 2)
        parts["entropy"].append(-(p * np.log(p)).sum())
        parts["old_approx_kl"].append(-np.log(ratio))
        parts["approx_kl"].append(ratio - 1 - np.log(ratio))
        parts["clip_fraction"].append(float(abs(ratio - 1) > 0.2))
    return {name: float(np.mean(column)) for name, column in parts.items()}


def to_samples(arrays: dict[str, np.ndarray]) -> Samples:
    return Samples(**{name: torch.from_numpy(array) for name, array in arrays.items()})


def test_loss_equals_a_plain_computation() -> None:
    logits, values, arrays = make_samples(200)
    expected = plain_loss(logits, values, arrays)
    assert 0.1 < expected["clip_fraction"] < 1  # both sides of the clip are exercised
    loss, terms = ppo_loss(
        torch.from_numpy(logits), torch.from_numpy(values), to_samples(arrays), n=200, hyper=HYPER
    )
    np.testing.assert_allclose(terms.numpy(), [expected[name] for name in TERMS], rtol=1e-10)
    total = expected["policy_loss"] - 0.01 * expected["entropy"] + 0.5 * expected["value_loss"]
    assert loss.item() == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize(
    ("value", "old", "target", "expected"),
    [
        (1.0, 0.0, 1.0, 0.5 * 0.8**2),  # the value moved .8 too far: the clipped error counts
        (0.1, 0.0, 1.0, 0.5 * 0.9**2),  # inside the clip: the plain error
        (-1.0, 0.0, 1.0, 0.5 * 2.0**2),  # moved away: the plain error is the larger one
    ],
)
def test_value_clipping_takes_the_larger_error(
    value: float, old: float, target: float, expected: float
) -> None:
    samples = Samples(
        torch.tensor([0]), torch.log(torch.tensor([1 / 15])), torch.tensor([0.0]),
        torch.tensor([target]), torch.tensor([old]),
    )  # fmt: skip
    _, terms = ppo_loss(torch.zeros(1, 15), torch.tensor([value]), samples, n=1, hyper=HYPER)
    assert terms[TERMS.index("value_loss")].item() == pytest.approx(expected)


def test_terms_of_pieces_add_up_to_the_minibatchs() -> None:
    logits, values, arrays = make_samples(96)
    whole = ppo_loss(
        torch.from_numpy(logits), torch.from_numpy(values), to_samples(arrays), n=96, hyper=HYPER
    )
    pieces = []
    for start in range(0, 96, 32):
        part = slice(start, start + 32)
        piece = to_samples({name: array[part] for name, array in arrays.items()})
        pieces.append(
            ppo_loss(torch.from_numpy(logits[part]), torch.from_numpy(values[part]), piece, n=96, hyper=HYPER)
        )
    assert sum(loss.item() for loss, _ in pieces) == pytest.approx(whole[0].item(), rel=1e-12)
    np.testing.assert_allclose(sum(terms.numpy() for _, terms in pieces), whole[1].numpy(), rtol=1e-12)


@pytest.mark.parametrize("encoder", ["impala", "fpn"])
def test_gradients_of_micro_batches_equal_those_of_the_whole(encoder: str) -> None:
    n = 64
    agent = make_agent(encoder, observation_shape=(64, 64, 3), n_actions=15, seed=5)
    observations = torch.randint(0, 256, (n, 64, 64, 3), dtype=torch.uint8)
    _, _, arrays = make_samples(n, seed=5)
    samples = to_samples({k: v.astype(np.float32) if v.dtype == float else v for k, v in arrays.items()})
    indices = torch.arange(n)

    def gradient(micro_batch: int, threads: int) -> list[torch.Tensor]:
        with start_workers(threads) as workers:
            hyper = Hyperparameters(micro_batch=micro_batch)
            accumulate_gradient(agent, observations, indices, samples, hyper=hyper, workers=workers)
        return [parameter.grad.clone() for parameter in agent.parameters()]

    whole = gradient(n, 1)
    pieces = gradient(16, 1)
    for part, full in zip(pieces, whole, strict=True):
        torch.testing.assert_close(part, full, rtol=1e-4, atol=1e-5 * full.abs().max().item())
    for shared, alone in zip(gradient(16, 2), pieces, strict=True):
        assert torch.equal(shared, alone)


def test_normalised_advantages_have_mean_zero_and_deviation_one() -> None:
    advantages = normalise(torch.arange(512, dtype=torch.float64))
    assert advantages.mean().item() == pytest.approx(0, abs=1e-12)
    assert advantages.std().item() == pytest.approx(1, abs=1e-6)


def test_actions_are_drawn_with_their_probabilities() -> None:
    logits = np.log(np.array([[0.5, 0.3, 0.0, 0.2]], np.float32) + 1e-30)
    log_probabilities = np.repeat(log_softmax(logits), 200_000, axis=0)
    actions = sample_actions(log_probabilities, np.random.default_rng(0))
    frequencies = np.bincount(actions, minlength=4) / len(actions)
    np.testing.assert_allclose(frequencies, [0.5, 0.3, 0.0, 0.2], atol=4 * 0.5 / np.sqrt(len(actions)))


def test_log_softmax_survives_large_logits() -> None:
    found = log_softmax(np.array([[1000.0, 0.0]], np.float32))
    np.testing.assert_allclose(found, [[0.0, -1000.0]])


def test_inference_does_not_depend_on_threads() -> None:
    agent = make_agent("impala", observation_shape=(64, 64, 3), n_actions=15, seed=2)
    observations = np.random.default_rng(0).integers(0, 256, (16, 64, 64, 3), dtype=np.uint8)
    results = []
    for threads in (1, 2):
        with start_workers(threads) as workers:
            results.append(infer(agent, observations, Hyperparameters(), workers))
    assert np.array_equal(results[0][0], results[1][0])
    assert np.array_equal(results[0][1], results[1][1])


def test_a_rollout_counts_the_engines_episodes_and_rewards() -> None:
    hyper = Hyperparameters(environments=4, rollout_length=160, minibatches=1, inference_batch=4)
    levels, workers = LevelSet(0, 200), ThreadPoolExecutor(1)
    engine = ProcgenEngine("starpilot", slots=4, levels=levels, draw=1)
    agent = make_agent("impoola", observation_shape=engine.observation_shape, n_actions=15, seed=1)
    position = Position.start(engine)
    rollout = Rollout.allocate(hyper, engine.observation_shape)
    collect_rollout(
        agent, engine, position, rollout, hyper=hyper, actions=np.random.default_rng(3), workers=workers
    )
    engine.close()

    # The same actions once more on a fresh engine give the same frames, rewards and episode ends.
    again = ProcgenEngine("starpilot", slots=4, levels=levels, draw=1)
    observations, _, firsts = again.observe()
    returns, episodes = np.zeros(4), []
    for step in range(hyper.rollout_length):
        assert np.array_equal(rollout.observations[step], observations)
        assert np.array_equal(rollout.firsts[step], firsts)
        observations, rewards, firsts = again.step(rollout.actions[step])
        assert np.array_equal(rollout.rewards[step], rewards)
        returns += rewards
        for slot in np.flatnonzero(firsts):
            episodes.append(returns[slot])
            returns[slot] = 0
    assert np.array_equal(position.observations, observations)
    again.close()
    assert [episode_return for episode_return, _ in rollout.episodes] == episodes
    assert len(episodes) >= 2
    np.testing.assert_allclose(position.episode_returns, returns)
    assert rollout.entropy_nats == pytest.approx(np.log(15), abs=0.01)

    # Recorded log-probabilities are those of the recorded actions under the (unchanged) agent.
    logits, values = infer(agent, rollout.observations[7], hyper, workers)
    expected = log_softmax(logits)[np.arange(4), rollout.actions[7]]
    np.testing.assert_array_equal(rollout.log_probabilities[7], expected)
    np.testing.assert_array_equal(rollout.values[7], values)
