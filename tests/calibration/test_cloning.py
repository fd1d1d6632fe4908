"""Classes by cloning on the real engine, against a loop that plays one action at a time."""

import functools
import itertools

import numpy as np
import pytest

from gapfloor.actions import Partition
from gapfloor.calibration.class_measurement import visited_states
from gapfloor.calibration.classes import CalibrationSettings
from gapfloor.calibration.cloning import Cloner, split, state_partitions
from gapfloor.engines.procgen import GAMES, ProcgenEngine, make_spec
from gapfloor.errors import CheckFailedError
from gapfloor.levels.schedule import LevelSet

LEVELS = LevelSet(0, 200)


def some_states(game, n_states=30, **options):
    return visited_states(make_spec(game, **options), CalibrationSettings(states=n_states, levels=LEVELS))


def one_action_at_a_time(game, state, horizon=5):
    """The plainest way: one slot, loaded again for every action, whole outcomes compared."""
    engine = ProcgenEngine(game, slots=1, levels=LevelSet(5, 6))
    seen = []
    for action in range(engine.n_actions):
        engine.load(0, state)
        outcome = []
        for step in range(horizon):
            observations, rewards, firsts = engine.step(np.array([action if step == 0 else engine.noop]))
            outcome.append((observations.tobytes(), float(rewards[0]), bool(firsts[0])))
        seen.append(tuple(outcome))
    engine.close()
    numbers = {}
    return Partition.from_labels([numbers.setdefault(outcome, len(numbers)) for outcome in seen])


@pytest.mark.parametrize("game", ["fruitbot", "coinrun", "dodgeball"])
def test_cloning_finds_the_classes_of_a_loop_over_single_actions(game):
    states = some_states(game, 12)
    assert state_partitions(make_spec(game), states, horizon=5) == [
        one_action_at_a_time(game, state) for state in states
    ]


def test_the_number_of_workers_changes_nothing():
    states = some_states("bossfight", 25)
    spec = make_spec("bossfight")
    one, three = (state_partitions(spec, states, horizon=5, workers=workers) for workers in (1, 3))
    assert one == three


def test_classes_get_finer_as_states_are_added():
    found = state_partitions(make_spec("chaser"), some_states("chaser", 60), horizon=5)
    together = [functools.reduce(Partition.meet, found[:count]) for count in (1, 5, 20, 60)]
    for coarser, finer in itertools.pairwise(together):
        assert finer.meet(coarser) == finer
    assert together[-1].k > together[0].k


def test_a_longer_horizon_never_merges_what_a_shorter_one_separates():
    states = some_states("heist", 20)
    spec = make_spec("heist")
    short, long = (state_partitions(spec, states, horizon=horizon) for horizon in (1, 5))
    assert all(later.meet(sooner) == later for sooner, later in zip(short, long, strict=True))


@pytest.mark.parametrize("game", GAMES)
def test_replays_agree_in_every_game(game):
    state_partitions(make_spec(game, mode="hard"), some_states(game, 6, mode="hard"), horizon=5)


class ForgetfulEngine:
    """The real engine, but the frame of its last slot is not the one that was played."""

    def __init__(self, engine):
        self._engine = engine

    def __getattr__(self, name):
        return getattr(self._engine, name)

    def step(self, actions):
        observations, rewards, firsts = self._engine.step(actions)
        observations = observations.copy()
        observations[-1, 0, 0, 0] ^= 1
        return observations, rewards, firsts


def test_a_replay_with_another_outcome_is_an_error():
    cloner = Cloner(make_spec("fruitbot"), horizon=5)
    cloner._engine = ForgetfulEngine(cloner._engine)
    with pytest.raises(
        CheckFailedError, match="played twice from the same state gave two outcomes"
    ) as caught:
        cloner.partition(some_states("fruitbot", 1)[0], turn=0)
    assert caught.value.exit_code == 1


def test_every_action_is_replayed_and_changes_its_slot():
    cloner = Cloner(make_spec("fruitbot"), horizon=5)
    turns = [cloner._actions(turn) for turn in range(cloner.n_actions)]
    assert sorted(int(actions[-1]) for actions in turns) == list(range(cloner.n_actions))
    assert len({int(np.flatnonzero(actions[:-1] == 0)[0]) for actions in turns}) == cloner.n_actions


@pytest.mark.fast
class TestSplit:
    """One step of comparing, on made-up outcomes."""

    frames = np.zeros((4, 2, 2, 3), dtype=np.uint8)
    rewards = np.zeros(4, dtype=np.float32)
    firsts = np.zeros(4, dtype=bool)

    def test_equal_outcomes_stay_together(self):
        assert split([0, 0, 0, 0], self.frames, self.rewards, self.firsts) == [0, 0, 0, 0]

    def test_one_changed_byte_separates(self):
        frames = self.frames.copy()
        frames[2, 1, 1, 2] = 1
        assert split([0, 0, 0, 0], frames, self.rewards, self.firsts) == [0, 0, 1, 0]

    def test_reward_alone_separates(self):
        rewards = np.array([0, 1, 0, 0], dtype=np.float32)
        assert split([0, 0, 0, 0], self.frames, rewards, self.firsts) == [0, 1, 0, 0]

    def test_the_episode_boundary_alone_separates(self):
        firsts = np.array([False, False, False, True])
        assert split([0, 0, 0, 0], self.frames, self.rewards, firsts) == [0, 0, 0, 1]

    def test_what_was_separate_stays_separate_though_frames_agree_again(self):
        assert split([0, 1, 0, 1], self.frames, self.rewards, self.firsts) == [0, 1, 0, 1]
        assert split([0, 1, 2, 2], self.frames, self.rewards, self.firsts) == [0, 1, 2, 2]
