"""States to calibrate on: a seeded sample of those that random play, or a policy's own play, visits.

The paper samples random play and suspects that this merges actions which differ in the states that a trained policy
visits, so the same sample can be taken from a policy's sampled play. Which states are taken is drawn before play, so
that only those are saved.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gapfloor.actions.spaces import ActionSpace
from gapfloor.engines.engine import EngineSpec, Observations, State
from gapfloor.engines.registry import engine_from_spec
from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.policies.policy import LogitsReader, Policy, StatefulPolicy
from gapfloor.rules import draw_from, softmax

#: Slots that play side by side; each runs through its own draw of levels.
SLOTS = 16

#: States visited for each one taken. Neighbouring states are alike: at 1, coinrun's agents have hardly left the start
#: and do not reach the crates, which alone tell DOWN from a no-op; at 10 one seed in five saw too few of them.
SPACING = 20

_Choose = Callable[[Observations, npt.NDArray[np.bool_]], npt.NDArray[np.int64]]


def visited_states(
    spec: EngineSpec,
    *,
    levels: LevelSet,
    n_states: int,
    seed: int,
    spacing: int = SPACING,
    policy: Policy | StatefulPolicy | None = None,
    policy_name: str = "policy",
) -> list[State]:
    """A uniform sample of the first `n_states * spacing` states of play, in the order of play.

    Args:
        spec: the engine.
        levels: the levels that are played; `seed` draws them too.
        n_states: how many states are taken.
        seed: of levels, of the sample and of the actions.
        spacing: visited states for each one taken.
        policy: who plays, under the sampled rule; None for random play.
        policy_name: the policy's name in errors.
    """
    if n_states < 1:
        raise UsageError(f"Calibration on {n_states} states is not possible: take at least 1.")
    if spacing < 1:
        raise UsageError(f"The spacing is {spacing}: use at least 1, which takes every visited state.")
    picking, acting = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    picked = np.sort(picking.choice(n_states * spacing, n_states, replace=False))
    engine = engine_from_spec(spec, slots=SLOTS, levels=levels, draw=seed)
    choose = _random_play(acting, engine.action_space)
    if policy is not None:
        reader = LogitsReader(policy, name=policy_name, n_slots=SLOTS, space=engine.action_space)
        choose = _policy_play(acting, reader)
    try:
        observations, _, first = engine.observe()
        states: list[State] = []
        for step in range(picked[-1] // SLOTS + 1):
            states += [engine.save(int(place % SLOTS)) for place in picked[picked // SLOTS == step]]
            observations, _, first = engine.step(choose(observations, first))
        return states
    finally:
        engine.close()


def _random_play(rng: np.random.Generator, space: ActionSpace) -> _Choose:
    return lambda observations, first: space.random(rng, len(first))


def _policy_play(rng: np.random.Generator, reader: LogitsReader) -> _Choose:
    def choose(observations: Observations, first: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        return draw_from(softmax(reader.read(observations, first)), rng.random(len(first)))

    return choose
