"""Measuring the action classes of a game: sample states, clone each, keep what every state leaves together."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np

from gapfloor.actions.partition import Partition
from gapfloor.calibration.class_files import load_classes, write_classes
from gapfloor.calibration.classes import RANDOM_PLAY, ActionClasses, CalibrationSettings
from gapfloor.calibration.cloning import action_names_of, state_partitions
from gapfloor.calibration.state_samples import SLOTS, visited_states
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.registry import check_ends, engine_from_spec
from gapfloor.levels.draws import check_draw
from gapfloor.machine import available_cores
from gapfloor.policies.fingerprint import fingerprint
from gapfloor.policies.load import PolicySource


def measure_classes(
    spec: EngineSpec,
    settings: CalibrationSettings | None = None,
    *,
    source: PolicySource | None = None,
    workers: int | None = None,
) -> ActionClasses:
    """The action classes of a game, on states of random play or of the policy that `source` names.

    Args:
        spec: the engine; see `gapfloor.engines.registry.make_spec`.
        settings: states, horizon, seed and levels; the paper's by default.
        source: whose sampled play is visited; None for random play.
        workers: threads that share the states; all cores by default. They change no result.
    """
    settings = settings or CalibrationSettings()
    check_ends(spec)
    check_draw(settings.seed)
    names = action_names_of(spec)  # refuses an engine that cannot clone before anything is played
    policy = source.load() if source is not None else None
    play = RANDOM_PLAY
    if policy is not None and source is not None:
        engine = engine_from_spec(spec, slots=SLOTS, levels=settings.levels)
        play = fingerprint(policy, name=source.name, engine=engine)
        engine.close()
    states = visited_states(spec, settings, policy=policy, policy_name=source.name if source else "")
    partitions = state_partitions(
        spec, states, horizon=settings.horizon, workers=workers or available_cores()
    )
    labels = np.array([partition.labels for partition in partitions])
    equal = (labels[:, :, None] == labels[:, None, :]).sum(axis=0)
    return ActionClasses(
        engine=spec,
        settings=settings,
        play=play,
        partition=functools.reduce(Partition.meet, partitions),
        action_names=names,
        equal_states=tuple(tuple(int(count) for count in row) for row in equal),
        mean_state_k=sum(partition.k for partition in partitions) / len(partitions),
    )


def classes_for(store_root: str | Path, spec: EngineSpec) -> Partition:
    """The partition that a store's cells read: its own, or measured as in the paper and written there."""
    known = load_classes(store_root, spec)
    if known is not None:
        return known
    measured = measure_classes(spec)
    write_classes(store_root, measured)
    return measured.partition
