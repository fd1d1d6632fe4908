"""Encoders by name: every file in this folder is one encoder, named after the file.

The file `impala.py` defines `ImpalaEncoder(nn.Module)`, and `small_impala.py` would define `SmallImpalaEncoder`. It
takes `observation_shape=(height, width, channels)`, maps float images `[N, channels, height, width]` in [0, 1] to
`[N, features]` and has the attribute `features`.
Nothing else has to be changed to add an encoder. Files that begin with an underscore hold shared parts.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING

from gapfloor.errors import unknown_name

if TYPE_CHECKING:
    from torch import nn

__all__ = ["build_encoder", "encoder_names"]


def encoder_names() -> list[str]:
    """The names of all encoders, without importing torch.

    >>> encoder_names()
    ['fpn', 'impala', 'impoola']
    """
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def build_encoder(name: str, *, observation_shape: tuple[int, ...]) -> nn.Module:
    """A new encoder of that name for observations of that shape (height, width, channels)."""
    if name not in encoder_names():
        raise unknown_name("encoder", name, encoder_names())
    module = importlib.import_module(f"{__name__}.{name}")
    class_name = "".join(part.capitalize() for part in name.split("_")) + "Encoder"
    encoder: nn.Module = getattr(module, class_name)(observation_shape=observation_shape)
    return encoder
