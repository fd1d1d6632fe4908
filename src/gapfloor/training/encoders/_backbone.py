"""The three-block IMPALA backbone that all encoders share.

Each block is a 3x3 convolution, a 3x3 max-pool of stride 2 and padding 1, and two residual sub-blocks
(paper, Appendix "Additional Details"; Espeholt et al. 2018). In-place operations are used where autograd does
not need the overwritten value: they save a pass over memory that the small convolutions cannot hide.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from gapfloor.training.encoders._sizes import WIDTHS


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, each behind a ReLU, added to the input."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv0 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The input plus what the two convolutions make of it."""
        hidden: torch.Tensor = self.conv0(F.relu(inputs))
        hidden = self.conv1(F.relu(hidden, inplace=True))
        return hidden.add_(inputs)


class Block(nn.Module):
    """A convolution, a max-pool that halves the map, and two residual sub-blocks."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3, padding=1)
        self.residual0 = ResidualBlock(out_channels)
        self.residual1 = ResidualBlock(out_channels)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """The block's feature map, half as high and wide as its input."""
        hidden = F.max_pool2d(self.conv(inputs), kernel_size=3, stride=2, padding=1)
        maps: torch.Tensor = self.residual1(self.residual0(hidden))
        return maps


class Backbone(nn.ModuleList):
    """The three blocks; called on images it gives the three feature maps, finest first."""

    def __init__(self, in_channels: int) -> None:
        inputs = (in_channels, *WIDTHS[:-1])
        super().__init__(Block(i, o) for i, o in zip(inputs, WIDTHS, strict=True))

    def forward(self, images: torch.Tensor) -> list[torch.Tensor]:
        """The feature maps of the three blocks, finest first."""
        maps: list[torch.Tensor] = []
        for block in self:
            images = block(images)
            maps.append(images)
        return maps
