"""PPO: rollout, advantages, loss and update, top to bottom (Schulman et al. 2017; details as in CleanRL).

The functions are pure but for the agent's weights: arrays and a random stream in, arrays out. Batches are cut
into pieces of fixed size whose results are combined in a fixed order, so the outcome does not depend on how
many threads share the pieces.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from gapfloor.engines.engine import Engine
from gapfloor.errors import CheckFailedError
from gapfloor.training.agent import Agent
from gapfloor.training.spec import Hyperparameters

Floats = npt.NDArray[np.float32]


@dataclass
class Position:
    """The state of the environments between two rollouts: what they show, and the current episodes."""

    observations: npt.NDArray[np.uint8]
    firsts: npt.NDArray[np.bool_]
    episode_returns: npt.NDArray[np.float64]
    episode_lengths: npt.NDArray[np.int64]

    @classmethod
    def start(cls, engine: Engine) -> Position:
        """The first position of a new engine."""
        n = engine.n_slots
        observations, _, firsts = engine.observe()
        return cls(observations.copy(), firsts.astype(bool), np.zeros(n), np.zeros(n, np.int64))


@dataclass
class Rollout:
    """What the environments did between two updates; arrays are `[steps, environments, ...]`."""

    observations: npt.NDArray[np.uint8]
    actions: npt.NDArray[np.int64]
    log_probabilities: Floats
    rewards: Floats
    values: Floats
    firsts: npt.NDArray[np.bool_]
    last_values: Floats
    entropy_nats: float
    episodes: list[tuple[float, int]]
    """Return and length of each training episode that ended."""

    @classmethod
    def allocate(cls, hyper: Hyperparameters, observation_shape: tuple[int, ...]) -> Rollout:
        """Empty buffers, used again by every rollout of a run; observations stay uint8."""
        shape = (hyper.rollout_length, hyper.environments)
        return cls(
            observations=np.zeros((*shape, *observation_shape), np.uint8),
            actions=np.zeros(shape, np.int64),
            log_probabilities=np.zeros(shape, np.float32),
            rewards=np.zeros(shape, np.float32),
            values=np.zeros(shape, np.float32),
            firsts=np.zeros(shape, bool),
            last_values=np.zeros(shape[1], np.float32),
            entropy_nats=0.0,
            episodes=[],
        )


def collect_rollout(
    agent: Agent,
    engine: Engine,
    position: Position,
    rollout: Rollout,
    *,
    hyper: Hyperparameters,
    actions: np.random.Generator,
    workers: Executor,
) -> None:
    """Play `rollout_length` steps with sampled actions into `rollout`, and leave `position` at their end."""
    entropies, rollout.episodes = [], []
    for step in range(hyper.rollout_length):
        rollout.observations[step] = position.observations
        rollout.firsts[step] = position.firsts
        logits, rollout.values[step] = infer(agent, position.observations, hyper, workers)
        log_probabilities = log_softmax(logits)
        chosen = sample_actions(log_probabilities, actions)
        rollout.actions[step] = chosen
        rollout.log_probabilities[step] = log_probabilities[np.arange(len(chosen)), chosen]
        entropies.append(-(np.exp(log_probabilities) * log_probabilities).sum(axis=1).mean())

        observations, rewards, firsts = engine.step(chosen)
        position.observations[:], position.firsts[:] = observations, firsts
        position.episode_returns += rewards
        position.episode_lengths += 1
        for slot in np.flatnonzero(firsts):
            rollout.episodes.append(
                (float(position.episode_returns[slot]), int(position.episode_lengths[slot]))
            )
            position.episode_returns[slot], position.episode_lengths[slot] = 0.0, 0
        rollout.rewards[step] = rewards
    _, rollout.last_values = infer(agent, position.observations, hyper, workers)
    rollout.entropy_nats = float(np.mean(entropies))


def infer(
    agent: Agent, observations: npt.NDArray[np.uint8], hyper: Hyperparameters, workers: Executor
) -> tuple[Floats, Floats]:
    """Logits and values of a batch, computed in pieces of `inference_batch` observations."""
    device, piece = next(agent.parameters()).device, hyper.inference_batch

    def run(start: int) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.inference_mode():
            logits, values = _forward(
                agent, torch.from_numpy(observations[start : start + piece]).to(device), hyper
            )
            return logits.cpu(), values.cpu()

    pieces = list(workers.map(run, range(0, len(observations), piece)))
    return np.concatenate([p[0].numpy() for p in pieces]), np.concatenate([p[1].numpy() for p in pieces])


def _forward(
    agent: Agent, observations: torch.Tensor, hyper: Hyperparameters
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and values as float32, computed in the run's precision."""
    if hyper.precision == "float32":
        return agent(observations)  # type: ignore[no-any-return]
    # The rollout uses it too: the ratio of new to old probabilities must begin at one.
    with torch.autocast(observations.device.type, dtype=torch.bfloat16):
        logits, values = agent(observations)
    return logits.float(), values.float()


