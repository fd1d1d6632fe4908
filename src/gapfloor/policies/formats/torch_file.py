"""Weights that `torch.save` or safetensors wrote, read from checked bytes without running what is in them.

People save a state_dict bare, inside a container, or with the prefixes of torch's wrappers; all of these are read.
Plain tensors in a dict are also read without torch (`read_state_dict`).
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.errors import PolicyError, UsageError
from gapfloor.input_files import check_growth, read_policy_file
from gapfloor.policies.backends import require_torch
from gapfloor.policies.formats.archive import (
    DamagedArchiveError,
    looks_like_zip,
    read_archive,
    rebuilt_archive,
)
from gapfloor.policies.formats.plain_pickle import NOT_PLAIN, Called, read_plainly
from gapfloor.policies.formats.spec import (
    FORMATS,
    NEEDS_FUNCTION,
    PolicySpec,
    looks_like_safetensors,
    refuse_torchscript,
)
from gapfloor.policies.notes import note_once
from gapfloor.safetensors_bytes import parse_tensors
from gapfloor.users_code import in_users_words, named_callable

#: How torch's `weights_only` reader says that a file wants more than tensors, as against being damaged.
_MORE_THAN_TENSORS = re.compile(
    r"GLOBAL \S+ was not an allowed global|whose module \S+ is blocked|Can only create new object|Can only build Tensor"
    r"|unrecognized function|must be imported to load|Unsupported operand 149"
)

#: What a pickle calls the storage of a tensor.
_STORAGES = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}

#: Prefixes that DataParallel and torch.compile put before every name, one or both.
_WRAPPER_PREFIXES = ("module.", "_orig_mod.")


def load_torch_file(content: bytes, *, name: str) -> Any:
    """The tensors and plain containers that a file of `torch.save` holds; `name` is the file's name in a refusal."""
    import torch

    damaged = PolicyError(
        f"{name} is not a file that torch.save() wrote, or it is damaged: save or copy it again. For weights of "
        "another library, e.g. JAX, name a function that builds the network: package.module:function."
    )
    if looks_like_zip(content):
        try:
            entries = read_archive(content, name=name)
            refuse_torchscript(entries)
            content = rebuilt_archive(entries)
        except DamagedArchiveError:
            raise damaged from None
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:
        if not _MORE_THAN_TENSORS.search(str(error)):
            raise damaged from None
        raise PolicyError(
            f"{name} holds more than tensors, and reading it would run Python: {NEEDS_FUNCTION}, i.e. the state_dict()."
        ) from None


def check_tensors(tensors: Mapping[str, Any], *, name: str, file_bytes: int) -> None:
    """Refuse tensors that are not plain arrays in memory, or that claim far more memory than the file has bytes."""
    import torch

    total = 0
    for key, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.device.type != "cpu" or tensor.is_quantized:
            raise PolicyError(
                f"{name} holds {key} as a sparse, quantised or empty tensor: save plain (dense) weights."
            )
        total += tensor.numel() * tensor.element_size()
    check_growth(total, file_bytes, what=f"The tensors in {name}")


def load_weights(network: Any, weights: Mapping[str, Any], *, name: str, called: str) -> None:
    """Give a network its weights; those that differ in name, shape or kind of number are refused."""
    wanted = network.state_dict()
    for key in sorted(wanted.keys() | weights.keys()):
        theirs, ours = (_described(each.get(key)) for each in (weights, wanted))
        # A silent conversion to another kind of number would make another policy.
        if theirs != ours:
            raise PolicyError(
                f"{name} does not fit {called}: it has {theirs} for the weights {key}, and the network needs {ours}. "
                "Give the file of such a network."
            )
    network.load_state_dict(weights)


def _described(tensor: Any) -> str:
    """Shape and kind of number of a tensor; a conversion within a kind is harmless."""
    if tensor is None:
        return "nothing"
    kind = "complex" if tensor.dtype.is_complex else "real" if tensor.dtype.is_floating_point else "whole"
    kind = "bool" if "bool" in str(tensor.dtype) else kind
    return f"{kind} numbers of shape {tuple(tensor.shape)}"


