"""The sizes of the encoders' layers, without torch: networks and ONNX graphs are both built from them."""

from __future__ import annotations

#: Channels of the three blocks.
WIDTHS = (16, 32, 32)

#: Size of the feature vector that policy and value heads read.
FEATURES = 256

#: Channels of the fused maps of `fpn`, and height and width of each of its pooled maps.
FUSED, POOLED = 32, 4


def map_sizes(size: int) -> list[int]:
    """Height (or width) of the three feature maps for images of that height (or width).

    >>> map_sizes(64)
    [32, 16, 8]
    """
    sizes = []
    for _ in WIDTHS:
        size = (size + 1) // 2
        sizes.append(size)
    return sizes