def log_softmax(logits: Floats) -> Floats:
    """Log-probabilities over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    result: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def sample_actions(log_probabilities: Floats, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """One action per row, drawn from its distribution with one uniform number per row."""
    cumulative = np.cumsum(np.exp(log_probabilities.astype(np.float64)), axis=1)
    # Scaling by the last entry keeps rounding from leaving a gap above the last action.
    thresholds = rng.random(len(cumulative))[:, None] * cumulative[:, -1:]
    actions: npt.NDArray[np.int64] = (cumulative <= thresholds).sum(axis=1)
    return actions


def estimate_advantages(
    rewards: Floats,
    values: Floats,
    firsts: npt.NDArray[np.bool_],
    *,
    last_values: Floats,
    last_firsts: npt.NDArray[np.bool_],
    discount: float,
    gae_lambda: float,
) -> Floats:
    """Generalised advantage estimates `[steps, environments]` (Schulman et al. 2016).

    `firsts[t]` says that step t begins an episode: neither its value nor its advantage belongs to step t - 1.
    """
    advantages = np.zeros_like(rewards)
    following = np.zeros_like(last_values)
    next_values, next_firsts = last_values, last_firsts
    for step in reversed(range(len(rewards))):
        continues = 1.0 - next_firsts.astype(np.float32)
        errors = rewards[step] + np.float32(discount) * next_values * continues - values[step]
        following = errors + np.float32(discount * gae_lambda) * continues * following
        advantages[step] = following
        next_values, next_firsts = values[step], firsts[step]
    return advantages


#: Entries of the vector of terms that `ppo_loss` returns with the loss.
TERMS = ("policy_loss", "value_loss", "entropy", "old_approx_kl", "approx_kl", "clip_fraction")


@dataclass(frozen=True)
class Samples:
    """Samples of a rollout, as tensors over their first axis."""

    actions: torch.Tensor
    log_probabilities: torch.Tensor
    advantages: torch.Tensor
    returns: torch.Tensor
    values: torch.Tensor

    def take(self, indices: torch.Tensor | slice) -> Samples:
        """The samples at these indices."""
        return Samples(*(getattr(self, name)[indices] for name in self.__dataclass_fields__))


def ppo_loss(
    logits: torch.Tensor, values: torch.Tensor, samples: Samples, *, n: int, hyper: Hyperparameters
) -> tuple[torch.Tensor, torch.Tensor]:
    """The clipped PPO loss of these samples' part in a minibatch of `n`, and its `TERMS`.

    Every term is a sum over the samples given, divided by `n`: over the pieces of a minibatch they add up to
    its means, and so do the gradients. Advantages come normalised over the minibatch.
    """
    log_probabilities = torch.log_softmax(logits, dim=1)
    chosen = log_probabilities.gather(1, samples.actions[:, None]).squeeze(1)
    entropy = -(log_probabilities.exp() * log_probabilities).sum(dim=1)

    log_ratio = chosen - samples.log_probabilities
    ratio = log_ratio.exp()
    clipped_ratio = ratio.clamp(1 - hyper.clip, 1 + hyper.clip)
    policy_loss = -torch.minimum(samples.advantages * ratio, samples.advantages * clipped_ratio)

    clipped_values = samples.values + (values - samples.values).clamp(-hyper.clip, hyper.clip)
    errors = torch.maximum((values - samples.returns).square(), (clipped_values - samples.returns).square())
    value_loss = 0.5 * errors

    losses = policy_loss - hyper.entropy_coefficient * entropy + hyper.value_coefficient * value_loss
    with torch.no_grad():
        is_clipped = ((ratio - 1).abs() > hyper.clip).float()
        columns = (policy_loss, value_loss, entropy, -log_ratio, ratio - 1 - log_ratio, is_clipped)
        terms = torch.stack([column.sum() for column in columns]) / n
    return losses.sum() / n, terms


def normalise(advantages: torch.Tensor) -> torch.Tensor:
    """Advantages of one minibatch with mean 0 and deviation 1."""
    return (advantages - advantages.mean()) / (advantages.std() + 1e-8)


def update(
    agent: Agent,
    optimiser: torch.optim.Adam,
    rollout: Rollout,
    position: Position,
    *,
    hyper: Hyperparameters,
    minibatches: np.random.Generator,
    workers: Executor,
) -> dict[str, float]:
    """Improve the agent on one rollout; the terms of the loss, averaged over all minibatches."""
    advantages = estimate_advantages(
        rollout.rewards, rollout.values, rollout.firsts, last_values=rollout.last_values,
        last_firsts=position.firsts, discount=hyper.discount, gae_lambda=hyper.gae_lambda,
    )  # fmt: skip
    returns = advantages + rollout.values
    device = next(agent.parameters()).device
    arrays = (rollout.actions, rollout.log_probabilities, advantages, returns, rollout.values)
    samples = Samples(*(torch.from_numpy(array.reshape(-1)).to(device) for array in arrays))
    observations = torch.from_numpy(
        rollout.observations.reshape(hyper.batch, *rollout.observations.shape[2:])
    )

    terms, norms = [], []
    for _ in range(hyper.epochs):
        order = torch.from_numpy(minibatches.permutation(hyper.batch))
        for indices in torch.split(order, hyper.batch // hyper.minibatches):
            minibatch = samples.take(indices.to(device))
            minibatch.advantages[:] = normalise(minibatch.advantages)
            step_terms = accumulate_gradient(
                agent, observations, indices, minibatch, hyper=hyper, workers=workers
            )
            norm = nn.utils.clip_grad_norm_(agent.parameters(), hyper.max_gradient_norm)
            if not bool(torch.isfinite(step_terms).all() and torch.isfinite(norm)):
                raise CheckFailedError(
                    "The loss or its gradient is no longer finite: training stopped, and the last good checkpoint "
                    "is kept. Train with another seed."
                )
            optimiser.step()
            terms.append(step_terms)
            norms.append(float(norm))
    means = torch.stack(terms).double().mean(dim=0).tolist()
    variance = float(returns.var(dtype=np.float64))
    unexplained = float((returns - rollout.values).var(dtype=np.float64))
    return {
        **dict(zip(TERMS, means, strict=True)),
        "explained_variance": 1 - unexplained / variance if variance > 0 else float("nan"),
        "gradient_norm": float(np.mean(norms)),
    }


def accumulate_gradient(
    agent: Agent,
    observations: torch.Tensor,
    indices: torch.Tensor,
    minibatch: Samples,
    *,
    hyper: Hyperparameters,
    workers: Executor,
) -> torch.Tensor:
    """Put the gradient of a minibatch into the agent's parameters; the minibatch's `TERMS`.

    The gradients of the micro-batches, small enough for the cache, are computed by whichever thread is free
    and added in the order of the samples.
    """
    parameters = list(agent.parameters())
    device = parameters[0].device
    size = hyper.micro_batch if device.type == "cpu" else len(indices)

    def differentiate(start: int) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        part = slice(start, start + size)
        logits, values = _forward(agent, observations[indices[part]].to(device), hyper)
        loss, terms = ppo_loss(logits, values, minibatch.take(part), n=len(indices), hyper=hyper)
        return torch.autograd.grad(loss, parameters), terms

    (gradients, terms), *others = workers.map(differentiate, range(0, len(indices), size))
    for more_gradients, more_terms in others:
        terms += more_terms
        torch._foreach_add_(gradients, more_gradients)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    return terms