def read_network(
    spec: PolicySpec, *, option: str, arguments: Callable[[Any], tuple[Any, Mapping[str, Any]]], device: str
) -> Any:
    """The torch module that the class or function makes which `option` names, with the weights of the file.

    `arguments` gives what it is called with, in order and by name.
    """
    require_torch(device)
    made_by = spec.options.get(option)
    content = read_policy_file(spec.path)
    if looks_like_safetensors(content):
        saved = parse_tensors(content, name=str(spec.path), library="torch")
    else:
        saved = load_torch_file(content, name=str(spec.path))
    weights = _choose_weights(saved, path=spec.path, entry=spec.options.get("weights"))
    while prefix := next(
        (each for each in _WRAPPER_PREFIXES if all(k.startswith(each) for k in weights)), None
    ):
        weights = {key.removeprefix(prefix): tensor for key, tensor in weights.items()}
    check_tensors(weights, name=str(spec.path), file_bytes=len(content))
    if made_by is None:
        raise UsageError(
            f"{spec.path} holds weights only: name the class that they belong to, with {FORMATS[spec.kind].needed}."
        )
    make = named_callable(made_by, what=f"option {option}=", error=PolicyError, kind="class or function ")
    positional, named = arguments(make)
    try:
        module = make(*positional, **named)
    except Exception as error:
        raise PolicyError(
            f"{make.__name__} cannot be made with args={spec.options.get('args') or ''}: {in_users_words(error)}"
        ) from error
    if not hasattr(module, "load_state_dict"):
        raise PolicyError(
            f"{make.__name__} is not a torch module: name a class that is one, or a function that returns one, with "
            f",{option}=module:Class."
        )
    load_weights(module, weights, name=str(spec.path), called=make.__name__)
    return module


def _choose_weights(saved: Any, *, path: Path, entry: str | None) -> Mapping[str, Any]:
    """The state_dict in what a file holds: itself, the named entry, or the only one there is."""
    found = _states_within(saved, "")
    if entry is None and len(found) == 1:
        ((name, only),) = found.items()
        if name:
            note_once(f"{path}: the weights are those of its entry '{name}'.")
        return only
    if entry in found:
        return found[entry]
    if not found:
        raise PolicyError(
            f"{path} holds a {type(saved).__name__}, not a state_dict: save agent.state_dict() with torch.save()."
        )
    if entry is not None:
        raise PolicyError(f"{path} has no state_dict '{entry}': its state_dicts are {', '.join(found)}.")
    raise PolicyError(
        f"{path} holds several state_dicts ({', '.join(found)}): choose one with ,weights=NAME, e.g. "
        f",weights={next(iter(found))}."
    )


def is_state_dict(saved: Any) -> bool:
    """Whether an object is a dict of tensors with at least one entry."""
    import torch

    return (
        isinstance(saved, Mapping)
        and bool(saved)
        and all(isinstance(name, str) and isinstance(each, torch.Tensor) for name, each in saved.items())
    )


def _states_within(saved: Any, path: str, depth: int = 3) -> dict[str, dict[str, Any]]:
    """The state_dicts in what a file holds by their paths, e.g. `agent/actor`; empty for the whole."""
    if is_state_dict(saved):
        return {path: dict(saved)}
    found: dict[str, dict[str, Any]] = {}
    for name, each in saved.items() if isinstance(saved, Mapping) and depth else ():
        found |= _states_within(each, f"{path}/{name}" if path else str(name), depth - 1)
    return found


def read_state_dict(content: bytes, *, name: str) -> dict[str, npt.NDArray[Any]] | None:
    """The arrays by name; None where the file is not a plain state_dict of 32-bit numbers."""
    try:
        entries = read_archive(content, name=name)
        (pickle,) = [each for each in entries if each.endswith("/data.pkl")]
        folder = pickle.removesuffix("data.pkl")
        noted = read_plainly(entries[pickle])
        tensors = noted.items if isinstance(noted, Called) else noted
        if entries.get(folder + "byteorder", b"little") != b"little":
            return None
        found = {str(key): _array(each, entries, folder) for key, each in tensors.items()}
    except (DamagedArchiveError, *NOT_PLAIN):
        return None
    return found or None


def _array(noted: Any, entries: Mapping[str, bytes], folder: str) -> npt.NDArray[Any]:
    """A tensor whose numbers lie in its storage in their order."""
    if noted.name != "torch._utils _rebuild_tensor_v2":
        raise ValueError(noted.name)
    stored, offset, shape, strides, *_ = noted.arguments
    _, storage, key, *_ = stored.arguments
    numbers = np.frombuffer(entries[f"{folder}data/{key}"], dtype=_STORAGES[storage])
    array = numbers[offset : offset + math.prod(shape)].reshape(shape)
    own = tuple(stride // array.itemsize for stride in array.strides)
    if offset < 0 or any(size > 1 and a != b for size, a, b in zip(shape, strides, own, strict=True)):
        raise ValueError("strides")
    return array
