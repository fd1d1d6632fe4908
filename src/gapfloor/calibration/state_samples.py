"""States to calibrate on: a seeded sample of those that random play, or a policy's own play, visits.

The paper samples random play and suspects that this merges actions which differ in the states that a trained policy
visits, so the same sample can be taken from a policy's sampled play. Which states are taken is drawn before play, so
that only those are saved.
"""

from __future__ import annotations

from contextlib import closing

import numpy as np

from gapfloor.calibration.classes import CalibrationSettings
from gapfloor.engines.engine import EngineSpec, State
from gapfloor.engines.registry import engine_from_spec
from gapfloor.policies.policy import LogitsReader, Policy, StatefulPolicy
from gapfloor.rules import draw_from, softmax

#: Slots that play side by side; each runs through its own draw of levels.
SLOTS = 16


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
