"""PPO's hyperparameters, from the paper's Table "PPO hyperparameters" or, where it has none, from CleanRL.

The last two do not belong to PPO: they say in which pieces the arithmetic is done. They change results in the last
bits only, but a run is reproducible bit for bit, so they are recorded with the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from gapfloor.errors import UsageError, unknown_name

#: Numbers of the network's arithmetic. Weights, losses and the optimiser are float32 under both.
PRECISIONS = ("float32", "bf16")


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """Everything that, with game, levels, encoder and seed, decides the weights of a run.

    >>> Hyperparameters().n_updates(8_000_000), Hyperparameters(environments=256).n_updates(25_000_000)
    (1953, 381)
    """

    environments: int = 16
    """Parallel environments: 16 at 8M steps, 256 at 25M."""
    rollout_length: int = 256
    """Steps of each environment between two updates."""
    learning_rate: float = 5e-4
    """Learning rate of Adam, constant."""
    adam_epsilon: float = 1e-5
    """Epsilon of Adam: CleanRL's, since the paper's table has none."""
    discount: float = 0.999
    """Gamma."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    minibatches: int = 8
    """Gradient steps per epoch."""
    epochs: int = 3
    """Passes over each rollout."""
    clip: float = 0.2
    """Clip range of the probability ratio, and of the change of the value."""
    entropy_coefficient: float = 0.01
    """Weight of the entropy bonus."""
    value_coefficient: float = 0.5
    """Weight of the value loss."""
    max_gradient_norm: float = 0.5
    """Longer gradients are scaled down to this."""
    micro_batch: int = 64
    """Samples whose gradient is computed at once; a minibatch's are summed in order."""
    inference_batch: int = 0
    """Observations inferred at once in a rollout; 0 chooses from the number of environments."""
    precision: str = "float32"
    """`float32`, or `bf16`: convolutions and products in bfloat16, which gives other weights."""

    def __post_init__(self) -> None:
        for rule, (holds, names) in _RULES.items():
            for name in names.split():
                if not holds(getattr(self, name)):
                    raise UsageError(f"`{name}` is {getattr(self, name)}: it must be {rule}.")
        if self.precision not in PRECISIONS:
            raise unknown_name("precision", self.precision, PRECISIONS)
        if self.batch % self.minibatches:
            raise UsageError(
                f"{self.environments} environments x {self.rollout_length} steps make {self.batch} samples, "
                f"which do not divide into {self.minibatches} minibatches: choose another number of environments."
            )
        if self.inference_batch == 0:
            # Two threads should have something to do, and 32 images still fit the cache.
            largest = min(32, max(1, self.environments // 2))
            sizes = (size for size in range(1, largest + 1) if self.environments % size == 0)
            object.__setattr__(self, "inference_batch", max(sizes))
        if self.environments % self.inference_batch:
            raise UsageError(
                f"inference_batch is {self.inference_batch}: it must divide the {self.environments} environments."
            )

    @property
    def batch(self) -> int:
        """Environment steps between two updates."""
        return self.environments * self.rollout_length

    def n_updates(self, steps: int) -> int:
        """Updates in a budget of that many environment steps."""
        return steps // self.batch

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, for a header."""
        values = asdict(self) | {"rewards": "raw"}  # the learner gets them as the game gives them
        if self.precision == "float32":
            del values["precision"]  # headers from before there was a choice say nothing
        return values


#: What must hold -> the test, and the names of the settings.
_RULES: dict[str, tuple[Callable[[Any], bool], str]] = {
    "at least 1": (
        lambda value: isinstance(value, int) and value >= 1,
        "environments rollout_length minibatches epochs micro_batch",
    ),
    "greater than 0": (
        lambda value: math.isfinite(value) and value > 0,
        "learning_rate adam_epsilon clip max_gradient_norm",
    ),
    "0 or more": (lambda value: math.isfinite(value) and value >= 0, "entropy_coefficient value_coefficient"),
    "between 0 and 1": (lambda value: 0 <= value <= 1, "discount gae_lambda"),
}
