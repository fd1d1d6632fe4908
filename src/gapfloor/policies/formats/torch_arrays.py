"""The arrays of a state_dict that `torch.save` wrote, read without torch.

The pickle in such a file is read as a list of opcodes, never executed: nothing is imported or called. Only plain
tensors in a dict are understood; for anything else there is torch's own reader (`torch_file`).
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gapfloor.policies.formats.archive import DamagedArchiveError, read_archive

#: What a pickle calls the storage of a tensor.
_STORAGES = {"torch FloatStorage": "<f4", "torch LongStorage": "<i8"}
_NOT_PLAIN = (DamagedArchiveError, KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError)
_VALUES = frozenset(
    ("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "GLOBAL", "STACK_GLOBAL")
)
_CONSTANTS: Mapping[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}


def read_state_dict(content: bytes, *, name: str) -> dict[str, npt.NDArray[Any]] | None:
    """The arrays by name; None where the file is not a plain state_dict of 32-bit numbers."""
    try:
        entries = read_archive(content, name=name)
        (pickle,) = [each for each in entries if each.endswith("/data.pkl")]
        folder = pickle.removesuffix("data.pkl")
        if entries.get(folder + "byteorder", b"little") != b"little":
            return None
        found = _interpret(
            entries[pickle], {key: each for key, each in entries.items() if "/data/" in key}, folder
        )
    except _NOT_PLAIN:
        return None
    is_plain = isinstance(found, dict) and all(
        isinstance(key, str) and isinstance(each, np.ndarray) for key, each in found.items()
    )
    return found if is_plain and found else None


def _interpret(pickle: bytes, entries: Mapping[str, bytes], folder: str) -> Any:
    """What the opcodes of a state_dict leave on the stack; any other opcode is a KeyError or ValueError."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[Any, Any] = {}
    for opcode, value, _ in pickletools.genops(pickle):
        kind = opcode.name
        if kind in _VALUES:
            stack.append(value)
        elif kind in _CONSTANTS:
            stack.append(_CONSTANTS[kind])
        elif kind == "EMPTY_DICT":
            stack.append({})
        elif kind == "MARK":
            marks.append(len(stack))
        elif kind in ("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"):
            start = marks.pop() if kind == "TUPLE" else len(stack) - int(kind[-1])
            stack[start:] = [tuple(stack[start:])]
        elif kind in ("BINPUT", "LONG_BINPUT"):
            memo[value] = stack[-1]
        elif kind in ("BINGET", "LONG_BINGET"):
            stack.append(memo[value])
        elif kind == "BINPERSID":
            _, storage, key, _, _ = stack.pop()
            stack.append(np.frombuffer(entries[f"{folder}data/{key}"], dtype=_STORAGES[storage]))
        elif kind == "REDUCE":
            arguments, function = stack.pop(), stack.pop()
            stack.append(_MADE[function](*arguments))
        elif kind in ("SETITEM", "SETITEMS"):
            start = marks.pop() if kind == "SETITEMS" else len(stack) - 2
            pairs = stack[start:]
            del stack[start:]
            stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))
        elif kind == "BUILD":
            stack.pop()  # the versions of modules
        elif kind == "STOP":
            return stack.pop()
        elif kind not in ("PROTO", "FRAME"):
            raise ValueError(kind)
    raise ValueError("no end")


def _tensor(
    storage: npt.NDArray[Any], offset: int, shape: tuple[int, ...], strides: tuple[int, ...], *rest: Any
) -> npt.NDArray[Any]:
    """A tensor whose numbers lie in its storage in their order."""
    array = storage[offset : offset + math.prod(shape)].reshape(shape)
    own = tuple(stride // array.itemsize for stride in array.strides)
    if offset < 0 or any(size > 1 and a != b for size, a, b in zip(shape, strides, own, strict=True)):
        raise ValueError("strides")
    return array


#: What a pickle may call.
_MADE: Mapping[str, Callable[..., Any]] = {
    "collections OrderedDict": dict,
    "torch._utils _rebuild_tensor_v2": _tensor,
}
