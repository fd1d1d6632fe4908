"""A Stable-Baselines3 model in memory is the same policy as its file, with what its environments do to observations."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import StatefulPolicy, as_policy


@pytest.mark.parametrize("name", ["ppo", "a2c", "dqn", "recurrent"])
def test_a_model_in_memory_is_the_policy_of_its_file(name: str, request: pytest.FixtureRequest) -> None:
    saved = request.getfixturevalue(name)
    here: Any = as_policy(saved.model)
    there: Any = PolicySource(f"sb3:{saved.path}", backend="torch").load()
    assert here.fingerprint == there.fingerprint
    assert here.header == there.header
    seen = saved.environments.reset()
    if isinstance(here, StatefulPolicy):
        first = np.ones(len(seen), dtype=bool)
        ours = here.logits(seen, here.initial_state(len(seen)), first)[0]
        theirs = there.logits(seen, there.initial_state(len(seen)), first)[0]
    else:
        ours, theirs = here.logits(seen), there.logits(seen)
    assert np.array_equal(ours, theirs)


def test_a_network_without_its_model_is_a_policy_too(ppo: Any) -> None:
    assert as_policy(ppo.model.policy).fingerprint == as_policy(ppo.model).fingerprint  # type: ignore[union-attr]


def test_training_on_does_not_change_what_is_measured(a2c: Any) -> None:
    policy: Any = as_policy(a2c.model)
    seen = a2c.environments.reset()
    before = policy.logits(seen)
    parameter = next(a2c.model.policy.parameters())
    kept = parameter.detach().clone()
    try:
        parameter.data.add_(1.0)
        assert np.array_equal(policy.logits(seen), before)
    finally:
        parameter.data.copy_(kept)


def test_normalisation_comes_along_with_a_model(normalised: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        policy: Any = as_policy(normalised.model)
    wrapped = normalised.environments
    wrapped.training = False
    shown = wrapped.reset()
    ours = policy.logits(normalised.raw.seen)
    network: Any = as_policy(normalised.model.policy)
    np.testing.assert_allclose(ours, network.logits(shown), atol=1e-5)
