"""State_dicts as people save them: bare, inside a container, or with the prefixes of torch's wrappers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gapfloor.errors import PolicyError, UsageError
from gapfloor.file_bytes import read_policy_file
from gapfloor.policies.formats.inference import require_torch
from gapfloor.policies.formats.recognise import refuse_flax
from gapfloor.policies.formats.spec import FORMATS, PolicySpec
from gapfloor.policies.formats.torch_file import check_tensors, load_torch_file
from gapfloor.policies.notes import note_once
from gapfloor.safetensors_bytes import parse_tensors
from gapfloor.users_code import named_class, put_folder_on_path

#: Prefixes that DataParallel and torch.compile put before every name.
_WRAPPER_PREFIXES = ("module.", "_orig_mod.")

#: How deep a container may hold the weights.
_DEPTH = 3


def read_network(
    spec: PolicySpec, build: Callable[[type, Mapping[str, Any], PolicySpec], Any], *, option: str, device: str
) -> tuple[Any, PolicySpec]:
    """The torch module of a line, and the line's remaining options.

    The file holds a whole module, if the user trusts it, or weights of a class that `option` names and `build` makes.
    """
    torch = require_torch(device)
    name = spec.text(option)
    if spec.is_trusted:
        put_folder_on_path()
    saved, rest = _read_saved(spec)
    if isinstance(saved, torch.nn.Module):
        return saved, rest
    if name is None:
        raise UsageError(
            f"{spec.path} holds weights only: name the class that they belong to, with {FORMATS[spec.kind].needed}."
        )
    return build(named_class(name, option=option, error=PolicyError), saved, rest), rest


def _read_saved(spec: PolicySpec) -> tuple[Any, PolicySpec]:
    """What a line's file holds (a module or weights), and the line's remaining options.

    `weights=NAME` chooses an entry of a container. `key=NAME` does so too where the file has such an entry; otherwise
    it chooses an entry of the observations, as it does for every format.
    """
    import torch

    content = read_policy_file(spec.path)
    refuse_flax(content, name=str(spec.path))
    if _is_safetensors(content):
        saved = parse_tensors(content, name=str(spec.path), library="torch")
    else:
        saved = load_torch_file(content, name=str(spec.path), is_trusted=spec.is_trusted)
    if isinstance(saved, torch.nn.Module):
        return saved, spec
    name = spec.text("weights")
    key = spec.text("key")
    if (
        name is None
        and key is not None
        and isinstance(saved, Mapping)
        and isinstance(saved.get(key), Mapping)
    ):
        name, spec = key, spec.without("key")
    weights = without_wrapper_prefix(choose_weights(saved, path=spec.path, key=name))
    check_tensors(weights, name=str(spec.path), file_bytes=len(content))
    return weights, spec


def choose_weights(saved: Any, *, path: Path, key: str | None) -> Mapping[str, Any]:
    """The state_dict in what a file holds: itself, the entry that `key` names, or the only one there is."""
    if key is not None:
        return _named(saved, path=path, key=key)
    if _is_state(saved):
        return dict(saved)
    found = _states_within(saved)
    if len(found) == 1:
        name, weights = found[0]
        note_once(f"{path}: the weights are those of its entry '{name}'.")
        return weights
    if not found:
        raise PolicyError(
            f"{path} holds {_contents(saved)}, not a state_dict: save agent.state_dict() with torch.save()."
        )
    names = ", ".join(name for name, _ in found)
    raise PolicyError(
        f"{path} holds several state_dicts ({names}): choose one with ,weights=NAME, e.g. ,weights={found[0][0]}."
    )


def without_wrapper_prefix(weights: Mapping[str, Any]) -> dict[str, Any]:
    """The weights without the prefix of DataParallel or torch.compile, if every name has it."""
    for prefix in _WRAPPER_PREFIXES:
        if weights and all(name.startswith(prefix) for name in weights):
            return without_wrapper_prefix({name.removeprefix(prefix): each for name, each in weights.items()})
    return dict(weights)


def _is_state(saved: Any) -> bool:
    import torch

    return (
        isinstance(saved, Mapping)
        and bool(saved)
        and all(isinstance(name, str) and isinstance(each, torch.Tensor) for name, each in saved.items())
    )


def _states_within(saved: Any, depth: int = _DEPTH) -> list[tuple[str, dict[str, Any]]]:
    if not isinstance(saved, Mapping) or depth == 0:
        return []
    found: list[tuple[str, dict[str, Any]]] = []
    for name, each in saved.items():
        if _is_state(each):
            found.append((str(name), dict(each)))
        else:
            found += [(f"{name}/{inner}", state) for inner, state in _states_within(each, depth - 1)]
    return found


def _named(saved: Any, *, path: Path, key: str) -> dict[str, Any]:
    each = saved
    for part in key.split("/"):
        if not isinstance(each, Mapping) or part not in each:
            raise PolicyError(f"{path} has no entry '{key}': it holds {_contents(saved)}.")
        each = each[part]
    if not _is_state(each):
        raise PolicyError(f"The entry '{key}' of {path} holds {_contents(each)}, not a state_dict.")
    return dict(each)


def _contents(saved: Any) -> str:
    if isinstance(saved, Mapping):
        names = [str(name) for name in saved]
        more = f" and {len(names) - 8} more" if len(names) > 8 else ""
        return f"a dict of {', '.join(names[:8])}{more}" if names else "an empty dict"
    return f"a {type(saved).__name__}"


def _is_safetensors(content: bytes) -> bool:
    return content[8:9] == b"{" and int.from_bytes(content[:8], "little") <= len(content)
