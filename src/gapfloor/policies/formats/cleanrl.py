"""CleanRL's agents as policies: `cleanrl:agent.pt,agent=ppo:Agent`, or an agent in memory.

CleanRL's scripts save a state_dict. Its class is in the script that trained it, which the user names; that is the
user's own code. Logits are what the agent's `actor` returns during `get_action_and_value`, so that whatever the
class does to an observation is done here as well. For agents with an LSTM (`ppo_atari_lstm`) the harness keeps the
state. A constructor that asks for the spaces of the environments needs `observation=` and `actions=`, because the file
does not record them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.backends import missing_library
from gapfloor.policies.formats.content_hash import describe_module, hash_arrays
from gapfloor.policies.formats.network import RecurrentPolicy, TorchPolicy, check_array
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.torch_file import read_network
from gapfloor.users_code import parameters_of, required_parameters


class CleanRLPolicy(TorchPolicy):
    """An agent of CleanRL; the output of its actor is kept while the agent acts."""

    def __init__(self, agent: Any, *, head: str, name: str, device: str) -> None:
        super().__init__(agent, name=name, header={"encoder": "cleanrl"}, device=device)
        self._caught: Any = None
        self.network.get_submodule(head).register_forward_hook(self._catch)

    def _catch(self, module: Any, inputs: Any, output: Any) -> None:
        self._caught = output

    def read(self, observations: Any) -> Any:
        """One tensor of 32-bit floats, as in CleanRL."""
        check_array(observations, name=self.name)
        return observations.float()

    def compute(self, inputs: Any, *memory: Any) -> tuple[Sequence[Any], Any]:
        import torch

        # Actions are given, so that the agent does not draw any.
        some = torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)
        returned = self.network.get_action_and_value(inputs, *memory, action=some)
        if self._caught is None:
            raise PolicyError(
                f"{self.name} did not use the part that head= names: name the part that returns the logits."
            )
        logits, self._caught = self._caught, None
        return (logits,), returned[-1] if memory else None


def load_cleanrl(spec: PolicySpec, *, device: str) -> CleanRLPolicy | RecurrentPolicy:
    """The agent of a state_dict and a class."""
    agent = read_network(
        spec, option="agent", arguments=lambda make: (_environments(make, spec), {}), device=device
    )
    head = spec.options.get("head") or "actor"
    policy = policy_of_agent(agent, where=str(spec.path), name=spec.path.stem, head=head, device=device)
    policy.fingerprint = hash_arrays(agent.state_dict(), {"head": head, **describe_module(agent)})
    return policy


def policy_of_agent(
    agent: Any, *, where: str, name: str, head: str = "actor", device: str = "cpu"
) -> CleanRLPolicy | RecurrentPolicy:
    """The policy of an agent with `get_action_and_value`, without a hash; `where` says in an error what holds it."""
    acts = getattr(agent, "get_action_and_value", None)
    if acts is None:
        raise PolicyError(
            f"{where} is an agent of the class {type(agent).__name__}, which has no get_action_and_value: values of a "
            "Q-network are not logits, so only CleanRL's PPO agents can be read. For a network that returns logits use "
            f"statedict:{where},net=package.module:{type(agent).__name__}."
        )
    try:
        agent.get_submodule(head)
    except AttributeError:
        parts = ", ".join(each for each, _ in agent.named_children())
        raise PolicyError(
            f"{type(agent).__name__} has no part '{head}' for logits of discrete actions: it has {parts}; name one "
            "with ,head=NAME."
        ) from None
    policy = CleanRLPolicy(agent, head=head, name=name, device=device)
    if "lstm_state" not in parameters_of(acts):
        return policy
    return RecurrentPolicy(policy, layers=agent.lstm.num_layers, size=agent.lstm.hidden_size)


def _environments(make: Any, spec: PolicySpec) -> tuple[Any, ...]:
    """What a constructor asks of the environments that the agent was trained in: their spaces."""
    if not required_parameters(make):
        return ()
    try:
        from gymnasium import spaces
    except ImportError as error:
        raise missing_library(error) from None
    shape, n_actions = spec.options.get("observation"), spec.whole_number("actions")
    if n_actions is None or not re.fullmatch(r"[1-9]\d{0,5}(x[1-9]\d{0,5})*", shape or ""):
        raise UsageError(
            f"{make.__name__} is made for the spaces of its environments, which {spec.path} does not record: add "
            ",observation=SHAPE,actions=NUMBER, e.g. ,observation=64x64x3,actions=15."
        )
    assert shape is not None
    observation = spaces.Box(-np.inf, np.inf, tuple(int(part) for part in shape.split("x")), np.float32)
    actions = spaces.Discrete(n_actions)
    return (
        SimpleNamespace(
            single_observation_space=observation, single_action_space=actions,
            observation_space=observation, action_space=actions,
        ),
    )  # fmt: skip
