"""CleanRL's agents: a class that the user names, a state_dict, and an actor whose output is caught."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import torch

from gapfloor.errors import GapfloorError, PolicyError, UsageError
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import Policy, StatefulPolicy

#: Agents with the interface of CleanRL's `ppo`, `ppo_procgen` and `ppo_atari_lstm`.
SCRIPT = """
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self, envs):
        super().__init__()
        n_inputs = int(np.prod(envs.single_observation_space.shape))
        self.critic = nn.Linear(n_inputs, 1)
        self.actor = nn.Sequential(nn.Linear(n_inputs, 8), nn.Tanh(), nn.Linear(8, envs.single_action_space.n))

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        action = probs.sample() if action is None else action
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


class Images(nn.Module):
    def __init__(self, envs):
        super().__init__()
        height, width, channels = envs.single_observation_space.shape
        self.network = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten())
        self.actor = nn.Linear(4 * (height - 2) * (width - 2), envs.single_action_space.n)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(self.network(x.permute((0, 3, 1, 2)) / 255.0)))
        return action, probs.log_prob(action), probs.entropy(), None


class Memory(nn.Module):
    def __init__(self, envs):
        super().__init__()
        self.lstm = nn.LSTM(4, 6)
        self.actor = nn.Linear(6, 3)

    def get_action_and_value(self, x, lstm_state, done, action=None):
        keep = (1.0 - done).view(1, -1, 1)
        hidden, state = self.lstm(x[None], (keep * lstm_state[0], keep * lstm_state[1]))
        probs = Categorical(logits=self.actor(hidden[0]))
        return action, probs.log_prob(action), probs.entropy(), None, state


class Values(nn.Module):
    def __init__(self, env):
        super().__init__()
        self.network = nn.Linear(4, 3)

    def forward(self, x):
        return self.network(x)
"""


class Spaces:
    class single_observation_space:
        shape = (4,)

    class single_action_space:
        n = 3


class ImageSpaces(Spaces):
    class single_observation_space:
        shape = (6, 5, 3)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The user's training script, in the folder where the command is typed."""
    folder = tmp_path_factory.mktemp("cleanrl")
    (folder / "my_ppo.py").write_text(SCRIPT)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.syspath_prepend(folder)
        import importlib

        yield importlib.import_module("my_ppo")


def save(agent: Any, name: str) -> str:
    torch.save(agent.state_dict(), name)
    return name


def load(line: str) -> Any:
    return PolicySource(line).load()


def test_logits_are_the_actors(script: Any) -> None:
    agent = script.Agent(Spaces)
    policy = load(f"cleanrl:{save(agent, 'ppo.cleanrl_model')},agent=my_ppo:Agent,observation=4,actions=3")
    assert isinstance(policy, Policy)
    assert not isinstance(policy, StatefulPolicy)
    seen = np.random.default_rng(0).normal(size=(8, 4))  # float64, as an environment may give it
    with torch.no_grad():
        assert np.array_equal(policy.logits(seen), agent.actor(torch.Tensor(seen)).numpy())


def test_no_random_number_is_drawn(script: Any) -> None:
    policy = load(
        f"cleanrl:{save(script.Agent(Spaces), 'ppo.pt')},agent=my_ppo:Agent,observation=4,actions=3"
    )
    before = torch.get_rng_state()
    policy.logits(np.zeros((2, 4)))
    assert torch.equal(before, torch.get_rng_state())


def test_images_need_their_size_and_go_the_agents_own_way(script: Any) -> None:
    agent = script.Images(ImageSpaces)
    path = save(agent, "images.pt")
    with pytest.raises(
        UsageError, match=r"made for the spaces of its environments, .* add ,observation=SHAPE,actions"
    ):
        load(f"cleanrl:{path},agent=my_ppo:Images,actions=3")
    policy = load(f"cleanrl:{path},agent=my_ppo:Images,observation=6x5x3,actions=3")
    seen = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)
    with torch.no_grad():
        hidden = agent.network(torch.Tensor(seen).permute((0, 3, 1, 2)) / 255.0)
        assert np.array_equal(policy.logits(seen), agent.actor(hidden).numpy())


