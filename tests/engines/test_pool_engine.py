"""EnvPool's environments other than ProcGen."""

from __future__ import annotations

import numpy as np
import pytest

from gapfloor.actions.spaces import Box, Discrete
from gapfloor.engines.contract import check_contract
from gapfloor.engines.gymnasium.engine import GymnasiumEngine
from gapfloor.engines.registry import check_cloning, engine_from_spec, make_spec
from gapfloor.errors import UnknownEnvironmentError, UsageError
from gapfloor.levels.schedule import LevelSet

pytest.importorskip("envpool")


def engine(game: str, *, slots: int = 1, **options: object) -> GymnasiumEngine:
    spec = make_spec(game, options=options)  # type: ignore[arg-type]
    found = engine_from_spec(spec, slots=slots, levels=LevelSet(0, 10))
    assert isinstance(found, GymnasiumEngine)
    return found


@pytest.mark.parametrize(
    "game", ["envpool:CartPole-v1", "envpool:MiniGrid-FourRooms-v0", "envpool:Pendulum-v1"]
)
def test_environments_of_several_families_keep_the_contract(game: str) -> None:
    contract = check_contract(game)
    assert not contract.failures, [clause.words for clause in contract.failures]
    held = {clause.name for clause in contract.clauses if clause.mark == "holds"}
    assert "an episode is a function of its level and actions" in held
    assert "the same episodes in a fresh process" in held


def test_actions_are_read_from_envpools_own_specification() -> None:
    assert engine("envpool:CartPole-v1").action_space == Discrete(2)
    assert engine("envpool:Pendulum-v1").action_space == Box((-2.0,), (2.0,))
    assert engine("envpool:BipedalWalker-v3").action_space.width == 4


def test_observations_of_several_parts_become_a_dict() -> None:
    rows = engine("envpool:MiniGrid-FourRooms-v0", slots=2).observe()[0]
    assert {name: array.shape for name, array in rows.items()} == {
        "direction": (2,),
        "image": (2, 7, 7, 3),
        "mission": (2, 96),
    }


def test_a_step_equals_that_of_a_pool_made_by_hand() -> None:
    import envpool

    mine = engine("envpool:CartPole-v1", slots=2)
    mine.begin(0, 5)
    mine.begin(1, 6)
    theirs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=1, seed=6)
    seen, _ = theirs.reset()
    np.testing.assert_array_equal(mine.observe()[0][1], seen[0])
    for action in (0, 1, 1, 0):
        rows, rewards, _ = mine.step(np.array([0, action]))
        seen, reward, *_ = theirs.step(np.array([action]))
        np.testing.assert_array_equal(rows[1], seen[0])
        assert rewards[1] == reward[0]


def test_a_slot_whose_episode_ended_waits_for_its_next_level() -> None:
    found = engine("envpool:CartPole-v1")
    found.begin(0, 3)
    while not found.step(np.array([0]))[2][0]:
        pass
    rows, rewards, firsts = found.step(np.array([0]))
    assert firsts[0]
    assert not rows.any()
    assert rewards[0] == 0


def test_success_replaces_the_reward_and_counts_once() -> None:
    plain, scored = engine("envpool:FetchReach-v4"), engine("envpool:FetchReach-v4", score="success")
    rng = np.random.default_rng(0)
    totals = np.zeros(2)
    for seed in range(4):
        plain.begin(0, seed)
        scored.begin(0, seed)
        for _ in range(50):
            action = plain.action_space.random(rng, 1)
            earned = [each.step(action)[1][0] for each in (plain, scored)]
            totals += earned
    assert totals[0] < -100  # the sparse reward is -1 for every step away from the goal
    assert 0 <= totals[1] <= 4
    with pytest.raises(UsageError, match="does not report success"):
        make_spec("envpool:CartPole-v1", options={"score": "success"})
    with pytest.raises(UsageError, match="does not report a score 'wins': info has"):
        make_spec("envpool:CartPole-v1", options={"score": "wins"})


def test_legal_actions_are_read_where_the_user_asks() -> None:
    assert engine("envpool:BinPack-v2").masks is None
    masked = engine("envpool:BinPack-v2", masks=True)
    masked.begin(0, 1)
    assert masked.masks is not None
    legal = masked.masks[0]
    assert legal.size == 40 * 20
    assert 0 < legal.sum() < legal.size
    masked.step(np.flatnonzero(legal)[:1])
    assert masked.masks[0].tolist() != legal.tolist() or not masked.observe()[2][0]
    with pytest.raises(UsageError, match="does not say which actions are legal"):
        make_spec("envpool:CartPole-v1", options={"masks": True})


@pytest.mark.parametrize(
    ("game", "options", "words"),
    [
        ("envpool:Pongg-v5", {}, "did you mean Pong-v5"),
        ("envpool:CoinrunEasy-v0", {}, "write envpool:coinrun"),
        ("envpool:CartPole-v1", {"max_steps": 3}, "max_episode_steps"),
        ("envpool:CartPole-v1", {"num_envs": 3}, "Unknown option"),
        ("envpool:CartPole-v1", {"max_episode_steps": "long"}, "give one of that type"),
        ("envpool:Basic-v1", {}, "use a wrapper that states them"),
        ("envpool:CartPole-v1", {"noop": 7}, "name an action from 0 to 1"),
    ],
)
def test_wrong_names_and_settings_are_refused_in_a_sentence(
    game: str, options: dict[str, object], words: str
) -> None:
    with pytest.raises((UsageError, UnknownEnvironmentError), match=words):
        make_spec(game, options=options)  # type: ignore[arg-type]


def test_environments_of_several_players_are_refused() -> None:
    with pytest.raises(UsageError, match="several players"):
        make_spec("envpool:Go9x9-v1")


def test_calibration_is_refused_without_naming_another_engine() -> None:
    with pytest.raises(UsageError, match="leave it out"):
        check_cloning(make_spec("envpool:CartPole-v1"), what="--probe")
