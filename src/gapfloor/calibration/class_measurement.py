"""Measuring the action classes of a game: sample states, clone each, keep what every state leaves together.

States are a seeded sample of those that random play, or a policy's own play, visits: the paper samples random play and
suspects that this merges actions which differ in the states that a trained policy visits. Which states are taken is
drawn before play, so that only those are saved.
"""

from __future__ import annotations

import functools
from contextlib import closing
from pathlib import Path

import numpy as np

from gapfloor.actions.partition import Partition
from gapfloor.calibration.classes import (
    RANDOM_PLAY,
    ActionClasses,
    CalibrationSettings,
    load_classes,
    write_classes,
)
from gapfloor.calibration.cloning import action_names_of, state_partitions
from gapfloor.engines.engine import EngineSpec, State
from gapfloor.engines.registry import check_ends, engine_from_spec
from gapfloor.levels.schedule import check_draw
from gapfloor.machine import available_cores
from gapfloor.policies.load import PolicySource
from gapfloor.policies.policy import LogitsReader, Policy, StatefulPolicy, fingerprint
from gapfloor.rules.rule import draw_from, softmax

#: Slots that play side by side; each runs through its own draw of levels.
SLOTS = 16


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
        with closing(engine_from_spec(spec, slots=SLOTS, levels=settings.levels)) as engine:
            play = fingerprint(policy, name=source.name, engine=engine)
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
    if known is None:
        measured = measure_classes(spec)
        write_classes(store_root, measured)
        known = measured.partition
    return known


def visited_states(
    spec: EngineSpec,
    settings: CalibrationSettings,
    *,
    policy: Policy | StatefulPolicy | None = None,
    policy_name: str = "policy",
) -> list[State]:
    """A uniform sample of the first `states * spacing` states of play, in the order of play.

    Args:
        spec: the engine.
        settings: how many states are taken; the seed is that of levels, of the sample and of the actions.
        policy: who plays, under the sampled rule; None for random play.
        policy_name: the policy's name in errors.
    """
    children = np.random.SeedSequence(settings.seed).spawn(2)
    picking, acting = (np.random.default_rng(child) for child in children)
    picked = np.sort(picking.choice(settings.states * settings.spacing, settings.states, replace=False))
    states: list[State] = []
    with closing(engine_from_spec(spec, slots=SLOTS, levels=settings.levels, draw=settings.seed)) as engine:
        space, reader = engine.action_space, None
        if policy is not None:
            reader = LogitsReader(policy, name=policy_name, n_slots=SLOTS, space=space)
        observations, _, first = engine.observe()
        for step in range(picked[-1] // SLOTS + 1):
            states += [engine.save(int(place % SLOTS)) for place in picked[picked // SLOTS == step]]
            if reader is None:
                actions = space.random(acting, SLOTS)
            else:
                actions = draw_from(softmax(reader.read(observations, first)), acting.random(SLOTS))
            observations, _, first = engine.step(actions)
    return states
