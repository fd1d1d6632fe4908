"""What a run is: game, mode, levels, encoder, seed, budget and hyperparameters, with its name and its header.

Two commands with the same specification mean the same run; a command that differs is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gapfloor.errors import StoreError, UsageError, unknown_name
from gapfloor.levels import LevelSet
from gapfloor.records.run_identity import RunIdentity, agent_name
from gapfloor.training.encoders import encoder_names
from gapfloor.training.hyperparameters import Hyperparameters


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
