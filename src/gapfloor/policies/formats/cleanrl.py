"""CleanRL's agents as policies: `cleanrl:agent.pt,agent=ppo:Agent`.

CleanRL's scripts save a state_dict. Its class is in the script that trained it, which the user names; that is the
user's own code. Logits are what the agent's `actor` gives during `get_action_and_value`, so that whatever the
class does to an observation is done here as well. Agents with an LSTM (`ppo_atari_lstm`) keep their state
with the harness. A file that holds a whole agent is a pickle and needs the user's word.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.content_hash import hash_arrays, source_of
from gapfloor.policies.formats.inference import missing_library, repeatable, require_torch, writeable
from gapfloor.policies.formats.spec import TRUST_MEANS, PolicySpec
from gapfloor.policies.protocol import Logits, Policy, StatefulPolicy
from gapfloor.users_code import import_from_here, put_folder_on_path


class _Head:
    """Catches the output of the agent's actor while the agent acts."""

    def __init__(self, agent: Any, head: str) -> None:
        self.logits: Any = None
        agent.get_submodule(head).register_forward_hook(self._catch)

    def _catch(self, module: Any, inputs: Any, output: Any) -> None:
        self.logits = output


class CleanRLPolicy:
    """An agent of CleanRL; see `gapfloor.policies.protocol.Policy`."""

    backend = "torch"

    def __init__(self, agent: Any, *, head: str, name: str, fingerprint: str, device: str) -> None:
        self.name, self.fingerprint, self.device = name, fingerprint, device
        self.header: Mapping[str, Any] = {"encoder": "cleanrl"}
        self._agent = agent.to(device).eval()
        self._head = _Head(self._agent, head)

    def logits(self, observations: Any) -> Logits:
        """Logits of observations, handed over as 32-bit floats as CleanRL does."""
        with repeatable():
            inputs, actions = self._inputs(observations)
            self._agent.get_action_and_value(inputs, action=actions)
            return self._caught()

    def _inputs(self, observations: Any) -> tuple[Any, Any]:
        import torch

        if isinstance(observations, Mapping):
            raise PolicyError(
                f"{self.name} reads one array, not a dict of {', '.join(sorted(observations))}: add ,key=NAME."
            )
        array = writeable(np.asarray(observations, dtype=np.float32))
        # An action is named so that none is drawn.
        return (
            torch.from_numpy(array).to(self.device),
            torch.zeros(len(array), dtype=torch.int64, device=self.device),
        )

    def _caught(self) -> Logits:
        if self._head.logits is None:
            raise PolicyError(
                f"{self.name} did not use the part that head= names: name the one that gives logits."
            )
        logits: Logits = self._head.logits.float().cpu().numpy()
        self._head.logits = None
        return logits


class CleanRLRecurrentPolicy:
    """An agent of CleanRL with an LSTM; see `gapfloor.policies.protocol.StatefulPolicy`."""

    backend = "torch"

    def __init__(self, agent: Any, **described: Any) -> None:
        self._inner = CleanRLPolicy(agent, **described)
        self.name, self.header = self._inner.name, self._inner.header
        self.fingerprint, self.device = self._inner.fingerprint, self._inner.device
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


def load_cleanrl(spec: PolicySpec, *, device: str) -> Policy | StatefulPolicy:
    """The agent of a state_dict and a class, or (with the user's word) of a whole pickled agent."""
    torch = require_torch(device)
    path, name = spec.file(), spec.text("agent")
    put_folder_on_path()
    saved = _read(torch, path, spec)
    if isinstance(saved, torch.nn.Module):
        agent = saved
    elif name is None:
        raise UsageError(
            f"{path} holds weights only: name the class that they belong to, as ,agent=ppo:Agent."
        )
    else:
        agent = _build(_find_class(name), saved, spec)
    head = spec.text("head") or "actor"
    takes = _parameters(agent, path)
    try:
        agent.get_submodule(head)
    except AttributeError:
        parts = ", ".join(each for each, _ in agent.named_children())
        raise PolicyError(
            f"{type(agent).__name__} has no part '{head}' for logits of discrete actions: it has {parts}; name one "
            "with ,head=NAME."
        ) from None
    described = {
        "head": head,
        "name": path.stem,
        "fingerprint": hash_arrays(agent.state_dict(), _description(agent, head)),
        "device": device,
    }
    if "lstm_state" in takes:
        return CleanRLRecurrentPolicy(agent, **described)
    return CleanRLPolicy(agent, **described)


