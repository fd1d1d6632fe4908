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
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.cleanrl_agent import build_agent
from gapfloor.policies.formats.content_hash import describe_module, hash_arrays
from gapfloor.policies.formats.inference import repeatable, require_torch, writeable
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.state_dict import read_saved
from gapfloor.policies.protocol import Logits, Policy, StatefulPolicy, copy_description
from gapfloor.users_code import named_class, put_folder_on_path


class _HeadOutput:
    """Keeps the output of the agent's actor while the agent acts."""

    def __init__(self, agent: Any, head: str) -> None:
        self.logits: Any = None
        agent.get_submodule(head).register_forward_hook(self._catch)

    def _catch(self, module: Any, inputs: Any, output: Any) -> None:
        self.logits = output


class CleanRLPolicy:
    """An agent of CleanRL; see `gapfloor.policies.protocol.Policy`."""

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


class CleanRLRecurrentPolicy:
    """An agent of CleanRL with an LSTM; see `gapfloor.policies.protocol.StatefulPolicy`."""

    backend = "torch"

    def __init__(self, agent: Any, **described: Any) -> None:
        self._inner = CleanRLPolicy(agent, **described)
        self.device, self.fingerprint = self._inner.device, ""
        copy_description(self._inner, self)
        self._agent = agent

    def initial_state(self, n: int) -> Any:
        """Hidden and cell state of `n` rows: zeros."""
        import torch

        shape = (self._agent.lstm.num_layers, n, self._agent.lstm.hidden_size)
        return torch.zeros(shape, device=self.device), torch.zeros(shape, device=self.device)

    def logits(self, observations: Any, state: Any, first: npt.NDArray[np.bool_]) -> tuple[Logits, Any]:
        """Logits and the next state; CleanRL's `done` is our `first`."""
        import torch

        with repeatable():
            inputs, actions = self._inner._inputs(observations)
            done = torch.as_tensor(np.asarray(first, dtype=np.float32), device=self.device)
            *_, state = self._agent.get_action_and_value(inputs, state, done, action=actions)
            return self._inner._caught(), state


def load_cleanrl(spec: PolicySpec, *, device: str) -> tuple[Policy | StatefulPolicy, PolicySpec]:
    """The agent of a state_dict and a class, or of a trusted pickle; and the line with the remaining options."""
    torch = require_torch(device)
    path, name = spec.path, spec.text("agent")
    if spec.is_trusted:
        put_folder_on_path()
    saved, spec = read_saved(spec)
    if isinstance(saved, torch.nn.Module):
        agent: Any = saved
    elif name is None:
        raise UsageError(
            f"{path} holds weights only: name the class that they belong to, e.g. ,agent=ppo:Agent."
        )
    else:
        agent = build_agent(named_class(name, option="agent", error=PolicyError), saved, spec)
    head = spec.text("head") or "actor"
    policy = policy_of_agent(agent, where=str(path), name=path.stem, head=head, device=device)
    policy.fingerprint = hash_arrays(agent.state_dict(), {"head": head, **describe_module(agent)})
    return policy, spec


def policy_of_agent(
    agent: Any, *, where: str, name: str, head: str = "actor", device: str = "cpu"
) -> CleanRLPolicy | CleanRLRecurrentPolicy:
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
    kind = CleanRLRecurrentPolicy if "lstm_state" in takes else CleanRLPolicy
    return kind(agent, head=head, name=name, device=device)


def _parameters(agent: Any, where: str) -> Mapping[str, Any]:
    method = getattr(agent, "get_action_and_value", None)
    if method is None:
        raise PolicyError(
            f"{where} is an agent of the class {type(agent).__name__}, which has no get_action_and_value: values of a "
            "Q-network are not logits, so only CleanRL's PPO agents can be read. For a network that returns logits use "
            f"statedict:{where},net=package.module:{type(agent).__name__}."
        )
    return inspect.signature(method).parameters
