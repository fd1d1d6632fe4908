"""Stable-Baselines3 models as policies: `sb3:model.zip`.

PPO, A2C, TRPO, MaskablePPO and everything else that has a distribution returns its parameters, SAC and TQC those of
their squashed Gaussian, TD3 and DDPG the action (`gapfloor.policies.formats.sb3_outputs`). A DQN has no distribution:
its values are not logits. It plays epsilon-greedy with the exploration rate that its file records, so that is its
distribution here: under the sampled rule it does what `model.predict(deterministic=False)` does, and under the greedy
rule it takes its best action.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping
from typing import Any

import numpy as np

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.content_hash import hash_arrays, source_of
from gapfloor.policies.formats.inference import missing_library, repeatable, require_torch
from gapfloor.policies.formats.recurrent import LstmPolicy
from gapfloor.policies.formats.sb3_outputs import actor_output, distribution_output, space_of
from gapfloor.policies.formats.sb3_zip import POLICY_CLASSES, SavedModel, read_zip
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.torch_file import check_weights_fit, first_line
from gapfloor.policies.policy import Logits, Policy, StatefulPolicy

#: The least probability that an epsilon-greedy distribution gives an action: its logarithm must be finite.
LEAST_PROBABILITY = 1e-30


class SB3Policy:
    """An actor-critic policy of Stable-Baselines3; see `gapfloor.policies.policy.Policy`."""

    backend = "torch"

    def __init__(
        self, network: Any, *, name: str, header: Mapping[str, Any], fingerprint: str, device: str
    ) -> None:
        self.name, self.header, self.fingerprint, self.device = name, header, fingerprint, device
        self.acts_in = space_of(network.action_space)
        """The action space that it was trained in."""
        self.reads_masks = "maskable" in type(network).__module__
        """Whether it was trained to choose among legal actions only."""
        self._network = network.to(device)
        self._network.set_training_mode(False)

    def logits(self, observations: Any) -> Any:
        """Logits of the policy's own distribution, or its parameters over other spaces."""
        with repeatable():
            tensors = self._tensors(observations)
            if not hasattr(self._network, "get_distribution"):
                return actor_output(self._network, tensors, name=self.name)
            return distribution_output(self._network.get_distribution(tensors), name=self.name)

    def step(self, observations: Any, state: Any, starts: Any) -> tuple[Any, Any]:
        """The same and the next state, for a network with an LSTM."""
        tensors = self._tensors(observations)
        distribution, state = self._network.get_distribution(tensors, state, starts)
        return distribution_output(distribution, name=self.name), state

    def _tensors(self, observations: Any) -> Any:
        space = self._network.observation_space
        check_shapes(space, observations, name=self.name)
        if isinstance(observations, Mapping):  # the engine may see more than the policy was shown
            observations = {key: observations[key] for key in space.spaces}
        return self._network.obs_to_tensor(observations)[0]


class SB3ValuePolicy(SB3Policy):
    """A DQN as the epsilon-greedy distribution that it plays."""

    def __init__(self, network: Any, *, exploration: float, **described: Any) -> None:
        super().__init__(network, **described)
        self._exploration = exploration

    def logits(self, observations: Any) -> Logits:
        """Logarithms of the epsilon-greedy probabilities."""
        with repeatable():
            values = self._network.q_net(self._tensors(observations)).cpu().numpy()
        n, n_actions = values.shape
        probabilities = np.full((n, n_actions), self._exploration / n_actions)
        probabilities[np.arange(n), values.argmax(axis=1)] += 1 - self._exploration
        logits: Logits = np.log(np.maximum(probabilities, LEAST_PROBABILITY)).astype(np.float32)
        return logits


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
    if isinstance(observations, Mapping):
        raise PolicyError(
            f"{name} reads one array, not a dict of {', '.join(sorted(observations))}: add ,key=NAME to choose one."
        )
    wanted: Any = space.shape if space.shape is not None else get_obs_shape(space)
    seen_shape = tuple(observations.shape[1:])
    allowed = [tuple(wanted)]
    if is_image_space(space):
        channels, height, width = wanted
        allowed.append((height, width, channels))
    if seen_shape not in allowed:
        raise PolicyError(
            f"{name} reads observations of shape {allowed[-1]}, not {seen_shape}: was it trained behind a wrapper, "
            "e.g. framestack=4?"
        )


def load_sb3(spec: PolicySpec, *, device: str) -> tuple[Policy | StatefulPolicy, PolicySpec]:
    """The policy of a zip: rebuilt from plain text, or unpickled if the user trusts it."""
    require_torch(device)
    try:
        import stable_baselines3  # noqa: F401

        if spec.kind == "recurrent":
            import sb3_contrib  # noqa: F401
    except ImportError as error:
        raise missing_library(error) from None
    model = read_zip(spec.path, with_weights=not spec.is_trusted)
    module, _ = model.policy_class
    if spec.kind == "recurrent" and "recurrent" not in module and not spec.is_trusted:
        raise PolicyError(f"{spec.path} is not a RecurrentPPO model: load it with sb3:{spec.path}.")
    model.action_space()
    network = _unpickle(model) if spec.is_trusted else _rebuild(model)
    policy = policy_of_network(
        network,
        name=spec.path.stem,
        where=str(spec.path),
        header=header_of(model.policy_class, model.data.get("_total_timesteps"), model.data.get("seed")),
        exploration=model.data.get("exploration_rate"),
        device=device,
    )
    return policy, spec


