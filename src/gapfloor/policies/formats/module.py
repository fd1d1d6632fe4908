"""The user's own networks as policies: `statedict:weights.pt,net=module:Class,args=4,3`, or a module in memory.

The class or function is the user's own code and is imported because the line names it; the file holds weights only. The
network gets tensors and may return logits, a tuple, a dict or a distribution. Networks of actor-critic agents return
more than logits: which part holds them is decided at the first call, said once, and kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gapfloor.engines.engine import map_arrays
from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.acting import copy_of_network
from gapfloor.policies.formats.content_hash import describe_module, hash_arrays
from gapfloor.policies.formats.network import NetworkForm, RecurrentPolicy, TorchPolicy
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.torch_file import read_network
from gapfloor.policies.notes import note_once
from gapfloor.policies.policy import Policy, StatefulPolicy
from gapfloor.users_code import parameters_of

#: Names under which networks commonly take the state of their memory, after the observation. The second group also
#: names other things, so it counts only in a network with recurrent layers.
_STATE_NAMES = (
    "h", "hx", "h0", "hidden", "hidden_state", "rnn_state", "rnn_hxs", "lstm_state", "recurrent_state"
)  # fmt: skip
_VAGUE_STATE_NAMES = ("state", "states", "memory", "carry")

#: What to do about a network whose memory cannot be carried.
_REMEDY = (
    "Write forward(x, h=None) that returns (logits, h), with h of the shape [layers, rows, size] or [rows, size]; or "
    "give an object with initial_state(n) and logits(observations, state, first)."
)

#: Names under which networks commonly return logits, the clearest first.
_LOGIT_NAMES = ("logits", "action_logits", "policy_logits", "action_dist_inputs", "pi", "policy", "actor")


class ModulePolicy(TorchPolicy):
    """A torch network of the user's own."""

    def __init__(self, module: Any, *, name: str, device: str, form: NetworkForm | None = None) -> None:
        super().__init__(module, name=name, header={"encoder": type(module).__name__}, device=device)
        self._form = form or NetworkForm()
        self._logits_at: tuple[Any, ...] | None = None
        """Where the logits are in what the network returns; None before the first call."""
        self._channels_first: bool | None = False if self._form.transpose else None

    def read(self, observations: Any) -> Any:
        # Bytes are images and doubles are what Python computes in: networks compute with 32-bit floats.
        return map_arrays(
            self._form.apply(observations),
            lambda each: (
                each.float() if each.is_floating_point() or str(each.dtype) == "torch.uint8" else each
            ),
        )

    def compute(self, inputs: Any, *memory: Any) -> tuple[Sequence[Any], Any]:
        state = None
        if memory:
            before, starts = memory
            output = self._run(inputs, _restarted(before, starts))
            if not isinstance(output, (tuple, list)) or len(output) < 2:
                raise PolicyError(f"{self.name} takes a state but does not return one. {_REMEDY}")
            *rest, state = output
            for each in state if isinstance(state, (tuple, list)) else (state,):
                if not _is_array(each) or each.ndim not in (2, 3) or each.shape[-2] != len(starts):
                    raise PolicyError(
                        f"{self.name} returned a state of {_describe(each)} for {len(starts)} rows, so its memory "
                        f"cannot be kept row by row. {_REMEDY}"
                    )
            output = rest[0] if len(rest) == 1 else rest
        else:
            layer = _recurrent_layer(self.network) if self._logits_at is None else None
            is_sequence = isinstance(inputs, Mapping) or inputs.ndim == 3
            if (
                layer is not None
                and not is_sequence
                and getattr(self.network, "keeps_no_state", False) is not True
            ):
                raise PolicyError(
                    f"{self.name} contains a layer {type(layer).__name__}, but forward takes no state, so its memory "
                    f"would be lost after every step. {_REMEDY} If it needs no memory, set keeps_no_state = True on it."
                )
            output = self._run(inputs)
        if self._form.output is not None:
            output = self._form.choose(output, name=self.name)
        if self._logits_at is None:
            self._logits_at = find_logits(output, name=self.name)
        for step in self._logits_at:
            output = output.logits if step is _ITS_LOGITS else output[step]
        return (output,), state

    def _run(self, inputs: Any, *state: Any) -> Any:
        """The network's output; images are turned where it does not take them as the environment gives them."""
        if self._channels_first is False or isinstance(inputs, Mapping) or inputs.ndim != 4:
            return self.network(inputs, *state)
        turned = inputs.permute(0, 3, 1, 2).contiguous()
        if self._channels_first:
            return self.network(turned, *state)
        try:
            output = self.network(inputs, *state)
            self._channels_first = False
        except RuntimeError as error:
            try:
                output = self.network(turned, *state)
            except Exception:
                raise error from None
            self._channels_first = True
            note_once(f"{self.name}: images are given to the network as channels, height, width.")
        return output


def policy_in_memory(module: Any, *, device: str) -> Policy | StatefulPolicy:
    """The policy of a torch module, which may be an agent as in CleanRL: with `get_action_and_value`, not `forward`."""
    name = type(module).__name__
    # Not type(module).forward: TorchScript's modules raise an error there.
    classes = [cls for cls in type(module).__mro__ if cls.__module__ != "torch.nn.modules.module"]
    has_forward = any("forward" in vars(cls) for cls in classes)
    network = copy_of_network(module)
    if has_forward or not callable(getattr(module, "get_action_and_value", None)):
        return policy_of_module(network, name=name, device=device)
    from gapfloor.policies.formats.cleanrl import policy_of_agent

    return policy_of_agent(network, where=f"The {name} in memory", name=name, device=device)


