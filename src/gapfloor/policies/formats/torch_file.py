"""Files that `torch.save` wrote, read as tensors: from checked bytes, without running what is in them."""

from __future__ import annotations

import io
import pickle
import pickletools
import re
from collections.abc import Mapping
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.file_bytes import most_unpacked, size_in_words
from gapfloor.policies.formats.archive import DamagedArchiveError, looks_like_zip, read_archive
from gapfloor.policies.formats.recognise import refuse_torchscript
from gapfloor.policies.formats.spec import TRUST_MEANS

#: How torch's `weights_only` reader says that a file wants more than tensors, as against being damaged.
_MORE_THAN_TENSORS = re.compile(
    r"GLOBAL \S+ was not an allowed global|whose module \S+ is blocked|Can only create new object|Can only build Tensor"
    r"|unrecognized function|must be imported to load"
)

#: What it says of pickle operations that `torch.save` never writes: another pickle, or damage.
_UNKNOWN_OPERATION = "Unsupported operand"


def load_torch_file(content: bytes, *, name: str, is_trusted: bool) -> Any:
    """What a file of `torch.save` holds; `name` is the file's name in a refusal.

    Without the user's trust, only tensors and plain containers are built, by torch's `weights_only` reader.
    """
    import torch

    if looks_like_zip(content):
        try:
            archive = read_archive(content, name=name)
            refuse_torchscript(archive.entries)
            content = archive.rebuilt()
        except DamagedArchiveError:
            raise _damaged(name) from None
    try:
        return torch.load(io.BytesIO(content), map_location="cpu", weights_only=not is_trusted)
    except Exception as error:
        if is_trusted:
            raise PolicyError(f"{name} does not load: {type(error).__name__}: {first_line(error)}") from error
        if isinstance(error, pickle.UnpicklingError) and _wants_more_than_tensors(str(error), content):
            raise PolicyError(
                f"{name} holds more than tensors, and reading it would run Python: {TRUST_MEANS}; or save the "
                "state_dict() alone."
            ) from None
        raise _damaged(name) from None


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
    if total > most_unpacked(file_bytes):
        raise PolicyError(
            f"The tensors in {name} would take {size_in_words(total)} of memory, although the file has only "
            f"{size_in_words(file_bytes)}: it is damaged or was made to fill the memory, so it is not read."
        )


def check_weights_fit(
    wanted: Mapping[str, Any], found: Mapping[str, Any], *, name: str, network: str
) -> None:
    """Refuse weights that differ from a network's own in name, shape or kind of number, naming the first."""
    for key in sorted(wanted.keys() | found.keys()):
        if key not in found:
            raise PolicyError(
                f"{name} lacks the weights {key} of {network}: give the file of such a network."
            )
        if key not in wanted:
            raise PolicyError(
                f"{name} holds the weights {key}, which {network} does not have: give the file of such a network."
            )
        ours, theirs = wanted[key], found[key]
        if tuple(ours.shape) != tuple(theirs.shape):
            raise PolicyError(
                f"{name} holds the weights {key} in the shape {tuple(theirs.shape)}, but {network} has them in the "
                f"shape {tuple(ours.shape)}: give the file of such a network."
            )
        if kind_of_number(ours.dtype) != kind_of_number(theirs.dtype):
            raise PolicyError(
                f"{name} holds the weights {key} as {_type_name(theirs.dtype)}, but {network} has them as "
                f"{_type_name(ours.dtype)}: save them in that type, because a silent conversion would make another "
                "policy."
            )


def kind_of_number(dtype: Any) -> str:
    """Whether a torch type holds real, complex, whole or truth values; a conversion within a kind is harmless."""
    import torch

    if dtype == torch.bool:
        return "bool"
    if dtype.is_complex:
        return "complex"
    return "real" if dtype.is_floating_point else "whole"


def first_line(error: BaseException, *, most: int = 300) -> str:
    """The first line of an error's text, or its class where there is none."""
    lines = str(error).strip().splitlines()
    return lines[0][:most] if lines else type(error).__name__


def _wants_more_than_tensors(message: str, content: bytes) -> bool:
    if _MORE_THAN_TENSORS.search(message):
        return True
    return _UNKNOWN_OPERATION in message and is_whole_pickle(content)


def is_whole_pickle(content: bytes) -> bool:
    """Whether the bytes are a pickle from start to end, found by reading its operations without running them."""
    try:
        for _ in pickletools.genops(content):
            pass
    except Exception:  # its errors are as varied as damage is
        return False
    return True


def _type_name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _damaged(name: str) -> PolicyError:
    return PolicyError(
        f"{name} is not a file that torch.save() wrote, or it is damaged: save or copy it again."
    )
