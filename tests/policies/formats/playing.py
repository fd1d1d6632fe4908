"""A loaded policy compared with the library's own model, step by step through whole episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from gapfloor.actions.spaces import Discrete
from gapfloor.policies.formats.preprocessing import statistics_of
from gapfloor.policies.policy import LogitsReader


def save_numbers(normalised: Any, path: Path, **changes: float) -> None:
    """The numbers of a VecNormalize as .npz (docs/my-policy.md shows how)."""
    found = statistics_of(normalised)
    assert found is not None
    arrays = {f"mean/{key}".rstrip("/"): mean for key, mean in found.mean.items()}
    arrays |= {f"var/{key}".rstrip("/"): variance for key, variance in found.variance.items()}
    np.savez(path, **arrays, **{"epsilon": found.epsilon, "clip": found.clip, **changes})


def library_logits(model: Any, observations: Any, state: Any = None, first: Any = None) -> np.ndarray:
    """The logits of the library's own distribution."""
    with torch.no_grad():
        tensors = model.policy.obs_to_tensor(observations)[0]
        if not hasattr(model.policy, "lstm_actor"):
            return model.policy.get_distribution(tensors).distribution.logits.numpy()
        shape = list(model.policy.lstm_hidden_state_shape)
        shape[1] = len(first)
        state = state or (np.zeros(shape), np.zeros(shape))
        states = tuple(torch.tensor(each, dtype=torch.float32) for each in state)
        starts = torch.tensor(np.asarray(first), dtype=torch.float32)
        return model.policy.get_distribution(tensors, states, starts)[0].distribution.logits.numpy()


def assert_same_play(saved: Any, policy: Any, *, steps: int = 24) -> None:
    """Ours sees raw observations, the library's what its wrappers make of them; logits must be equal to the bit."""
    n_actions = int(saved.model.action_space.n)
    reader = LogitsReader(policy, name="ours", n_slots=saved.raw.num_envs, space=Discrete(n_actions))
    rng = np.random.default_rng(0)
    observations, state, episodes, spread = saved.environments.reset(), None, 0, 0.0
    for _ in range(steps):
        first = saved.raw.first
        ours = reader.read(saved.raw.seen, first)
        theirs = library_logits(saved.model, observations, state, first)
        np.testing.assert_array_equal(ours, theirs)
        greedy, state = saved.model.predict(
            observations, state=state, episode_start=first, deterministic=True
        )
        assert np.array_equal(ours.argmax(axis=1), greedy)
        spread = max(spread, float(np.ptp(ours, axis=0).max()))
        actions = np.where(rng.random(len(greedy)) < 0.5, greedy, rng.integers(0, n_actions, len(greedy)))
        observations, _, done, _ = saved.environments.step(actions)
        episodes += int(done.sum())
    assert episodes > 0
    assert spread > 0.01  # logits that never vary would agree whatever we did to the observations
