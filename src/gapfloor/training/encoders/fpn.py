"""Multiscale FPN: the three feature maps fused top-down before the projection (Lin et al. 2017).

1x1 lateral convolutions bring each block's map to 32 channels; from the coarsest on, each map is upsampled
(nearest neighbour) and added to the next finer one; every fused map is smoothed by a 3x3 convolution,
average-pooled to 4x4, and the three are concatenated (1536) and projected to 256. 521,472 parameters on
(3, 64, 64). Paper: Appendix "Additional Details".

Everything between the backbone and the concatenation is linear, so none of the fused maps is ever made: the sums
of each block's map over the pooling windows (shifted by each of the 3x3 taps) go through the same laterals,
upsampling and smoothing instead. That is the same function with 1/64 of the multiplications on the finest map and
a fraction of the memory traffic; the tests compare it with the plain pyramid, gradients included.
"""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F
from torch import nn

from gapfloor.training.encoders._backbone import Backbone
from gapfloor.training.encoders._sizes import FEATURES, FUSED, POOLED, WIDTHS, map_sizes


class FpnEncoder(nn.Module):
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

    def pool(self, maps: list[torch.Tensor]) -> list[torch.Tensor]:
        """The three fused, smoothed and pooled maps `[N, 32, 4, 4]`, finest first."""
        pooled: list[torch.Tensor] = []
        fused: torch.Tensor | None = None
        for level in reversed(range(len(maps))):
            lateral, smooth = self.laterals[level], self.smooths[level]
            assert isinstance(lateral, nn.Conv2d)
            assert isinstance(smooth, nn.Conv2d)
            assert lateral.bias is not None
            assert smooth.bias is not None
            height, width = maps[level].shape[2:]
            own = F.linear(window_sums(maps[level]), lateral.weight.flatten(1))
            own = own + _pixels_inside(height, width, maps[level].device, maps[level].dtype) * lateral.bias
            fused = own if fused is None else own + upsample_sums(fused)
            # The mean of a convolution over a window is its weights times the window's sums at each tap.
            taps = fused.permute(0, 1, 3, 2, 4, 5).reshape(-1, 9 * FUSED)
            weight = smooth.weight.permute(2, 3, 1, 0).reshape(9 * FUSED, -1)
            window = (height // POOLED) * (width // POOLED)
            means = torch.addmm(smooth.bias, taps, weight, alpha=1.0 / window)
            pooled.append(means.reshape(-1, POOLED, POOLED, FUSED).permute(0, 3, 1, 2))
        return pooled[::-1]

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Features `[N, 256]` of images `[N, 3, 64, 64]`."""
        pooled = torch.cat([p.flatten(1) for p in self.pool(self.blocks(images))], dim=1)
        return F.relu(self.projection(F.relu(pooled, inplace=True)), inplace=True)


def window_sums(maps: torch.Tensor) -> torch.Tensor:
    """Sums `[N, 4 (y), 3 (tap), 4 (x), 3 (tap), C]` of maps over the 4x4 windows moved by -1, 0 and 1 each way."""
    n, channels, height, width = maps.shape
    lines = maps.permute(0, 2, 3, 1).reshape(n, height, POOLED, width // POOLED, channels)
    across = _shifted_sums(lines)
    rows = across.reshape(n, 1, POOLED, height // POOLED, POOLED * 3 * channels)
    return _shifted_sums(rows).reshape(n, POOLED, 3, POOLED, 3, channels)


def upsample_sums(sums: torch.Tensor) -> torch.Tensor:
    """The window sums of a map upsampled by 2 (nearest neighbour), from those of the map itself.

    Along each axis a window of twice as many pixels holds each old pixel twice, and moved by one pixel it has
    moved by half an old one: its sum is that of the window where it was plus that where it is going.
    """
    for axis in (2, 4):
        before, here, after = sums.unbind(axis)
        sums = torch.stack((before + here, 2 * here, here + after), dim=axis)
    return sums


def _shifted_sums(lines: torch.Tensor) -> torch.Tensor:
    """Sums `[n, m, 4, 3, c]` of each window of `[n, m, 4, k, c]`, moved by -1, 0 and 1 (zeros outside).

    A moved sum is the plain one, minus the line that leaves, plus the one that enters.
    """
    plain = lines.sum(dim=3)
    first, last = lines[:, :, :, 0], lines[:, :, :, -1]
    entering_before = F.pad(last[:, :, :-1], (0, 0, 1, 0))
    entering_after = F.pad(first[:, :, 1:], (0, 0, 0, 1))
    return torch.stack((plain - last + entering_before, plain, plain - first + entering_after), dim=3)


@functools.lru_cache(maxsize=64)
def _pixels_inside(height: int, width: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    # How often a lateral's bias enters each sum: the padding outside the map has none. Kept, and therefore
    # made outside of inference mode, whose tensors cannot be used for gradients later.
    with torch.inference_mode(False):
        return window_sums(torch.ones(1, 1, height, width, device=device, dtype=dtype))
