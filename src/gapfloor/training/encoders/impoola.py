"""Impoola: IMPALA with global average pooling in place of flattening (Trumpp et al. 2025).

Averaging each channel over the map makes the projection 64 times smaller: 106,048 parameters in all.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from gapfloor.training.encoders._backbone import Backbone
from gapfloor.training.encoders._sizes import FEATURES, WIDTHS


class ImpoolaEncoder(nn.Module):
    """Backbone, ReLU, mean over the map, linear, ReLU."""

    features = FEATURES

    def __init__(self, *, observation_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.blocks = Backbone(observation_shape[2])
        self.projection = nn.Linear(WIDTHS[-1], FEATURES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features `[N, 256]` of images `[N, 3, 64, 64]`."""
        pooled = F.relu(self.blocks(images)[-1]).mean(dim=(2, 3))
        return F.relu(self.projection(pooled), inplace=True)
