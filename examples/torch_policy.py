"""Evaluate any torch network: your module, your state_dict, and one function that returns logits.

Replace `Network` by your own class (or import it) and save its weights with `torch.save(net.state_dict(), ...)`:

    cd examples
    TORCH_WEIGHTS=network.pt gapfloor evaluate torch_policy:factory --game starpilot --rules sampled

Apply in `logits` whatever your training did to observations: it receives the engine's uint8 images. A network that
needs only scaling can be evaluated without code:

    gapfloor evaluate statedict:network.pt,net=torch_policy:Network,scale=255 --game starpilot --rules sampled
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
import torch
from torch import nn


class Network(nn.Module):
    """A small convolutional policy, as an example."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 8, stride=4), nn.ReLU(), nn.Conv2d(16, 32, 4, stride=2), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Linear(32 * 6 * 6, 15)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Logits of float images `[N, 3, 64, 64]`."""
        return self.head(self.body(images))


def factory() -> Callable[[np.ndarray], np.ndarray]:
    """A function from observations to logits, with the weights in the file that TORCH_WEIGHTS names."""
    network = Network().eval()
    network.load_state_dict(torch.load(os.environ["TORCH_WEIGHTS"], map_location="cpu", weights_only=True))

    def logits(observations: np.ndarray) -> np.ndarray:
        with torch.inference_mode():
            return network(torch.tensor(observations).permute(0, 3, 1, 2) / 255.0).numpy()

    return logits
