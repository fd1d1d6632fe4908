"""Objects that people have in memory are policies: torch modules, Stable-Baselines3 models, classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.distributions import Categorical, Normal

from gapfloor.engines.worker_pool import packed
from gapfloor.errors import PolicyError
from gapfloor.policies import notes
from gapfloor.policies.notes import PolicyWarning
from gapfloor.policies.policy import Policy, StatefulPolicy, as_policy, own_fingerprint

VECTORS = np.random.default_rng(0).normal(size=(5, 4))
IMAGES = np.random.default_rng(0).integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)


@pytest.fixture(autouse=True)
def nothing_said_yet() -> Iterator[None]:
    notes._SHOWN.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        yield


class ActorCritic(nn.Module):
    """Returns what `form` makes of logits and value."""

    def __init__(self, form: Any = lambda logits, value: logits) -> None:
        super().__init__()
        self.actor, self.critic, self.form = nn.Linear(4, 3), nn.Linear(4, 1), form

    def forward(self, x: torch.Tensor) -> Any:
        return self.form(self.actor(x), self.critic(x))


def expected(module: Any) -> np.ndarray:
    with torch.no_grad():
        return module.actor(torch.from_numpy(VECTORS.astype(np.float32))).numpy()


def test_a_module_that_returns_logits_is_a_policy() -> None:
    module = ActorCritic()
    policy = as_policy(module)
    assert isinstance(policy, Policy)
    assert not isinstance(policy, StatefulPolicy)
    assert np.array_equal(policy.logits(VECTORS), expected(module))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "compiled", [torch.jit.script, lambda module: torch.jit.trace(module, torch.zeros(1, 4))]
)
def test_a_torchscript_module_is_a_policy_that_stays_in_this_process(compiled: Any) -> None:
    module = nn.Sequential(nn.Linear(4, 3))
    given = compiled(module)
    assert np.array_equal(as_policy(given).logits(VECTORS), as_policy(module).logits(VECTORS))  # type: ignore[call-arg,union-attr]
    assert packed(given) is None


class AgentWithoutForward(nn.Module):
    """The interface of CleanRL's agents."""

    def __init__(self) -> None:
        super().__init__()
        self.actor, self.critic = nn.Linear(4, 3), nn.Linear(4, 1)

    def get_action_and_value(self, x: torch.Tensor, action: torch.Tensor | None = None) -> Any:
        distribution = Categorical(logits=self.actor(x))
        action = distribution.sample() if action is None else action
        return action, distribution.log_prob(action), distribution.entropy(), self.critic(x)


def test_an_agent_that_acts_without_forward_is_a_policy_that_draws_nothing() -> None:
    agent = AgentWithoutForward()
    random_state = torch.get_rng_state()
    policy = as_policy(agent)
    assert isinstance(policy, Policy)
    assert np.array_equal(policy.logits(VECTORS), expected(agent))
    assert torch.equal(torch.get_rng_state(), random_state)
    # A hash of the source would differ in a worker, which does not have the user's script.
    assert own_fingerprint(policy) == ""


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (lambda logits, value: (logits, value), "its output 0"),
        (lambda logits, value: (value, logits), "its output 1"),
        (lambda logits, value: [Categorical(logits=logits), value], "Categorical"),
        (lambda logits, value: Categorical(logits=logits), "those of the Categorical"),
        (lambda logits, value: {"value": value, "logits": logits}, "its output 'logits'"),
        (lambda logits, value: {"v": value, "action_dist_inputs": logits}, "action_dist_inputs"),
        (lambda logits, value: {"v": value, "anything": logits}, "anything"),
    ],
)
def test_logits_are_found_in_what_a_module_returns_and_it_is_said_once(form: Any, words: str) -> None:
    module = ActorCritic(form)
    policy = as_policy(module)
    with pytest.warns(PolicyWarning, match=words):
        logits = np.asarray(policy.logits(VECTORS))  # type: ignore[call-arg]
    theirs = expected(module)
    shift = (logits - theirs).mean(axis=1, keepdims=True)  # a Categorical normalises its logits
    np.testing.assert_allclose(logits - shift, theirs, atol=1e-6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.logits(VECTORS)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (lambda logits, value: (logits, logits), "2 of them could be logits"),
        (lambda logits, value: (value, value), "none of them could be logits"),
        (lambda logits, value: Normal(logits, 1.0), "not a distribution over discrete actions"),
        (lambda logits, value: "left", "returned a str, not logits"),
    ],
)
def test_an_output_without_clear_logits_is_refused(form: Any, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        as_policy(ActorCritic(form)).logits(VECTORS)  # type: ignore[call-arg]


@pytest.mark.parametrize("channels_first", [True, False])
def test_images_reach_a_network_in_the_order_that_it_reads(channels_first: bool) -> None:
    class Images(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(2 * 6 * 6, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.net(x if channels_first else x.permute(0, 3, 1, 2))

    module = Images()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        logits = as_policy(module).logits(IMAGES)  # type: ignore[call-arg]
    with torch.no_grad():
        theirs = module.net(torch.from_numpy(IMAGES).permute(0, 3, 1, 2).float()).numpy()
    np.testing.assert_allclose(logits, theirs, rtol=1e-4)
    assert any("channels, height, width" in str(each.message) for each in said) == channels_first


def test_a_module_is_copied_and_evaluated_without_dropout() -> None:
    module = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 3)).train()
    policy: Any = as_policy(module)
    first = policy.logits(VECTORS)
    assert np.array_equal(first, policy.logits(VECTORS))
    assert module.training
    with torch.no_grad():
        module[0].weight.zero_()
    assert np.array_equal(first, policy.logits(VECTORS))


def test_a_layer_called_logits_does_not_make_a_module_something_else() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.logits = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.logits(x)

    assert np.asarray(as_policy(Named()).logits(VECTORS)).shape == (5, 3)  # type: ignore[call-arg]
