"""IMPALA: the last feature map, flattened and projected to 256 dimensions.

The standard ProcGen encoder and the paper's baseline: 622,144 parameters on (3, 64, 64).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from gapfloor.training.encoders._backbone import Backbone
from gapfloor.training.encoders._sizes import FEATURES, WIDTHS, map_sizes


class ImpalaEncoder(nn.Module):
    """Backbone, flatten, ReLU, linear, ReLU."""

    features = FEATURES

    def __init__(self, *, observation_shape: tuple[int, ...]) -> None:
        super().__init__()
        height, width, channels = observation_shape
        self.blocks = Backbone(channels)
        self.projection = nn.Linear(WIDTHS[-1] * map_sizes(height)[-1] * map_sizes(width)[-1], FEATURES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features `[N, 256]` of images `[N, 3, 64, 64]`."""
        coarsest = self.blocks(images)[-1]
        return F.relu(self.projection(F.relu(coarsest.flatten(1), inplace=True)), inplace=True)
