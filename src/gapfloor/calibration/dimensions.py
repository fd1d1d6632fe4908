"""Which dimensions of a real-valued action have an effect: the calibration of a Box.

Actions of a Box cannot be listed, but its dimensions can. Each visited state is cloned. In one clone the base action
(zeros, or what is nearest) is taken, in two others the same action with one dimension at its lowest and at its highest
value; then the base action follows everywhere. A dimension has an effect in a state where observation, reward or end of
the episode then differ at some step. One that never has an effect can be left out of entropies and of the policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gapfloor.actions.spaces import Box
from gapfloor.calibration.classes import CalibrationSettings
from gapfloor.calibration.cloning import split
from gapfloor.calibration.state_samples import visited_states
from gapfloor.engines.engine import EngineSpec, State
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import CheckFailedError, UsageError
from gapfloor.json_values import jsonable


@dataclass(frozen=True)
class DimensionEffects:
    """How often each dimension of an action matters."""

    engine: EngineSpec
    """The environment."""
    settings: CalibrationSettings
    """States, horizon, seed and levels."""
    space: str
    """The action space."""
    states_with_effect: tuple[int, ...]
    """One number per dimension: in how many states it changed what was seen."""

    @property
    def without_effect(self) -> tuple[int, ...]:
        """Dimensions that had no effect in any state."""
        return tuple(at for at, count in enumerate(self.states_with_effect) if count == 0)

    def to_dict(self) -> dict[str, Any]:
        """The effects as JSON values."""
        return {**jsonable(self), "without_effect": list(self.without_effect)}


def measure_dimensions(spec: EngineSpec, settings: CalibrationSettings | None = None) -> DimensionEffects:
    """In how many states each dimension of a Box changes what follows, on states of random play."""
    settings = settings or CalibrationSettings()
    probe = engine_from_spec(spec, slots=1, levels=settings.levels)
    space, can_clone = probe.action_space, probe.can_clone
    probe.close()
    if not isinstance(space, Box):
        raise UsageError(f"The actions of {spec.game} are {space}, not a Box: use calibrate.")
    if not can_clone:
        raise UsageError(
            f"States of {spec.game} can be saved neither by copying nor by replay from the seed, so calibration is not "
            "possible: gapfloor doctor shows the details."
        )
    states = visited_states(
        spec, levels=settings.levels, n_states=settings.states, seed=settings.seed, spacing=settings.spacing
    )
    counts = np.zeros(space.width, dtype=np.int64)
    engine = engine_from_spec(spec, slots=2 + 2 * space.width, levels=settings.levels)
    try:
        for state in states:
            counts += _effects(engine, space, state, horizon=settings.horizon)
    finally:
        engine.close()
    return DimensionEffects(spec, settings, str(space), tuple(counts.tolist()))


def _effects(engine: Any, space: Box, state: State, *, horizon: int) -> np.ndarray:  # type: ignore[type-arg]
    """Which dimensions matter in one state."""
    low, high = space.bounds
    base = np.repeat(space.zero()[None], engine.n_slots, axis=0)
    changed = base.copy()
    for at in range(space.width):
        changed[2 + 2 * at, at], changed[3 + 2 * at, at] = low[at], high[at]
    for slot in range(engine.n_slots):
        engine.load(slot, state)
    labels = [0] * engine.n_slots
    for step in range(horizon):
        labels = split(labels, *engine.step(changed if step == 0 else base))
    if labels[0] != labels[1]:
        raise CheckFailedError(
            f"{engine.recipe.game}: one action played twice from the same state gave two outcomes, so a difference is "
            "not an effect. Run gapfloor doctor to check this environment."
        )
    pairs = np.array(labels[2:]).reshape(-1, 2)
    differs: np.ndarray = (pairs != labels[0]).any(axis=1)  # type: ignore[type-arg]
    return differs