def policy_of_module(
    module: Any, *, name: str, device: str, form: NetworkForm | None = None
) -> ModulePolicy | RecurrentPolicy:
    """The policy of a torch module; one whose `forward` takes a state gets back what it returned at the last step."""
    policy = ModulePolicy(module, name=name, device=device, form=form)
    names = _STATE_NAMES + (_VAGUE_STATE_NAMES if _recurrent_layer(module) else ())
    taken = [each for each in list(parameters_of(module.forward).values())[1:] if each.name in names]
    if not taken:
        return policy
    if taken[0].default is not None:
        raise PolicyError(
            f"forward of {name} takes '{taken[0].name}', which is not None by default. {_REMEDY}"
        )
    note_once(
        f"{name}: its state '{taken[0].name}' is kept from step to step, and empty when an episode starts."
    )
    return RecurrentPolicy(policy)


def _restarted(state: Any, starts: Any) -> Any:
    """The state with zeros in the rows that start an episode; rows are the last axis but one."""
    if isinstance(state, (tuple, list)):
        return tuple(_restarted(each, starts) for each in state)
    return None if state is None else state * (1 - starts)[:, None].to(state.dtype)


def _recurrent_layer(network: Any) -> Any:
    """The first RNN, LSTM or GRU of a network, or None."""
    import torch

    kinds = (torch.nn.RNNBase, torch.nn.RNNCellBase)
    return next((each for each in network.modules() if isinstance(each, kinds)), None)


def load_state_dict_policy(spec: PolicySpec, *, device: str) -> ModulePolicy | RecurrentPolicy:
    """The network that the user names, with the weights of a file."""
    form = NetworkForm.of(spec)
    module = read_network(
        spec, option="net", arguments=lambda _: arguments_of(spec.options.get("args")), device=device
    )
    policy = policy_of_module(module, name=spec.path.stem, device=device, form=form)
    description = {"form": form.describe(), **describe_module(module)}
    if isinstance(policy, RecurrentPolicy):
        description["state"] = "kept"
    policy.fingerprint = hash_arrays(module.state_dict(), description)
    return policy


def arguments_of(text: str | None) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a constructor: `4,64` in order, or by name as JSON, `{"inputs": 4, "actions": 3}`.

    >>> arguments_of("4,relu")
    ([4, 'relu'], {})
    >>> arguments_of('{"hidden": [64, 64]}')
    ([], {'hidden': [64, 64]})
    """
    if not text:
        return [], {}
    is_json = text.startswith(("{", "["))
    values = []
    for part in [text] if is_json else text.split(","):
        try:
            values.append(json.loads(part))
        except (ValueError, RecursionError) as error:
            if is_json:
                raise UsageError(
                    f'The option args={text[:80]} is not JSON ({error}): write it as args=4,3 or args={{"inputs": 4}}.'
                ) from None
            values.append(part.strip())
    if not is_json:
        return values, {}
    return (values[0], {}) if isinstance(values[0], list) else ([], values[0])


#: Stands for the attribute of a distribution that holds its logits.
_ITS_LOGITS = object()


def find_logits(output: Any, *, name: str) -> tuple[Any, ...]:
    """The steps that lead to the logits in what a network returned: none for a tensor, else keys and positions."""
    if _is_array(output):
        return ()
    if hasattr(output, "log_prob"):
        if not _is_array(getattr(output, "logits", None)):
            raise PolicyError(
                f"{name} returned a {type(output).__name__}, which is not a distribution over discrete actions: "
                "return logits of the shape [rows, actions]."
            )
        note_once(f"{name}: the logits are those of the {type(output).__name__} that it returns.")
        return (_ITS_LOGITS,)
    if isinstance(output, Mapping):
        parts = dict(output)
    elif isinstance(output, Sequence) and not isinstance(output, (str, bytes)):
        parts = dict(enumerate(output))
    else:
        raise PolicyError(
            f"{name} returned a {type(output).__name__}, not logits: return an array of the shape [rows, actions]."
        )
    candidates = [each for each in _LOGIT_NAMES if each in parts][:1] or [
        # A value head has one column and a recurrent state three axes.
        step
        for step, each in parts.items()
        if hasattr(each, "log_prob") or (_is_array(each) and len(each.shape) == 2 and each.shape[1] > 1)
    ]
    if len(candidates) != 1:
        shapes = ", ".join(f"{step}: {_describe(each)}" for step, each in parts.items())
        raise PolicyError(
            f"{name} returned several things ({shapes}), and {len(candidates) or 'none'} of them could be logits: "
            "return the logits alone."
        )
    step = candidates[0]
    note_once(f"{name}: the logits are its output {step!r} ({_describe(parts[step])}).")
    return (step, *find_logits(parts[step], name=name))


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _describe(value: Any) -> str:
    return f"shape {tuple(value.shape)}" if _is_array(value) else type(value).__name__