def test_an_lstm_agent_keeps_its_state_and_forgets_where_an_episode_starts(script: Any) -> None:
    agent = script.Memory(Spaces)
    policy = load(f"cleanrl:{save(agent, 'memory.pt')},agent=my_ppo:Memory,observation=4,actions=3")
    assert isinstance(policy, StatefulPolicy)
    rng = np.random.default_rng(0)
    frames = rng.normal(size=(12, 2, 4)).astype(np.float32)
    starts = rng.random((12, 2)) < 0.3
    starts[0] = True
    state = policy.initial_state(2)
    ours = []
    for seen, first in zip(frames, starts, strict=True):
        logits, state = policy.logits(seen, state, first)
        ours.append(logits)
    for row in range(2):  # each episode by itself, as one sequence through the LSTM
        cuts = [*np.flatnonzero(starts[:, row]), 12]
        for begin, end in itertools.pairwise(cuts):
            with torch.no_grad():
                hidden, _ = agent.lstm(torch.from_numpy(frames[begin:end, row : row + 1]))
                expected = agent.actor(hidden[:, 0]).numpy()
            np.testing.assert_allclose(np.stack(ours[begin:end])[:, row], expected, atol=1e-6)


def test_the_hash_is_that_of_weights_and_code(script: Any) -> None:
    agent = script.Agent(Spaces)
    first = load(f"cleanrl:{save(agent, 'a.pt')},agent=my_ppo:Agent,observation=4,actions=3").fingerprint
    assert (
        load(f"cleanrl:{save(agent, 'b.pt')},agent=my_ppo:Agent,observation=4,actions=3").fingerprint == first
    )
    with torch.no_grad():
        agent.actor[2].bias[0] += 1
    assert (
        load(f"cleanrl:{save(agent, 'b.pt')},agent=my_ppo:Agent,observation=4,actions=3").fingerprint != first
    )
    Path("my_ppo.py").write_text(SCRIPT.replace("/ 255.0", "/ 256.0"))
    try:
        assert load("cleanrl:a.pt,agent=my_ppo:Agent,observation=4,actions=3").fingerprint != first
    finally:
        Path("my_ppo.py").write_text(SCRIPT)


def test_what_cannot_be_read_is_refused_in_words(script: Any) -> None:
    path = save(script.Agent(Spaces), "ppo.pt")
    with pytest.raises(UsageError, match=r"holds weights only: name the class .*,agent=MODULE:CLASS"):
        load(f"cleanrl:{path}")
    with pytest.raises(PolicyError, match="my_ppo has no class or function 'Agnet'"):
        load(f"cleanrl:{path},agent=my_ppo:Agnet")
    with pytest.raises(PolicyError, match="does not import"):
        load(f"cleanrl:{path},agent=no_such_script:Agent")
    with pytest.raises(PolicyError, match="does not fit Memory"):
        load(f"cleanrl:{path},agent=my_ppo:Memory,observation=4,actions=3")
    with pytest.raises(PolicyError, match=r"Agent has no part 'policy' .*: it has critic, actor"):
        load(f"cleanrl:{path},agent=my_ppo:Agent,observation=4,actions=3,head=policy")
    with pytest.raises(PolicyError, match=r"Agent has no part 'policy'"):
        load(f"cleanrl:{path},agent=my_ppo:Agent,observation=4,actions=3,head=policy")
    with pytest.raises(PolicyError, match="values of a Q-network are not logits"):
        load(f"cleanrl:{save(script.Values(None), 'q.pt')},agent=my_ppo:Values,observation=4,actions=3")
    with pytest.raises(UsageError, match=r"add ,observation=SHAPE"):
        load(f"cleanrl:{path},agent=my_ppo:Agent,actions=3,observation=6,5")
    Path("text.pt").write_text("no torch file")
    with pytest.raises(PolicyError, match=r"text\.pt"):
        load("cleanrl:text.pt,agent=my_ppo:Agent,observation=4,actions=3")


@pytest.mark.parametrize("prefix", ["cleanrl:", "statedict:"])
def test_weights_of_another_library_need_a_function(prefix: str, tmp_path: Path) -> None:
    # What flax.serialization.to_bytes([settings, [parameters]]) writes: lists become maps with the keys "0", "1".
    path = tmp_path / "agent.pt"
    path.write_bytes(msgpack.packb({"0": {"seed": 1}, "1": {"0": {"kernel": [1.0, 2.0]}}}))
    with pytest.raises(
        GapfloorError, match=r"weights of another library, e\.g\. JAX.*package\.module:function"
    ):
        load(f"{prefix}{path}")
