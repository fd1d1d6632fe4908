"""CleanRL's agents as policies: `cleanrl:agent.pt,agent=ppo:Agent`, or an agent in memory.

CleanRL's scripts save a state_dict. Its class is in the script that trained it, which the user names; that is the
user's own code. Logits are what the agent's `actor` returns during `get_action_and_value`, so that whatever the
class does to an observation is done here as well. For agents with an LSTM (`ppo_atari_lstm`) the harness keeps the
state. A file that holds a whole agent is a pickle and is refused unless the user trusts it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.cleanrl_agent import build_agent
from gapfloor.policies.formats.content_hash import describe_module, hash_arrays
from gapfloor.policies.formats.inference import repeatable, writeable
from gapfloor.policies.formats.recurrent import LstmPolicy
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.state_dict import read_network
from gapfloor.policies.policy import Logits


class _HeadOutput:
    """Keeps the output of the agent's actor while the agent acts."""

    def __init__(self, agent: Any, head: str) -> None:
        self.logits: Any = None
        agent.get_submodule(head).register_forward_hook(self._catch)

    def _catch(self, module: Any, inputs: Any, output: Any) -> None:
        self.logits = output


class CleanRLPolicy:
    """An agent of CleanRL; see `gapfloor.policies.policy.Policy`."""

    backend = "torch"

    def __init__(self, agent: Any, *, head: str, name: str, device: str) -> None:
        self.name, self.device = name, device
        self.fingerprint = ""
        self.header: Mapping[str, Any] = {"encoder": "cleanrl"}
        self._agent = agent.to(device).eval()
        self._head = _HeadOutput(self._agent, head)

    def logits(self, observations: Any) -> Logits:
        """Logits of observations, which are given as 32-bit floats as in CleanRL."""
        with repeatable():
            inputs, actions = self._inputs(observations)
            self._agent.get_action_and_value(inputs, action=actions)
            return self._caught()

    def step(self, observations: Any, state: Any, starts: Any) -> tuple[Logits, Any]:
        """Logits and the next state of an agent with an LSTM; CleanRL calls the starts of episodes `done`."""
        inputs, actions = self._inputs(observations)
        *_, state = self._agent.get_action_and_value(inputs, state, starts, action=actions)
        return self._caught(), state

    def _inputs(self, observations: Any) -> tuple[Any, Any]:
        import torch

        if isinstance(observations, Mapping):
            raise PolicyError(
                f"{self.name} reads one array, not a dict of {', '.join(sorted(observations))}: add ,key=NAME to "
                "choose one of them."
            )
        array = writeable(np.asarray(observations, dtype=np.float32))
        # An action is given so that the agent does not draw one.
        return (
            torch.from_numpy(array).to(self.device),
            torch.zeros(len(array), dtype=torch.int64, device=self.device),
        )

    def _caught(self) -> Logits:
        if self._head.logits is None:
            raise PolicyError(
                f"{self.name} did not use the part that head= names: name the part that returns the logits."
            )
        logits: Logits = self._head.logits.float().cpu().numpy()
        self._head.logits = None
        return logits


def load_cleanrl(spec: PolicySpec, *, device: str) -> tuple[CleanRLPolicy | LstmPolicy, PolicySpec]:
    """The agent of a state_dict and a class, or of a trusted pickle; and the line with the remaining options."""
    agent, spec = read_network(spec, build_agent, option="agent", device=device)
    head = spec.text("head") or "actor"
    policy = policy_of_agent(agent, where=str(spec.path), name=spec.path.stem, head=head, device=device)
    policy.fingerprint = hash_arrays(agent.state_dict(), {"head": head, **describe_module(agent)})
    return policy, spec


def policy_of_agent(
    agent: Any, *, where: str, name: str, head: str = "actor", device: str = "cpu"
) -> CleanRLPolicy | LstmPolicy:
    """The policy of an agent with `get_action_and_value`, without a hash; `where` says in an error what holds it."""
    takes = _parameters(agent, where)
    try:
        agent.get_submodule(head)
    except AttributeError:
        parts = ", ".join(each for each, _ in agent.named_children())
        raise PolicyError(
            f"{type(agent).__name__} has no part '{head}' for logits of discrete actions: it has {parts}; name one "
            "with ,head=NAME."
        ) from None
    policy = CleanRLPolicy(agent, head=head, name=name, device=device)
    if "lstm_state" not in takes:
        return policy
    return LstmPolicy(policy, layers=agent.lstm.num_layers, size=agent.lstm.hidden_size)


def _parameters(agent: Any, where: str) -> Mapping[str, Any]:
    method = getattr(agent, "get_action_and_value", None)
    if method is None:
        raise PolicyError(
            f"{where} is an agent of the class {type(agent).__name__}, which has no get_action_and_value: values of a "
            "Q-network are not logits, so only CleanRL's PPO agents can be read. For a network that returns logits use "
            f"statedict:{where},net=package.module:{type(agent).__name__}."
        )
    return inspect.signature(method).parameters
