"""The user's own networks as policies: `statedict:weights.pt,net=module:Class,args=4,3`, or a module in memory.

The class is the user's own code and is imported because the line names it; the file holds weights only. The network
gets tensors and may return logits, a tuple, a dict or a distribution.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.content_hash import describe_module, hash_arrays
from gapfloor.policies.formats.inference import repeatable, writeable
from gapfloor.policies.formats.network_form import NetworkForm
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.formats.state_dict import read_network
from gapfloor.policies.formats.torch_file import check_weights_fit
from gapfloor.policies.network_output import LogitsChoice
from gapfloor.policies.notes import note_once
from gapfloor.policies.policy import Logits
from gapfloor.users_code import in_users_words


class ModulePolicy:
    """A torch network; see `gapfloor.policies.policy.Policy`."""

    backend = "torch"

    def __init__(self, module: Any, *, name: str, device: str, form: NetworkForm | None = None) -> None:
        self.name, self.device = name, device
        self.header: Mapping[str, Any] = {"encoder": type(module).__name__}
        self._module = module.to(device).eval()
        self._form = form or NetworkForm()
        self._choice = LogitsChoice(name)
        self._channels_first: bool | None = True if self._form.transpose else None

    def logits(self, observations: Any) -> Any:
        """Logits or the stated distribution of observations, given as tensors of floats or of whole numbers."""
        prepared = self._form.apply(observations)
        with repeatable():
            output = self._run(prepared)
            if self._form.output is not None or self._form.second is not None:
                output = self._form.choose(output, name=self.name)
            logits: Logits = self._choice.find(output).detach().float().cpu().numpy()
        return self._form.policy_output(logits)

    def _run(self, observations: Any) -> Any:
        inputs = self._tensors(observations)
        if self._channels_first is not None or not _is_image(observations):
            return self._module(
                _turned(inputs) if self._channels_first and not self._form.transpose else inputs
            )
        try:
            output = self._module(inputs)
        except RuntimeError as error:
            try:
                output = self._module(_turned(inputs))
            except Exception:
                raise error from None
            self._channels_first = True
            note_once(f"{self.name}: images are given to the network as channels, height, width.")
            return output
        self._channels_first = False
        return output

    def _tensors(self, observations: Any) -> Any:
        if isinstance(observations, Mapping):
            return {key: self._tensor(each) for key, each in observations.items()}
        return self._tensor(observations)

    def _tensor(self, array: npt.NDArray[Any]) -> Any:
        import torch

        # Bytes are images and doubles are what Python computes in: networks compute with 32-bit floats.
        if array.dtype == np.uint8 or array.dtype.kind == "f":
            array = array.astype(np.float32, copy=False)
        return torch.from_numpy(writeable(np.asarray(array))).to(self.device)


def load_state_dict_policy(spec: PolicySpec, *, device: str) -> tuple[ModulePolicy, PolicySpec]:
    """The network of a class that the user names with the weights of a file; and the line's remaining options."""
    form = NetworkForm.of(spec)
    module, spec = read_network(spec, _build, option="net", device=device)
    policy = ModulePolicy(module, name=spec.path.stem, device=device, form=form)
    description = {"form": form.describe(), **describe_module(module)}
    policy.fingerprint = form.extend(hash_arrays(module.state_dict(), description))  # type: ignore[attr-defined]
    return policy, spec


def _build(cls: type, weights: Mapping[str, Any], spec: PolicySpec) -> Any:
    positional, named = arguments_of(spec.text("args"))
    try:
        module: Any = cls(*positional, **named)
    except Exception as error:
        raise PolicyError(
            f"{cls.__name__} cannot be made with args={spec.text('args') or ''}: {in_users_words(error)}"
        ) from error
    if not hasattr(module, "load_state_dict"):
        raise PolicyError(
            f"{cls.__name__} is not a torch module: name a class that is one with ,net=module:Class."
        )
    check_weights_fit(module.state_dict(), weights, name=str(spec.path), network=cls.__name__)
    module.load_state_dict(weights)
    return module


def arguments_of(text: str | None) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a constructor: `4,64` in order, or by name as JSON, `{"inputs": 4, "actions": 3}`.

    >>> arguments_of("4,relu")
    ([4, 'relu'], {})
    >>> arguments_of('{"hidden": [64, 64]}')
    ([], {'hidden': [64, 64]})
    """
    if not text:
        return [], {}
    if text.startswith(("{", "[")):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f'The option args={text[:80]} is not JSON ({error}): write it as args=4,3 or args={{"inputs": 4}}.'
            ) from None
        return (value, {}) if isinstance(value, list) else ([], value)
    return [_literal(part.strip()) for part in text.split(",")], {}


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _is_image(observations: Any) -> bool:
    return not isinstance(observations, Mapping) and observations.ndim == 4


def _turned(images: Any) -> Any:
    return images.permute(0, 3, 1, 2).contiguous()
