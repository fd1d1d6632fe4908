"""What a pickle says, read as a list of opcodes: nothing is imported or called, so that no file is a program.

Where a pickle would call a function or a class, the reader notes its name and arguments (`Called`). The formats take
out of these notes what they know: tensors of a state_dict, arrays of numpy.
"""

from __future__ import annotations

import math
import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

#: What reading raises where a file is not a pickle, or one that the readers do not understand.
NOT_PLAIN = (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, RecursionError)
_VALUES = frozenset(
    ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINBYTES",
     "SHORT_BINBYTES", "GLOBAL")
)  # fmt: skip
_MADE: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None, "NEWTRUE": lambda: True, "NEWFALSE": lambda: False, "EMPTY_TUPLE": tuple, "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
}  # fmt: skip
_TYPES = {"f4": "<f4", "f8": "<f8", "i4": "<i4", "i8": "<i8"}


@dataclass
class Called:
    """What a pickle would make by a call."""

    name: str
    """Module and name of the function or class, with a space between them."""
    arguments: Any
    state: Any = None
    """What it would be given afterwards."""
    items: dict[Any, Any] = field(default_factory=dict)


def read_plainly(content: bytes) -> Any:
    """The plain values of a pickle, with notes instead of calls; one of `NOT_PLAIN` where that is not possible."""
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[Any, Any] = {}

    def since_mark() -> list[Any]:
        start = marks.pop()
        found = stack[start:]
        del stack[start:]
        return found

    for opcode, value, _ in pickletools.genops(content):
        match opcode.name:
            case kind if kind in _VALUES:
                stack.append(value)
            case kind if kind in _MADE:
                stack.append(_MADE[kind]())
            case "MARK":
                marks.append(len(stack))
            case "TUPLE":
                stack.append(tuple(since_mark()))
            case "TUPLE1" | "TUPLE2" | "TUPLE3" as kind:
                stack[-int(kind[-1]) :] = [tuple(stack[-int(kind[-1]) :])]
            case "MEMOIZE":
                memo[len(memo)] = stack[-1]
            case "BINPUT" | "LONG_BINPUT":
                memo[value] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[value])
            case "STACK_GLOBAL":
                stack[-2:] = [f"{stack[-2]} {stack[-1]}"]
            case "REDUCE" | "NEWOBJ":
                stack[-2:] = [Called(*stack[-2:])]
            case "BINPERSID":
                stack[-1] = Called("persistent", stack[-1])
            case "SETITEM":
                _items(stack[-3])[stack[-2]] = stack[-1]
                del stack[-2:]
            case "SETITEMS":
                pairs = since_mark()
                _items(stack[-1]).update(zip(pairs[::2], pairs[1::2], strict=True))
            case "APPEND":
                stack[-2].append(stack.pop())
            case "APPENDS":
                found = since_mark()
                stack[-1].extend(found)
            case "BUILD":
                stack[-2].state = stack[-1]
                del stack[-1]
            case "STOP":
                return stack[-1]
            case "PROTO" | "FRAME":
                pass
            case kind:
                raise ValueError(kind)
    raise ValueError("no end")


def _items(owner: Any) -> dict[Any, Any]:
    return owner.items if isinstance(owner, Called) else owner


def array_of(noted: Any) -> npt.NDArray[Any]:
    """The array, or the number, that numpy would make of a note."""
    if isinstance(noted, (int, float)):
        return np.array(noted)
    if noted.name.endswith("multiarray scalar"):
        kind, content = noted.arguments
        return np.frombuffer(content, _TYPES[kind.arguments[0]], count=1).reshape(())
    if not noted.name.endswith("multiarray _reconstruct"):
        raise ValueError(noted.name)
    _, shape, kind, is_fortran, content = noted.state
    array = np.frombuffer(content, _TYPES[kind.arguments[0]], count=math.prod(shape))
    ordered: npt.NDArray[Any] = array.reshape(shape, order="F" if is_fortran else "C")
    return ordered
