"""Whether the tensors of a TorchScript file stay inside the bytes that the file brings for them.

torch builds these tensors without comparing what the file's description claims with the bytes that are there, so a
shortened entry would make a program read memory that is not its own. The description is a pickle of few operations; it
is followed here without running anything, and operations that `torch.jit.save` does not write are refused.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gapfloor.policies.formats.archive import DamagedArchiveError

#: Bytes per number of each storage class.
_SIZES = {
    "DoubleStorage": 8, "LongStorage": 8, "ComplexFloatStorage": 8, "ComplexDoubleStorage": 16, "FloatStorage": 4,
    "IntStorage": 4, "QInt32Storage": 4, "HalfStorage": 2, "BFloat16Storage": 2, "ShortStorage": 2, "CharStorage": 1,
    "ByteStorage": 1, "BoolStorage": 1, "QInt8Storage": 1, "QUInt8Storage": 1, "UntypedStorage": 1,
}  # fmt: skip

#: Functions that build a tensor from a storage, an offset, sizes and strides.
_REBUILD = ("torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_qtensor")

#: Operations that push their argument.
_PUSH = ("BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "SHORT_BINUNICODE", "BINSTRING")

#: Operations that push a constant.
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}

#: Operations that build a tuple of the last few values.
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}

#: The entry of an archive that torch 1.1 and older wrote, which another, older reader would load.
_OLD_FORMAT = "model.json"


@dataclass(frozen=True)
class _GlobalName:
    name: str


@dataclass(frozen=True)
class _StorageClaim:
    n_numbers: int


class _Unknown:
    """A value that does not matter here."""


class _Mark:
    """Where the values of a tuple, list or dict begin."""


def check_torchscript_tensors(entries: Mapping[str, bytes]) -> None:
    """Refuse an archive whose tensors reach beyond their bytes, by raising DamagedArchiveError."""
    # torch finds names in any case.
    folded = {name.lower(): content for name, content in entries.items()}
    for name, content in folded.items():
        folder, _, last = name.rpartition("/")
        if last == _OLD_FORMAT:
            raise DamagedArchiveError("it has the format of torch 1.1")
        if last in ("data.pkl", "constants.pkl"):
            start = f"{folder}/" if folder else ""
            _Description(folded, f"{start}{last.removesuffix('.pkl')}/").follow(content)


class _Description:
    """Follows one pickle, with the entries that hold its storages."""

    def __init__(self, entries: Mapping[str, bytes], folder: str) -> None:
        self._entries, self._folder = entries, folder
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def follow(self, content: bytes) -> None:
        try:
            for operation, argument, _ in pickletools.genops(content):
                self._apply(operation.name, argument)
        except DamagedArchiveError:
            raise
        except Exception as error:  # a damaged pickle fails in as many ways as there are operations
            raise DamagedArchiveError(f"its description cannot be followed: {type(error).__name__}") from None

    def _apply(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _PUSH:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name == "GLOBAL":
            stack.append(_GlobalName(argument))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self._memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif name == "MARK":
            stack.append(_Mark())
        elif name == "TUPLE":
            stack.append(tuple(self._pop_to_mark()))
        elif name in _TUPLES:
            values = tuple(stack[-_TUPLES[name] :])
            del stack[-_TUPLES[name] :]
            stack.append(values)
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            stack.append(_Unknown())
        elif name in ("APPENDS", "SETITEMS"):
            self._pop_to_mark()
        elif name in ("APPEND", "BUILD", "SETITEM"):
            del stack[-2 if name == "SETITEM" else -1 :]
        elif name == "BINPERSID":
            stack.append(self._storage(stack.pop()))
        elif name in ("REDUCE", "NEWOBJ"):
            arguments, function = stack.pop(), stack.pop()
            stack.append(self._built(function, arguments))
        elif name not in ("PROTO", "STOP"):
            raise DamagedArchiveError(f"its description uses the operation {name}")

    def _pop_to_mark(self) -> list[Any]:
        values: list[Any] = []
        while not isinstance(self._stack[-1], _Mark):
            values.append(self._stack.pop())
        self._stack.pop()
        return values[::-1]

    def _storage(self, claim: Any) -> _StorageClaim:
        word, kind, key, _, n_numbers = claim
        if word != "storage" or type(n_numbers) is not int or n_numbers < 0:
            raise DamagedArchiveError("a storage is not described")
        size = _SIZES[kind.name.split()[-1]]
        if n_numbers * size > len(self._entries[f"{self._folder}{key.lower()}"]):
            raise DamagedArchiveError(f"the entry {self._folder}{key} is too short for its tensor")
        return _StorageClaim(n_numbers)

    def _built(self, function: Any, arguments: Any) -> Any:
        if not isinstance(function, _GlobalName) or function.name not in _REBUILD:
            return _Unknown()
        storage, offset, sizes, strides = arguments[:4]
        numbers = (offset, *sizes, *strides)
        if len(sizes) != len(strides) or not all(type(n) is int and n >= 0 for n in numbers):
            raise DamagedArchiveError("a tensor has odd sizes")
        last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if math.prod(sizes) and last >= storage.n_numbers:
            raise DamagedArchiveError("a tensor reaches beyond its storage")
        return _Unknown()