def policy_of_network(
    network: Any, *, name: str, where: str, header: Mapping[str, Any], exploration: Any, device: str
) -> Policy | StatefulPolicy:
    """The gapfloor policy of an SB3 network; `exploration` is the rate of a DQN, and `where` names it in a refusal."""
    described: dict[str, Any] = {
        "name": name,
        "header": header,
        "fingerprint": fingerprint_of_network(network),
        "device": device,
    }
    if hasattr(network, "lstm_actor"):
        layers, _, size = network.lstm_hidden_state_shape
        return LstmPolicy(SB3Policy(network, **described), layers=layers, size=size)
    if hasattr(network, "q_net"):
        rate = _exploration_rate(exploration, where=where)
        described["fingerprint"] = hash_arrays({}, {"exploration": rate, "of": described["fingerprint"]})
        return SB3ValuePolicy(network, exploration=rate, **described)
    if not hasattr(network, "get_distribution") and not hasattr(network, "actor"):
        raise PolicyError(
            f"{where} holds a {type(network).__name__}, which has no distribution over actions: gapfloor reads PPO, "
            "A2C, TRPO, MaskablePPO, RecurrentPPO, SAC, TQC, TD3, DDPG and DQN."
        )
    return SB3Policy(network, **described)


def _exploration_rate(value: Any, *, where: str) -> float:
    rate = value or 0.0
    if not isinstance(rate, (int, float)) or not 0 <= rate <= 1:
        raise PolicyError(
            f"The exploration rate of {where} is {str(value)[:40]}, not a number from 0 to 1: save the model again "
            "with model.save()."
        )
    return float(rate)


def _rebuild(model: SavedModel) -> Any:
    from gapfloor.policies.formats.memory_limit import WeightLimit

    module, name = model.policy_class
    if (module, name) not in POLICY_CLASSES:
        raise model.needs_trust(
            f"holds a policy of the class {module}.{name or '?'}, which is not a known one"
        )
    try:
        cls = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise missing_library(error) from None
    try:
        parts = (model.observation_space(), model.action_space(), model.keywords())
        with WeightLimit(model.weights, name=str(model.path)):
            network = _construct(cls, *parts)
        check_weights_fit(
            network.state_dict(), model.weights, name=str(model.path), network=f"the {name} that it describes"
        )
        network.load_state_dict(model.weights)
    except PolicyError:
        raise
    except Exception as error:
        raise model.damaged(f"{type(error).__name__}: {first_line(error)}") from None
    return network


def _unpickle(model: SavedModel) -> Any:
    from stable_baselines3.common.save_util import load_from_zip_file

    try:
        data, parameters, _ = load_from_zip_file(io.BytesIO(model.content), device="cpu")
        assert data is not None
        keywords = {
            k: v for k, v in data["policy_kwargs"].items() if k not in ("optimizer_class", "optimizer_kwargs")
        }
        network = _construct(data["policy_class"], data["observation_space"], data["action_space"], keywords)
        network.load_state_dict(parameters["policy"])
    except Exception as error:
        raise PolicyError(
            f"{model.path} does not load: {type(error).__name__}: {first_line(error)}"
        ) from error
    return network


def _construct(cls: Any, observations: Any, actions: Any, keywords: Mapping[str, Any]) -> Any:
    return cls(observations, actions, lambda _: 0.0, **keywords)


def fingerprint_of_network(network: Any) -> str:
    """The hash of weights, class, activation and what happens to an observation before the first layer."""
    from stable_baselines3.common.preprocessing import is_image_space

    space = network.observation_space
    spaces = dict(space.spaces) if hasattr(space, "spaces") else {"": space}
    libraries = ("stable_baselines3.", "sb3_contrib.", "torch.")
    own = {type(part) for part in network.modules() if not type(part).__module__.startswith(libraries)}
    description = {
        "policy": f"{type(network).__module__}.{type(network).__qualname__}",
        "activation": getattr(getattr(network, "activation_fn", None), "__name__", ""),
        "normalize_images": bool(getattr(network, "normalize_images", True)),
        "observations": {k: [list(s.shape or ()), bool(is_image_space(s))] for k, s in spaces.items()},
        "source": sorted(source_of(cls) for cls in own),
    }
    if type(network.action_space).__name__ != "Discrete":
        description["actions"] = str(space_of(network.action_space))
    return hash_arrays(network.state_dict(), description)


def header_of(policy_class: tuple[str, str], steps: Any, seed: Any) -> dict[str, Any]:
    """What is known of the run: a name for the agent, the seed and the budget."""
    from gapfloor.training.spec import budget_label

    header: dict[str, Any] = {"encoder": POLICY_CLASSES.get(policy_class, "sb3-custom")}
    if isinstance(steps, int) and steps > 0:
        header["budget"] = budget_label(steps)
    if isinstance(seed, int):
        header["seed"] = seed
    return header
