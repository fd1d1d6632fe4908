"""Multiscale FPN: the three feature maps fused top-down before the projection (Lin et al. 2017).

1x1 lateral convolutions bring each block's map to 32 channels; from the coarsest on, each map is upsampled
(nearest neighbour) and added to the next finer one; every fused map is smoothed by a 3x3 convolution,
average-pooled to 4x4, and the three are concatenated (1536) and projected to 256. 521,472 parameters on
(3, 64, 64). Paper: Appendix "Additional Details".

Smoothing and average-pooling are both linear, so `smooth_and_pool` sums the windows first and applies the
convolution's weights to the sums: the same function for 1/64 of the multiplications on the finest map.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from gapfloor.training.encoders._backbone import FEATURES, WIDTHS, Backbone, map_sizes

#: Channels of the fused maps.
FUSED = 32

#: Height and width of each pooled map.
POOLED = 4


class Encoder(nn.Module):
    """Backbone, laterals, top-down sums, smoothing, pooling to 4x4, linear, ReLU."""

    features = FEATURES

    def __init__(self, *, observation_shape: tuple[int, ...]) -> None:
        super().__init__()
        height, width, channels = observation_shape
        if any(size % POOLED for side in (height, width) for size in map_sizes(side)):
            raise ValueError(
                f"feature maps of {height}x{width} images do not pool evenly to {POOLED}x{POOLED}"
            )
        self.blocks = Backbone(channels)
        self.laterals = nn.ModuleList(nn.Conv2d(channels, FUSED, 1) for channels in WIDTHS)
        self.smooths = nn.ModuleList(nn.Conv2d(FUSED, FUSED, 3, padding=1) for _ in WIDTHS)
        self.projection = nn.Linear(len(WIDTHS) * FUSED * POOLED**2, FEATURES)

    def fuse(self, maps: list[torch.Tensor]) -> list[torch.Tensor]:
        """The fused maps, finest first: each holds its own lateral and everything coarser."""
        fused = [lateral(m) for lateral, m in zip(self.laterals, maps, strict=True)]
        for finer in reversed(range(len(fused) - 1)):
            fused[finer] = fused[finer].add_(F.interpolate(fused[finer + 1], scale_factor=2, mode="nearest"))
        return fused

    def pool(self, maps: list[torch.Tensor]) -> list[torch.Tensor]:
        """The three smoothed and pooled maps `[N, 32, 4, 4]`, finest first."""
        pooled = []
        for fused, smooth in zip(self.fuse(maps), self.smooths, strict=True):
            assert isinstance(smooth, nn.Conv2d)
            assert smooth.bias is not None
            pooled.append(smooth_and_pool(fused, smooth.weight, smooth.bias))
        return pooled

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features `[N, 256]` of images `[N, 3, 64, 64]`."""
        pooled = torch.cat([p.flatten(1) for p in self.pool(self.blocks(images))], dim=1)
        return F.relu(self.projection(F.relu(pooled, inplace=True)), inplace=True)


def smooth_and_pool(maps: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """A 3x3 convolution of padding 1 followed by average-pooling to 4x4, as one product with window sums.

    The mean of a convolution over a window is the convolution's weights times the window's sums, shifted by
    each of the nine taps; a shifted sum is the plain one, minus the line that leaves, plus the one that enters.
    """
    n, channels, height, width = maps.shape
    pixels = maps.permute(0, 2, 3, 1)
    across = _shifted_sums(pixels.reshape(n, height, POOLED, width // POOLED, channels))
    # [n, height, 4, 3 (horizontal taps), channels] -> rows: the same once more
    rows = across.reshape(n, POOLED, height // POOLED, POOLED * 3 * channels)
    down = _shifted_sums(rows.unsqueeze(1)).reshape(n, POOLED, 3, POOLED, 3, channels)
    # [n, y, vertical tap, x, horizontal tap, channels] -> [n, y, x, channels, vertical tap, horizontal tap]
    sums = down.permute(0, 1, 3, 5, 2, 4).reshape(n * POOLED * POOLED, channels * 9)
    window = (height // POOLED) * (width // POOLED)
    pooled = torch.addmm(bias, sums, weight.reshape(weight.shape[0], -1).t(), alpha=1.0 / window)
    return pooled.reshape(n, POOLED, POOLED, -1).permute(0, 3, 1, 2)


def _shifted_sums(lines: torch.Tensor) -> torch.Tensor:
    """Sums `[n, m, 4, 3, c]` of each window of `[n, m, 4, k, c]`, shifted by -1, 0 and +1 (zeros outside)."""
    plain = lines.sum(dim=3)
    first, last = lines[:, :, :, 0], lines[:, :, :, -1]
    entering_before = F.pad(last[:, :, :-1], (0, 0, 1, 0))
    entering_after = F.pad(first[:, :, 1:], (0, 0, 0, 1))
    return torch.stack((plain - last + entering_before, plain, plain - first + entering_after), dim=3)
