"""A limit on the weights that a network may make room for while it is built from a description of unknown origin."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from gapfloor.errors import PolicyError

#: The functions by which torch's layers make room for their weights.
_MAKES_ROOM = {torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn}

#: Room that is always allowed, in numbers; initialisation uses some besides the weights.
_ALWAYS_ALLOWED = 1 << 22


class WeightLimit(TorchFunctionMode):
    """Inside this block, building a network that is far larger than `weights` is refused before memory is used."""

    def __init__(self, weights: Mapping[str, Any], *, name: str) -> None:
        super().__init__()
        self._most = _ALWAYS_ALLOWED + 4 * sum(each.numel() for each in weights.values())
        self._made = 0
        self._name = name

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func in _MAKES_ROOM:
            # Sizes may be numpy's whole numbers, e.g. those of a MultiDiscrete space.
            size = args[0] if args and not isinstance(args[0], Integral) else args
            self._made += math.prod(int(n) for n in size if isinstance(n, Integral))
            if self._made > self._most:
                raise PolicyError(
                    f"The description in {self._name} asks for a network that is far larger than its weights: the file "
                    "is damaged; save the model again with model.save()."
                )
        return func(*args, **(kwargs or {}))
