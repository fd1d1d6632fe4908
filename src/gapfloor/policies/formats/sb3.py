"""Stable-Baselines3 models as policies: `sb3:model.zip`, or a model or network in memory.

Actor-critic networks (PPO, A2C, TRPO, MaskablePPO, RecurrentPPO) hand out a distribution, whose parameters are
returned; SAC and TQC have an actor with a mean and a deviation before squashing; TD3 and DDPG return the action itself.
A DQN has no distribution: its values are not logits. It plays epsilon-greedy with the exploration rate that its file
records, so that is its distribution here: under the sampled rule it does what `model.predict(deterministic=False)`
does, and under the greedy rule it takes its best action.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gapfloor.actions.spaces import ActionSpace, Box, Discrete, several
from gapfloor.errors import PolicyError
from gapfloor.machine import without_chatter
from gapfloor.policies.acting import copy_of_network
from gapfloor.policies.backends import computes_graphs, missing_library, require_torch
from gapfloor.policies.formats.content_hash import hash_arrays, sources_in
from gapfloor.policies.formats.network import Readout, RecurrentPolicy, TorchPolicy, check_array
from gapfloor.policies.formats.preprocessing import FrameStack, Preparation, statistics_of, with_preparation
from gapfloor.policies.formats.sb3_zip import SavedModel, agent_name, read_zip
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.torch_file import load_weights
from gapfloor.policies.notes import first_line, note_once
from gapfloor.policies.policy import Policy, StatefulPolicy
from gapfloor.users_code import named_callable, parameters_of

#: Arguments with which a policy is made faster: no optimizer, with which torch imports its compiler (two seconds that
#: only training needs), and no first weights that are replaced at once.
_WITHOUT_TRAINING = {"optimizer_class": lambda *parameters, **settings: None, "ortho_init": False}


class SB3Policy(TorchPolicy):
    """A network of Stable-Baselines3; `exploration` is the rate of a DQN."""

    def __init__(self, network: Any, *, exploration: float = 0.0, **described: Any) -> None:
        super().__init__(network, **described)
        self.acts_in = space_of(network.action_space)
        """The action space that it was trained in."""
        self.reads_masks = "maskable" in type(network).__module__
        """Whether it was trained to choose among legal actions only."""
        self._exploration = exploration

    def read(self, observations: Any) -> Any:
        space = self.network.observation_space
        check_shapes(space, observations, name=self.name)
        if isinstance(observations, Mapping):  # the engine may see more than the policy was shown
            return {key: _as_saved(observations[key], each) for key, each in space.spaces.items()}
        return _as_saved(observations, space)

    def compute(self, inputs: Any, *memory: Any) -> tuple[Sequence[Any], Any]:
        network = self.network
        if memory:
            distribution, state = network.get_distribution(inputs, *memory)
            return self._parameters(distribution), state
        if hasattr(network, "q_net"):
            self.readout = Readout("values", exploration=self._exploration)
            return (network.q_net(inputs),), None
        if hasattr(network, "get_distribution"):
            return self._parameters(network.get_distribution(inputs)), None
        actor = network.actor
        if not hasattr(actor, "get_action_dist_params"):
            space = network.action_space
            self.readout = Readout("action", bounds=(space.low, space.high))
            return (actor(inputs),), None
        mean, log_deviation, keywords = actor.get_action_dist_params(inputs)
        if keywords:
            distribution = actor.action_dist.proba_distribution(mean, log_deviation, **keywords)
            return self._parameters(distribution), None
        self.readout = Readout("squashed", is_logarithm=True)
        return (mean, log_deviation), None

    def _parameters(self, distribution: Any) -> Sequence[Any]:
        """The parameters of an SB3 distribution: logits of numbered actions, or those of a distribution of ours."""
        kind = type(distribution).__name__
        several = getattr(distribution, "distributions", None)
        parts: Any = several or getattr(distribution, "distribution", None)
        if isinstance(parts, (list, tuple)):
            self.readout = Readout("categoricals")
            return [each.logits for each in parts]
        logits = getattr(parts, "logits", None)
        if logits is not None and ("Bernoulli" in kind or logits.ndim == 2):
            self.readout = Readout("bernoulli" if "Bernoulli" in kind else "logits")
            return (logits,)
        if not hasattr(parts, "loc"):
            raise PolicyError(
                f"The {kind} of {self.name} is not a distribution that gapfloor knows: it reads categorical, Bernoulli "
                "and Gaussian ones."
            )
        if "StateDependentNoise" in kind:
            note_once(
                f"{self.name} was trained with noise that depends on the state (use_sde) and is kept for several "
                "steps; under the rule sampled it is drawn afresh at every step."
            )
        squashes = "Squashed" in kind or getattr(distribution, "bijector", None) is not None
        self.readout = Readout("squashed" if squashes else "gaussian")
        return parts.loc, parts.scale


def _as_saved(tensor: Any, space: Any) -> Any:
    """An observation in the layout of the saved space: SB3 gives images to its networks with their channels first."""
    shape = tuple(space.shape)
    if tensor.ndim == 4 and tuple(tensor.shape[1:]) != shape:
        tensor = tensor.permute(0, 3, 1, 2)
    return tensor.reshape(-1, *shape)


def space_of(actions: Any) -> ActionSpace:
    """Our description of the Gymnasium space that a network acts in."""
    from gymnasium import spaces

    if isinstance(actions, spaces.Discrete):
        return Discrete(int(actions.n))
    if isinstance(actions, spaces.Box):
        return Box(*(tuple(np.ravel(bound).astype(float).tolist()) for bound in (actions.low, actions.high)))
    sizes = actions.nvec if isinstance(actions, spaces.MultiDiscrete) else [2] * int(np.prod(actions.shape))
    return several([int(size) for size in np.ravel(sizes)])


def check_shapes(space: Any, observations: Any, *, name: str) -> None:
    """Refuse observations whose shape is not the one that the policy was trained on, naming both."""
    from stable_baselines3.common.preprocessing import get_obs_shape, is_image_space

    if hasattr(space, "spaces"):
        if not isinstance(observations, Mapping) or not set(space.spaces) <= set(observations):
            seen = ", ".join(sorted(observations)) if isinstance(observations, Mapping) else "one array"
            raise PolicyError(f"{name} reads a dict of {', '.join(sorted(space.spaces))}, not {seen}.")
        for key, subspace in space.spaces.items():
            check_shapes(subspace, observations[key], name=f"{name} ({key})")
        return
    check_array(observations, name=name)
    wanted = tuple(space.shape if space.shape is not None else get_obs_shape(space))
    found = tuple(observations.shape[1:])
    # Images may have their channels first or last.
    last = (*wanted[1:], wanted[0]) if is_image_space(space) else wanted
    if found not in (wanted, last):
        raise PolicyError(
            f"{name} reads observations of shape {last}, not {found}: was it trained behind a wrapper, e.g. "
            "framestack=4?"
        )


def load_sb3(spec: PolicySpec, *, device: str, backend: str | None = None) -> Policy | StatefulPolicy:
    """The policy of a zip, rebuilt from plain text and tensors."""
    model = read_zip(spec.path)
    header = header_of(model.policy_class, model.data.get("_total_timesteps"), model.data.get("seed"))
    extractor = spec.options.get("extractor")
    if extractor is None and computes_graphs(backend, device):
        from gapfloor.policies.formats.sb3_graph import mlp_graph

        if (policy := mlp_graph(model, name=spec.path.stem, header=header)) is not None:
            return policy
    require_torch(device)
    try:
        # gym, which it imports where it is installed, prints a notice about itself, which users do not need.
        with without_chatter("stderr"):
            import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise missing_library(error) from None
    if extractor is not None:
        model = replace(
            model,
            extractor=named_callable(extractor, what="option extractor=", error=PolicyError, kind="class "),
        )
    return policy_of_network(
        _rebuild(model),
        name=spec.path.stem,
        where=str(spec.path),
        header=header,
        exploration=model.data.get("exploration_rate"),
        device=device,
    )


def policy_of_network(
    network: Any, *, name: str, where: str, header: Mapping[str, Any], exploration: Any, device: str
) -> Policy | StatefulPolicy:
    """The gapfloor policy of an SB3 network; `exploration` is the rate of a DQN, and `where` names it in a refusal."""
    content, rate = fingerprint_of_network(network), 0.0
    if hasattr(network, "q_net"):
        rate = exploration or 0.0
        if not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
            raise PolicyError(
                f"The exploration rate of {where} is {str(rate)[:40]}, not a number from 0 to 1: save the model again "
                "with model.save()."
            )
        rate = float(rate)
        content = hash_arrays({}, {"exploration": rate, "of": content})
    elif not any(hasattr(network, part) for part in ("lstm_actor", "get_distribution", "actor")):
        raise PolicyError(
            f"{where} holds a {type(network).__name__}, which has no distribution over actions: gapfloor reads PPO, "
            "A2C, TRPO, MaskablePPO, RecurrentPPO, SAC, TQC, TD3, DDPG and DQN."
        )
    policy = SB3Policy(
        network, name=name, header=header, device=device, fingerprint=content, exploration=rate
    )
    if not hasattr(network, "lstm_actor"):
        return policy
    layers, _, size = network.lstm_hidden_state_shape
    return RecurrentPolicy(policy, layers=layers, size=size)


def policy_of_model(given: Any, *, device: str) -> Policy | StatefulPolicy:
    """The policy of a network or model in memory, with the normalisation and frame stack of its environments."""
    network = getattr(given, "policy", given)
    cls = type(network)
    steps, seed = getattr(given, "_total_timesteps", None), getattr(given, "seed", None)
    policy = policy_of_network(
        # SB3 keeps its last distribution, whose tensors belong to a computation and cannot be copied.
        copy_of_network(network, shared=getattr(network, "action_dist", None)),
        name=cls.__name__,
        where=f"The {cls.__name__} in memory",
        header=header_of((cls.__module__, cls.__name__), steps, seed),
        exploration=getattr(given, "exploration_rate", None),
        device=device,
    )
    if network is given:
        return policy
    found: dict[str, Any] = {}
    environments = given.get_env()
    while environments is not None:
        kind = type(environments).__name__
        if kind == "VecNormalize":
            found.setdefault("statistics", statistics_of(environments))
        elif kind == "VecFrameStack":
            found.setdefault("stack", FrameStack("framestack", environments.stacked_obs.n_stack))
        environments = getattr(environments, "venv", None)
    preparation = Preparation(**found)
    parts = ["normalised with the statistics of its VecNormalize"] if preparation.statistics else []
    if preparation.stack:
        parts.append(f"stacked as by its VecFrameStack ({preparation.stack.n} frames)")
    if parts:
        note_once(f"{type(given).__name__}: observations are {' and '.join(parts)}.")
    return with_preparation(policy, preparation)


def _rebuild(model: SavedModel) -> Any:
    """The network that a zip describes in plain text, with the weights of the zip."""
    from gapfloor.policies.formats.memory_limit import WeightLimit

    module, name = model.policy_class
    if agent_name(model.policy_class) is None:
        raise model.needs_function(
            f"holds a policy of the class {module}.{name or '?'}, which is not a known one"
        )
    try:
        cls = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise missing_library(error) from None
    try:
        parts = (model.space("observation_space"), model.space("action_space"), lambda _: 0.0)
        taken = parameters_of(cls)
        keywords = model.keywords() | {k: each for k, each in _WITHOUT_TRAINING.items() if k in taken}
        with WeightLimit(model.weights, name=str(model.path)):
            network = cls(*parts, **keywords)
        load_weights(network, model.weights, name=str(model.path), called=f"the {name} that it describes")
    except PolicyError:
        raise
    except Exception as error:
        raise model.damaged(f"{type(error).__name__}: {first_line(error)}") from None
    return network


def fingerprint_of_network(network: Any) -> str:
    """The hash of weights, class, activation and what happens to an observation before the first layer."""
    from stable_baselines3.common.preprocessing import is_image_space

    space = network.observation_space
    spaces = dict(space.spaces) if hasattr(space, "spaces") else {"": space}
    description = {
        "policy": f"{type(network).__module__}.{type(network).__qualname__}",
        "activation": getattr(getattr(network, "activation_fn", None), "__name__", ""),
        "normalize_images": bool(getattr(network, "normalize_images", True)),
        "observations": {k: [list(s.shape or ()), bool(is_image_space(s))] for k, s in spaces.items()},
        "source": sources_in(network, libraries=("stable_baselines3.", "sb3_contrib.", "torch.")),
    }
    if type(network.action_space).__name__ != "Discrete":
        description["actions"] = str(space_of(network.action_space))
    return hash_arrays(network.state_dict(), description)


def header_of(policy_class: tuple[str, str], steps: Any, seed: Any) -> dict[str, Any]:
    """What is known of the run: a name for the agent, the seed and the budget."""
    from gapfloor.training.spec import budget_label

    header: dict[str, Any] = {"encoder": agent_name(policy_class) or "sb3-custom"}
    if isinstance(steps, int) and steps > 0:
        header["budget"] = budget_label(steps)
    if isinstance(seed, int):
        header["seed"] = seed
    return header
