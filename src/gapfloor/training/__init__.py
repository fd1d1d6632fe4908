"""Training: encoders, PPO, checkpoints, exact resume and the training log."""

from __future__ import annotations

import importlib
from typing import Any

_HOMES = {
    "Hyperparameters": "gapfloor.training.hyperparameters",
    "TrainingSpec": "gapfloor.training.spec",
    "encoder_names": "gapfloor.training.encoders",
    "read_checkpoint": "gapfloor.training.checkpoint",
    "train": "gapfloor.training.trainer",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'gapfloor.training' has no attribute '{name}'")
