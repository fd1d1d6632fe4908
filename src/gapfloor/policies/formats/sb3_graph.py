"""Stable-Baselines3's own MLP policies as ONNX graphs, made of a zip's text and arrays.

PPO, A2C, DQN, SAC, TD3 and DDPG with the policy `MlpPolicy` on vectors are chains of linear layers. They need neither
torch nor the library, whose imports take longer than a short evaluation. The graph has the nodes that torch's exporter
writes, so its numbers are the same. What is not of this form is left to `sb3`.

Rows of `make bench`: sb3-cartpole-sampled, sb3-hopper-sampled.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.policies.formats.content_hash import hash_arrays
from gapfloor.policies.formats.network import Readout
from gapfloor.policies.formats.sb3_zip import SavedModel
from gapfloor.policies.formats.torch_file import read_state_dict
from gapfloor.policies.graph import GraphPolicy

Array = npt.NDArray[Any]

#: Keyword arguments of a policy that its arrays tell, or that only training needs.
_TOLD = (
    "net_arch", "activation_fn", "n_critics", "use_sde", "optimizer_class", "optimizer_kwargs", "ortho_init",
    "log_std_init",
)  # fmt: skip
_OPERATORS = {"Tanh": "Tanh", "ReLU": "Relu"}
#: The bounds between which SAC keeps the logarithm of a deviation.
_LOG_DEVIATIONS = (np.float32(-20), np.float32(2))


@dataclass(frozen=True)
class _Family:
    """The networks of one class of policies."""

    activation: str
    hidden: str
    """Where the hidden layers are."""
    heads: tuple[str, ...]
    """The layers after them; none where the last of the hidden ones is it."""
    unused: tuple[str, ...]
    """What begins the names of tensors that choose no actions."""


_FAMILIES = {
    "stable_baselines3.common.policies.ActorCriticPolicy": _Family(
        "Tanh", "mlp_extractor.policy_net", ("action_net",), ("mlp_extractor.value_net.", "value_net.", "log_std")
    ),
    "stable_baselines3.dqn.policies.DQNPolicy": _Family("ReLU", "q_net.q_net", (), ("q_net_target.",)),
    "stable_baselines3.sac.policies.SACPolicy": _Family(
        "ReLU", "actor.latent_pi", ("actor.mu", "actor.log_std"), ("critic",)
    ),
    "stable_baselines3.td3.policies.TD3Policy": _Family("ReLU", "actor.mu", (), ("actor_target.", "critic")),
}  # fmt: skip


def mlp_graph(model: SavedModel, *, name: str, header: Mapping[str, Any]) -> GraphPolicy | None:
    """The graph of a zip that holds one of these networks on a vector; None for any other."""
    from gapfloor.policies.formats.sb3 import space_of

    kind = ".".join(model.policy_class)
    family = _FAMILIES.get(kind)
    keywords = model.data.get("policy_kwargs") or {}
    if family is None or not isinstance(keywords, dict):
        return None
    if model.data.get("use_sde") or keywords.get("use_sde"):
        return None
    activation = str(keywords.get("activation_fn", family.activation)).rpartition(".")[2].removesuffix("'>")
    others = {each for each in keywords if not each.startswith(":")} - {*_TOLD}
    actions, seen = model.space("action_space"), model.space("observation_space")
    is_vector = type(seen).__name__ == "Box" and len(seen.shape) == 1
    arrays = read_state_dict(model.weights_file, name=f"policy.pth in {model.path}")
    if others or activation not in _OPERATORS or not is_vector or arrays is None:
        return None
    chain = _chain(arrays, family, n_inputs=seen.shape[0])
    readout = _readout(kind, actions, model.data.get("exploration_rate") or 0.0)
    if chain is None or readout is None or (readout.kind == "gaussian" and "log_std" not in arrays):
        return None
    described = {"policy": kind, "activation": activation, "normalize_images": True,
                 "observations": {"": [list(seen.shape), False]}, "source": []}  # fmt: skip
    if readout.kind not in ("logits", "values"):
        described["actions"] = str(space_of(actions))
    fingerprint = hash_arrays(arrays, described)
    if readout.kind == "values":
        fingerprint = hash_arrays({}, {"exploration": readout.exploration, "of": fingerprint})
    graph = _written(arrays, *chain, activation=_OPERATORS[activation], readout=readout, shape=seen.shape)
    policy = GraphPolicy(graph, name=name, header=header, fingerprint=fingerprint, readout=readout)
    policy.acts_in = space_of(actions)
    return policy


def _written(
    arrays: Mapping[str, Array], layers: Sequence[str], heads: Sequence[str], *, activation: str, readout: Readout,
    shape: tuple[int, ...],
) -> bytes:  # fmt: skip
    """The ONNX file of hidden layers and heads with what the readout needs."""
    from gapfloor.policies.graph_writer import OBSERVATIONS, GraphWriter

    graph = GraphWriter()

    def linear(layer: str, inputs: str) -> str:
        return graph.linear(inputs, arrays[f"{layer}.weight"], arrays[f"{layer}.bias"])

    hidden = graph.add("Flatten", OBSERVATIONS)
    for layer in layers:
        hidden = graph.add(activation, linear(layer, hidden))
    outputs = [linear(head, hidden) for head in heads]
    if readout.kind == "logits":
        total = graph.add("ReduceLogSumExp", outputs[0], axes=[-1])
        outputs = [graph.add("Sub", outputs[0], total)]
    elif readout.kind == "gaussian":
        deviation = graph.add("Exp", graph.constant(arrays["log_std"]))
        outputs.append(graph.add("Expand", deviation, graph.add("Shape", outputs[0])))
    elif readout.kind == "squashed":
        outputs[1] = graph.add(
            "Clip", outputs[1], *(graph.constant(np.asarray(each)) for each in _LOG_DEVIATIONS)
        )
    elif readout.kind == "action":
        outputs = [graph.add("Tanh", outputs[0])]
    return graph.written(outputs, shape=shape)


def _readout(kind: str, actions: Any, exploration: Any) -> Readout | None:
    """What the outputs are in a space of numbered or real-valued actions; None for any other."""
    is_box = type(actions).__name__ == "Box"
    if "dqn" in kind:
        is_rate = isinstance(exploration, (int, float)) and 0 <= exploration <= 1
        return Readout("values", exploration=float(exploration)) if is_rate else None
    if "ActorCritic" in kind and not is_box:
        return Readout() if type(actions).__name__ == "Discrete" else None
    if "ActorCritic" in kind:
        return Readout("gaussian")
    if "sac" in kind:
        return Readout("squashed", is_logarithm=True)
    return Readout("action", bounds=(actions.low, actions.high))


def _chain(
    arrays: Mapping[str, Array], family: _Family, *, n_inputs: int
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Names of the hidden layers and of the heads; None where the arrays are not a chain of linear layers."""
    names = (f"{family.hidden}.{2 * number}" for number in itertools.count())
    layers = tuple(itertools.takewhile(lambda layer: f"{layer}.weight" in arrays, names))
    layers, heads = (layers, family.heads) if family.heads else (layers[:-1], layers[-1:])
    size, left = n_inputs, set(arrays)
    for layer in (*layers, *heads):
        weight, bias = arrays.get(f"{layer}.weight"), arrays.get(f"{layer}.bias")
        if weight is None or bias is None or weight.shape != (*bias.shape, size):
            return None
        size = size if layer in heads else len(bias)
        left -= {f"{layer}.weight", f"{layer}.bias"}
    if not heads or any(each.dtype != np.float32 for each in arrays.values()):
        return None
    return (layers, heads) if all(name.startswith(family.unused) for name in left) else None