def _parameters(agent: Any, path: Path) -> Mapping[str, Any]:
    method = getattr(agent, "get_action_and_value", None)
    if method is None:
        raise PolicyError(
            f"{path} is an agent of the class {type(agent).__name__}, which has no get_action_and_value: values of a "
            "Q-network are not logits, so only CleanRL's PPO agents can be read."
        )
    return inspect.signature(method).parameters


def _description(agent: Any, head: str) -> dict[str, Any]:
    own = {type(part) for part in agent.modules() if not type(part).__module__.startswith("torch.")}
    # The repr lists the layers, so that an activation without weights counts.
    return {"head": head, "layers": repr(agent), "source": sorted(source_of(cls) for cls in own)}


def _read(torch: Any, path: Path, spec: PolicySpec) -> Any:
    try:
        saved = torch.load(path, map_location="cpu", weights_only=not spec.is_trusted)
    except Exception as error:
        if spec.is_trusted:
            raise PolicyError(f"{path} does not load: {type(error).__name__}: {error}") from error
        reason = str(error)
        if "weights" in reason.lower() and (
            "unpickl" in type(error).__name__.lower() or "global" in reason.lower()
        ):
            raise PolicyError(
                f"{path} holds more than tensors, and reading it would run Python: {TRUST_MEANS}; or save "
                "agent.state_dict() instead."
            ) from None
        raise PolicyError(f"{path} is not a file that torch.save() wrote: give one.") from None
    if (
        isinstance(saved, Mapping) and "model_weights" in saved
    ):  # CleanRL's scripts that keep their arguments too
        saved = saved["model_weights"]
    if not isinstance(saved, torch.nn.Module) and not _is_state(torch, saved):
        raise PolicyError(
            f"{path} holds a {type(saved).__name__}, not a state_dict: save agent.state_dict()."
        )
    return saved


def _is_state(torch: Any, saved: Any) -> bool:
    return isinstance(saved, Mapping) and all(isinstance(each, torch.Tensor) for each in saved.values())


def _find_class(name: str) -> Any:
    module_name, _, class_name = name.partition(":")
    module = import_from_here(module_name, named=f"agent={name}", error=PolicyError)
    found = getattr(module, class_name, None)
    if not isinstance(found, type):
        raise PolicyError(f"{module_name} has no class '{class_name}': name one, as agent=ppo:Agent.")
    return found


def _build(cls: Any, weights: Mapping[str, Any], spec: PolicySpec) -> Any:
    required = [
        each
        for each in inspect.signature(cls).parameters.values()
        if each.default is each.empty and each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    try:
        agent = cls(*([_environments(weights, spec)] if required else []))
        agent.load_state_dict(weights)
    except (PolicyError, UsageError):
        raise
    except Exception as error:
        raise PolicyError(
            f"{cls.__name__} does not take the weights of {spec.path}: {type(error).__name__}: "
            f"{' '.join(str(error).split())[:300]}"
        ) from error
    return agent


def _environments(weights: Mapping[str, Any], spec: PolicySpec) -> Any:
    """What an agent's constructor asks of the environments that it was trained in: their spaces."""
    try:
        from gymnasium import spaces
    except ImportError as error:
        raise missing_library(error) from None
    observation = spaces.Box(-np.inf, np.inf, _observation_shape(weights, spec), np.float32)
    actions = spaces.Discrete(spec.whole_number("actions") or _n_actions(weights, spec))
    return SimpleNamespace(
        single_observation_space=observation,
        single_action_space=actions,
        observation_space=observation,
        action_space=actions,
    )


def _observation_shape(weights: Mapping[str, Any], spec: PolicySpec) -> tuple[int, ...]:
    text = spec.text("observation")
    if text is not None:
        if not re.fullmatch(r"\d+(x\d+)*", text):
            raise UsageError(f"The option observation={text} is not a shape: write observation=64x64x3.")
        return tuple(int(part) for part in text.split("x"))
    if any(each.ndim == 4 for each in weights.values()):
        raise UsageError(
            f"{spec.path} reads images, whose size its weights do not tell: add ,observation=64x64x3, as the "
            "environment gives them."
        )
    return (int(next(each for each in weights.values() if each.ndim == 2).shape[1]),)


def _n_actions(weights: Mapping[str, Any], spec: PolicySpec) -> int:
    head = spec.text("head") or "actor"
    layers = [each for name, each in weights.items() if name.startswith(f"{head}.") and each.ndim == 2]
    if not layers:
        raise UsageError(f"{spec.path} does not tell how many actions there are: add ,actions=15.")
    return int(layers[-1].shape[0])
