"""Training: encoders, PPO, checkpoints, exact resume and the training log."""

from __future__ import annotations

from gapfloor.lazy import lazy_names

_HOMES = {
    "Hyperparameters": "hyperparameters",
    "TrainingSpec": "spec",
    "encoder_names": "encoders",
    "read_checkpoint": "checkpoint_file",
    "train": "trainer",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
