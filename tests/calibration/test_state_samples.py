"""Which states calibration looks at."""

import pytest

import small_policies
from gapfloor.calibration.class_measurement import visited_states
from gapfloor.calibration.classes import CalibrationSettings
from gapfloor.engines.procgen import ProcgenEngine, make_spec
from gapfloor.errors import PolicyError
from gapfloor.levels.schedule import LevelSet
from gapfloor.policies.policy import as_policy


def visit(game="starpilot", policy=None, policy_name="policy", **settings):
    chosen = CalibrationSettings(**{"states": 20, **settings})
    return visited_states(make_spec(game), chosen, policy=policy, policy_name=policy_name)


def test_the_same_seed_visits_the_same_states_and_another_seed_others():
    assert visit() == visit()
    assert visit() != visit(seed=1)


def test_as_many_states_as_asked_for_and_no_two_alike():
    states = visit(states=37, spacing=3)
    assert len(states) == len(set(states)) == 37


def test_states_are_on_the_levels_asked_for():
    levels = LevelSet(1000, 1003)
    engine = ProcgenEngine("miner", slots=1, levels=LevelSet(0, 1))
    seen = set()
    for state in visit("miner", levels=levels, states=30):
        engine.load(0, state)
        engine.observe()
        seen.add(int(engine.level_seeds[0]))
    assert seen <= {1000, 1001, 1002}


def test_a_policy_visits_other_states_than_random_play():
    policy = as_policy(small_policies.constant_logits())
    visited = visit(policy=policy)
    assert visited == visit(policy=policy)
    assert len(set(visited) & set(visit())) < len(visited)


def test_a_policy_with_state_can_play():
    assert len(visit(policy=small_policies.CountingPolicy())) == 20


def test_a_policy_that_returns_nonsense_is_named():
    with pytest.raises(PolicyError, match="mine"):
        visit(policy=as_policy(small_policies.wrong_shape()), policy_name="mine")
