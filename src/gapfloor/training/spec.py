"""What a run is: game, mode, levels, encoder, seed, budget and hyperparameters, with its name and its header.

Two commands with the same specification mean the same run; a command that differs is refused. Hyperparameters are those
of the paper's Table "PPO hyperparameters" or, where it has none, of CleanRL. The last two of them do not belong to PPO:
they say in which pieces the arithmetic is done. They change results in the last bits only, but a run is reproducible
bit for bit, so they are recorded with the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gapfloor.errors import StoreError, UsageError, unknown_name
from gapfloor.levels.schedule import LevelSet
from gapfloor.records.run_identity import RunIdentity, agent_name
from gapfloor.training.encoders import encoder_names

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


@dataclass(frozen=True, kw_only=True)
class TrainingSpec:
    """A run to be trained.

    >>> spec = TrainingSpec(game="starpilot", encoder="impala", seed=1, steps=8_000_000)
    >>> spec.run, spec.n_updates
    ('starpilot-easy-impala-8M-s1', 1953)
    """

    game: str
    encoder: str
    seed: int
    steps: int
    mode: str = "easy"
    levels: LevelSet = field(default_factory=lambda: LevelSet(0, 200))
    budget: str = ""
    """Label of the budget in tables and in the run's name; made from `steps` when empty."""
    hyperparameters: Hyperparameters = field(default_factory=Hyperparameters)
    is_blind: bool = False
    """Train the same network on black images: a reference that learns from rewards alone."""

    def __post_init__(self) -> None:
        from gapfloor.engines.procgen import make_spec

        make_spec(self.game, mode=self.mode)
        if self.encoder not in encoder_names():
            raise unknown_name("encoder", self.encoder, encoder_names())
        if self.seed < 0:
            raise UsageError(f"The seed is {self.seed}: it must be 0 or more.")
        if not self.budget:
            object.__setattr__(self, "budget", budget_label(self.steps))
        if not self.budget.isalnum():
            raise UsageError(f"The budget label is '{self.budget}': use letters and digits, e.g. 8M.")
        if self.n_updates < 1:
            raise UsageError(
                f"{self.steps} steps are fewer than one rollout of {self.hyperparameters.batch}: ask for more steps."
            )

    @property
    def run(self) -> str:
        """The run's name and its folder below `runs/`."""
        return self.identity.name

    @property
    def identity(self) -> RunIdentity:
        """The names of the run in its log and its cells."""
        agent = agent_name(self.encoder, is_blind=self.is_blind)
        return RunIdentity(game=self.game, mode=self.mode, agent=agent, budget=self.budget, seed=self.seed)

    @property
    def n_updates(self) -> int:
        """Rollouts and updates in the whole run."""
        return self.hyperparameters.n_updates(self.steps)

    def to_dict(self) -> dict[str, Any]:
        """What a checkpoint's header and the resume state record."""
        return {
            "game": self.game,
            "mode": self.mode,
            "levels": str(self.levels),
            "encoder": self.encoder,
            "seed": self.seed,
            "budget": self.budget,
            "budget_steps": self.steps,
            "n_updates": self.n_updates,
            "hyperparameters": self.hyperparameters.to_dict(),
            **({"blind": True} if self.is_blind else {}),
        }

    def refuse_other(
        self,
        recorded: Mapping[str, Any],
        path: Path,
        *,
        remedy: str = "Give another --budget label or --store.",
    ) -> None:
        """Refuse what another run of this name has left in `path`; `recorded` is what its header says."""
        asked = self.to_dict()
        here, there = (
            {**each, **(each["hyperparameters"] or {}), "hyperparameters": None}
            for each in (asked, {name: recorded.get(name) for name in asked})
        )
        differ = [name for name in {**here, **there} if there.get(name) != here.get(name)]
        if differ:
            parts = [f"{name} is {there.get(name)} there and {here.get(name)} here" for name in differ[:3]]
            raise StoreError(f"{path} belongs to another run of this name: {', '.join(parts)}. {remedy}")


def budget_label(steps: int) -> str:
    """A number of steps as tables write it.

    >>> budget_label(8_000_000), budget_label(100_000), budget_label(4096)
    ('8M', '100k', '4096')
    """
    if steps >= 10**6 and steps % 10**6 == 0:
        return f"{steps // 10**6}M"
    if steps >= 10**3 and steps % 10**3 == 0:
        return f"{steps // 10**3}k"
    return str(steps)
