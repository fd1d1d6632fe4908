"""The arrays of a state_dict that `torch.save` wrote, read without torch.

Only plain tensors in a dict are understood; for anything else there is torch's own reader (`torch_file`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.policies.formats.archive import DamagedArchiveError, read_archive
from gapfloor.policies.formats.plain_pickle import NOT_PLAIN, Called, read_plainly

#: What a pickle calls the storage of a tensor.
_STORAGES = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}


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
