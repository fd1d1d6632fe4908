"""Every action space through the engine: the environment gets what its space contains, and only legal actions."""

from __future__ import annotations

import numpy as np
import pytest

import gapfloor
from gapfloor.actions.spaces import Box, Discrete
from gapfloor.engines.contract import check_contract
from gapfloor.engines.gymnasium.engine import engine_from_spec
from gapfloor.engines.registry import make_spec
from gapfloor.errors import UsageError
from gapfloor.levels.schedule import LevelSet

LEVELS = LevelSet(0, 200)


def engine_of(name: str, *, slots: int = 3, **options):
    spec = make_spec(f"action_space_envs:{name}", options=options)
    return engine_from_spec(spec, slots=slots, levels=LEVELS)


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("discrete", Discrete(4)),
        ("multi_discrete", Discrete(24, factors=(3, 2, 4))),
        ("multi_binary", Discrete(16, factors=(2, 2, 2, 2))),
        ("box", Box((-1.0, 0.0), (2.0, 0.5))),
        ("whole_box", Discrete(25, factors=(5, 5))),
    ],
)
def test_uniform_actions_are_what_the_environment_accepts(name, space):
    engine = engine_of(name)
    assert engine.action_space == space
    rng = np.random.default_rng(0)
    engine.observe()
    for _ in range(40):  # an action outside its space ends in an error of the environment
        engine.step(engine.action_space.random(rng, 3))
    engine.close()


@pytest.mark.parametrize("name", ["masked", "masked_info", "masked_multi"])
def test_legal_actions_are_known_after_reset_step_and_load(name):
    engine = engine_of(name, masks=True)
    space, rng = engine.action_space, np.random.default_rng(0)
    engine.observe()
    for step in range(40):
        assert not engine.masks.all(axis=1).any()
        actions = space.uniform(rng.random((3, space.width) if space.width else 3), engine.masks)
        if step == 3:
            kept = engine.masks[0].copy()
            state = engine.save(0)
        engine.step(actions)  # an illegal action ends in an error of the environment
    engine.load(1, state)
    assert np.array_equal(engine.masks[1], kept)
    engine.close()


def test_masks_are_read_only_if_asked_for():
    assert engine_of("masked").masks is None
    assert [
        c.mark for c in check_contract("action_space_envs:masked").clauses if c.name == "legal actions"
    ] in (
        ["note"],
        [],
    )
    with pytest.raises(UsageError, match="neither a method action_masks"):
        engine_of("discrete", masks=True)


def test_a_box_without_bounds_needs_a_wrapper():
    with pytest.raises(UsageError, match=r"no bounds .* use a wrapper that states them"):
        engine_of("unbounded")
    assert engine_of("unbounded", wrapper="action_space_envs:bounded").action_space == Box(
        (-2.0,) * 3, (0.5,) * 3
    )


def test_a_space_with_too_many_actions_is_refused():
    with pytest.raises(UsageError, match="has 2,000 actions"):
        engine_of("many")


def test_a_space_of_another_kind_is_refused():
    with pytest.raises(UsageError, match="measures Discrete, MultiDiscrete, MultiBinary and Box"):
        engine_of("of_dict")


@pytest.mark.parametrize("name", ["box", "multi_binary", "masked_info"])
def test_the_contract_holds_for_every_space(name, monkeypatch):
    monkeypatch.setattr("gapfloor.engines.contract.LEVELS", (0, 1000, 3))
    options = {"masks": True} if name.startswith("masked") else {}
    assert check_contract(f"action_space_envs:{name}", options=options).failures == ()


def test_an_environment_that_ignores_its_seed_is_found_out_with_real_actions():
    contract = check_contract("action_space_envs:ignoring")
    assert "the same seed is the same level" in {clause.name for clause in contract.failures}


def test_an_environment_that_ignores_its_seed_is_refused_before_play() -> None:
    with pytest.raises(UsageError, match="ignores its seed: two resets with seed 0"):
        gapfloor.floor("action_space_envs:ignoring", draws=0, episodes=16, progress=False)
