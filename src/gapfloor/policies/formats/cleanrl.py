"""CleanRL's agents as policies: `cleanrl:agent.pt,agent=ppo:Agent`, or an agent in memory.

CleanRL's scripts save a state_dict. Its class is in the script that trained it, which the user names; that is the
user's own code. Logits are what the agent's `actor` returns during `get_action_and_value`, so that whatever the
class does to an observation is done here as well. For agents with an LSTM (`ppo_atari_lstm`) the harness keeps the
state. A file that holds a whole agent is a pickle and is refused unless the user trusts it.

A constructor asks for the spaces of the environments. The file does not record them, but the weights have to
fit, so likely spaces are tried until the agent that they make takes the weights.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.content_hash import describe_module, hash_arrays
from gapfloor.policies.formats.inference import missing_library
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.torch_file import load_weights, read_network
from gapfloor.policies.formats.torch_policy import RecurrentPolicy, TorchPolicy
from gapfloor.users_code import in_users_words, parameters_of, required_parameters

#: Heights and widths of images in common use: ProcGen, Atari, and MiniGrid's views and pixels.
_IMAGE_SIZES = (64, 84, 7, 56, 96, 128)


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
        if isinstance(observations, Mapping):
            raise PolicyError(
                f"{self.name} reads one array, not a dict of {', '.join(sorted(observations))}: add ,key=NAME to "
                "choose one of them."
            )
        return observations.float()

    def compute(self, inputs: Any) -> tuple[Any]:
        self.network.get_action_and_value(inputs, action=_some_actions(inputs))
        return (self._output(),)

    def compute_next(self, inputs: Any, state: Any, starts: Any) -> tuple[tuple[Any], Any]:
        """CleanRL calls the starts of episodes `done`."""
        *_, state = self.network.get_action_and_value(inputs, state, starts, action=_some_actions(inputs))
        return (self._output(),), state

    def _output(self) -> Any:
        if self._caught is None:
            raise PolicyError(
                f"{self.name} did not use the part that head= names: name the part that returns the logits."
            )
        logits, self._caught = self._caught, None
        return logits


def _some_actions(inputs: Any) -> Any:
    """Actions for `get_action_and_value`, so that the agent does not draw any."""
    import torch

    return torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)


def load_cleanrl(spec: PolicySpec, *, device: str) -> CleanRLPolicy | RecurrentPolicy:
    """The agent of a state_dict and a class, or of a trusted pickle."""
    agent = read_network(spec, _build_agent, option="agent", device=device)
    head = spec.text("head") or "actor"
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


def _build_agent(make: Any, weights: Mapping[str, Any], spec: PolicySpec) -> Any:
    """An agent of the user's class or function with these weights."""
    if not required_parameters(make):
        return _construct(make, (), weights, spec)
    refusal: PolicyError | None = None
    for shape, n_actions in itertools.product(_shapes(weights, spec), _action_counts(weights, spec)):
        try:
            return _construct(make, (_environments(shape, n_actions),), weights, spec)
        except PolicyError as error:
            refusal = refusal or error
    if spec.text("observation") is None and _reads_images(weights):
        raise UsageError(
            f"{spec.path} reads images, whose size its weights do not tell: add ,observation=HEIGHTxWIDTHxCHANNELS, "
            "e.g. ,observation=64x64x3, as the environment returns them."
        ) from refusal
    assert refusal is not None
    raise refusal


def _construct(make: Any, arguments: tuple[Any, ...], weights: Mapping[str, Any], spec: PolicySpec) -> Any:
    try:
        agent = make(*arguments)
        load_weights(agent, weights, name=str(spec.path), called=make.__name__)
    except PolicyError:
        raise
    except Exception as error:
        raise PolicyError(
            f"{make.__name__} does not take the weights of {spec.path}: {in_users_words(error)}"
        ) from error
    return agent


def _environments(shape: tuple[int, ...], n_actions: int) -> Any:
    """What a constructor asks of the environments that the agent was trained in: their spaces."""
    try:
        from gymnasium import spaces
    except ImportError as error:
        raise missing_library(error) from None
    observation = spaces.Box(-np.inf, np.inf, shape, np.float32)
    actions = spaces.Discrete(n_actions)
    return SimpleNamespace(
        single_observation_space=observation,
        single_action_space=actions,
        observation_space=observation,
        action_space=actions,
    )


def _shapes(weights: Mapping[str, Any], spec: PolicySpec) -> Iterator[tuple[int, ...]]:
    text = spec.text("observation")
    if text is not None:
        if not re.fullmatch(r"[1-9]\d{0,5}(x[1-9]\d{0,5})*", text):
            raise UsageError(
                f"The option observation={text} is not a shape: write it as observation=64x64x3."
            )
        yield tuple(int(part) for part in text.split("x"))
        return
    if _reads_images(weights):
        channels = int(next(each for each in weights.values() if each.ndim == 4).shape[1])
        for size in _IMAGE_SIZES:
            yield (size, size, channels)
            yield (channels, size, size)
        return
    matrices = [each for each in weights.values() if each.ndim == 2]
    if not matrices:
        raise UsageError(
            f"{spec.path} does not tell the size of its observations: add ,observation=SIZE, e.g. ,observation=4."
        )
    yield (int(matrices[0].shape[1]),)


def _action_counts(weights: Mapping[str, Any], spec: PolicySpec) -> list[int]:
    given = spec.whole_number("actions")
    if given is not None:
        return [given]
    head = spec.text("head") or "actor"
    layers = [each for name, each in weights.items() if name.startswith(f"{head}.") and each.ndim == 2]
    if layers:
        return [int(layers[-1].shape[0])]
    # The head has another name: the last layers of the network are the likeliest to be it.
    counts = [int(each.shape[0]) for each in weights.values() if each.ndim == 2 and each.shape[0] > 1]
    if not counts:
        raise UsageError(f"{spec.path} does not tell how many actions there are: add ,actions=NUMBER.")
    return list(dict.fromkeys(reversed(counts)))


def _reads_images(weights: Mapping[str, Any]) -> bool:
    return any(each.ndim == 4 for each in weights.values())
