"""The Gymnasium engine: levels are seeds, episodes are counted by us, states are kept whole."""

from __future__ import annotations

import sys

import gymnasium
import numpy as np
import pytest

import gymnasium_envs
from balanced_loop import play_plainly
from command_line import run
from gapfloor.actions.spaces import Discrete
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.gymnasium.description import describe
from gapfloor.engines.gymnasium.engine import GymnasiumEngine, engine_from_spec
from gapfloor.engines.gymnasium.spaces import row_bytes
from gapfloor.engines.registry import make_spec, written_game
from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.levels.schedule import LevelSet, draw_levels
from gapfloor.play.actor import ReferenceActor
from gapfloor.play.cell import CellSpec, Design, Run
from gapfloor.play.player import CellPlay, Player
from gapfloor.policies.references import parse_reference

LEVELS = LevelSet(0, 200)


def engine_of(name, *, slots=1, draw=0, **options):
    spec = make_spec(f"gymnasium_envs:{name}", options=options)
    return engine_from_spec(spec, slots=slots, levels=LEVELS, draw=draw)


def returns_of(engine, level, *, slot=0):
    """Rewards of one episode under fixed actions, begun by us."""
    engine.begin(slot, level)
    rng = np.random.default_rng(level)
    rewards = []
    while True:
        _, reward, firsts = engine.step(np.full(engine.n_slots, int(rng.integers(0, 3))))
        rewards.append(float(reward[slot]))
        if firsts[slot]:
            return rewards


def single_returns(level):
    """The same episode in the environment itself, without an engine."""
    env = gymnasium_envs.Corridor()
    env.reset(seed=level)
    rng = np.random.default_rng(level)
    rewards = []
    while True:
        _, reward, terminated, truncated, _ = env.step(int(rng.integers(0, 3)))
        rewards.append(float(reward))
        if terminated or truncated:
            return rewards


def described(game, **options):
    return describe(EngineSpec("gymnasium", "", game, "default", tuple(options.items())))


def plays_of(engine, level_of):
    """A cell of random play, plainly or through the queue."""
    cell = CellSpec(
        engine=make_spec(f"gymnasium_envs:{level_of}"), run=Run(reference="uniform"), policy="uniform", rule="uniform",
        level_set="train", levels=LEVELS, draw=4, design=Design(slots=4, burn_in=1, episodes=12),
    )  # fmt: skip
    play = CellPlay(cell)
    actor = ReferenceActor(parse_reference("uniform"), space=Discrete(3))
    if engine == "plainly":
        fresh = engine_from_spec(cell.engine, slots=4, levels=LEVELS, draw=4)
        return [(each.episode_return, each.length) for each in play_plainly(play, engine=fresh, actor=actor)]

    def make(slots):
        return engine_from_spec(cell.engine, slots=slots, levels=LEVELS)

    list(Player(make_engine=make, actor=actor, n_slots=5).play([play]))
    return [(each.episode_return, each.length) for each in play.finished()]


class TestEpisodes:
    """Levels, ends and waiting."""

    def test_a_begun_episode_is_the_environments_own(self):
        engine = engine_of("corridor", slots=3)
        for level in (3, 0, 1099, 3):
            assert returns_of(engine, level, slot=2) == single_returns(level)

    def test_a_fresh_engine_plays_through_its_draw(self):
        engine = engine_of("corridor", slots=3, draw=7)
        expected = draw_levels(LEVELS, draw=7, slots=3, episodes=40)
        engine.observe()
        episode = np.zeros(3, dtype=int)
        rng = np.random.default_rng(0)
        while episode.min() < 20:
            assert engine.level_seeds.tolist() == [expected[slot, episode[slot]] for slot in range(3)]
            episode += engine.step(rng.integers(0, 3, 3))[2]

    def test_where_an_episode_ends_the_next_levels_first_observation_is_shown(self):
        engine = engine_of("corridor", draw=2)
        engine.observe()
        while not engine.step(np.array([2]))[2][0]:
            pass
        env = gymnasium_envs.Corridor()
        first, _ = env.reset(seed=int(engine.level_seeds[0]))
        assert engine.observe()[0][0].tolist() == first.tolist()

    def test_a_begun_slot_that_has_ended_waits_until_it_begins_again(self):
        engine = engine_of("corridor", slots=2)
        engine.begin(0, 5)
        while not engine.step(np.array([2, 2]))[2][0]:
            pass
        for _ in range(3):
            rows, rewards, firsts = engine.step(np.array([2, 2]))
            assert (rows[0].tolist(), float(rewards[0]), bool(firsts[0])) == ([0, 0, 0, 0], 0.0, True)
        assert engine._envs[1] is None, "a slot that nobody began is never made"
        engine.begin(0, 6)
        assert engine.observe()[0][0, 1] > 0

    def test_the_queue_and_the_plain_loop_play_the_same_episodes(self):
        assert plays_of("queued", "corridor") == plays_of("plainly", "corridor")

    def test_an_episode_that_never_ends_is_refused_in_a_sentence(self, monkeypatch):
        monkeypatch.setattr("gapfloor.engines.gymnasium.engine.MOST_STEPS_UNDECLARED", 50)
        engine = engine_of("endless")
        with pytest.raises(UsageError, match="max_episode_steps"):
            returns_of(engine, 0)
        assert len(returns_of(engine_of("endless", max_episode_steps=9), 0)) == 9

    def test_returns_are_not_rounded_to_32_bits(self):
        assert returns_of(engine_of("corridor"), 0)[0] == -0.1


class TestStates:
    """A level and the actions since its start."""

    @pytest.mark.parametrize("name", ["corridor", "rebuilding"])
    def test_a_state_continues_in_another_slot_and_more_than_once(self, name):
        engine = engine_of(name, slots=3, slip=0.5) if name == "corridor" else engine_of(name, slots=3)
        assert engine.can_clone
        engine.begin(0, 9)
        engine.begin(1, 33)
        for action in (2, 1, 2):
            engine.step(np.array([action] * 3))
        state = engine.save(0)
        engine.load(2, state)
        engine.load(1, state)
        assert engine.level_seeds.tolist() == [9, 9, 9]
        for action in (2, 2, 0, 1, 2, 2, 2):
            rows, rewards, firsts = engine.step(np.array([action] * 3))
            assert len({(row_bytes(rows, slot), rewards[slot], firsts[slot]) for slot in range(3)}) == 1

    def test_an_environment_whose_luck_comes_from_outside_has_no_way(self):
        engine = engine_of("uses_global")
        assert not engine.can_clone
        engine.begin(0, 1)
        with pytest.raises(UsageError, match=r"States of .* cannot be saved"):
            engine.save(0)


class TestObservations:
    """Any observation with a fixed shape."""

    def test_dicts_tuples_and_texts_become_named_arrays(self):
        engine = engine_of("mixed", slots=2)
        engine.begin(1, 4)
        rows, _, _ = engine.step(np.array([0, 2]))
        assert set(rows) == {"where", "half", "inner/0", "inner/1", "words"}
        assert rows["words"][1].startswith("to ")
        assert rows["words"].dtype == np.dtype("<U20")
        assert rows["inner/1"][1].tolist() == [1, 4]
        assert rows["where"].shape == (2, 4)

    def test_actions_that_start_elsewhere_are_counted_from_zero(self):
        engine = engine_of("mixed")
        assert engine.n_actions == 3
        engine.begin(0, 1)
        engine.step(np.array([2]))

    def test_a_frame_is_averaged_down_to_a_bearable_size(self):
        engine = engine_of("corridor")
        engine.begin(0, 1)
        assert engine.frame(0).shape == (16, 160, 3)

    def test_what_has_no_picture_has_no_frame(self):
        engine = engine_of("rebuilding")
        engine.begin(0, 1)
        assert engine.frame(0) is None


class TestSpec:
    """The recipe: options, wrappers, versions, refusals."""

    def test_the_version_names_gymnasium_and_every_package_in_the_environment(self):
        import minigrid

        spec = make_spec("gym:MiniGrid-FourRooms-v0")
        assert "minigrid-" in spec.version
        assert minigrid.__version__ in spec.version
        assert written_game(spec) == "gym:MiniGrid-FourRooms-v0"

    def test_a_users_file_is_known_by_its_content(self):
        spec = make_spec("gymnasium_envs:corridor")
        assert "gymnasium_envs-" in spec.version

    def test_a_recipe_of_another_version_is_refused(self):
        spec = make_spec("gymnasium_envs:corridor")
        other = type(spec)(spec.engine, "0.1", spec.game, spec.mode)
        with pytest.raises(UsageError, match=r"made with Gymnasium 0\.1"):
            engine_from_spec(other, slots=1, levels=LEVELS)

    def test_options_reach_the_factory_and_wrappers_are_named(self):
        engine = engine_of("corridor", most=4, wrapper="gymnasium_envs:Doubling")
        engine.begin(0, 1)
        assert float(engine.step(np.array([1]))[1][0]) == -0.2
        assert len(returns_of(engine, 1)) <= 4

    def test_the_no_op_is_the_environments_own_or_the_users(self):
        assert described("gymnasium_envs:corridor").noop == 1
        assert described("gymnasium_envs:corridor").action_names == ("left", "no-op", "right")
        assert described("gymnasium_envs:corridor", noop=2).noop == 2
        found = described("MiniGrid-FourRooms-v0")
        assert (found.noop, found.action_names[6]) == (6, "done (no-op)")
        assert "--option noop=K" in described("FrozenLake-v1").noop_words

    @pytest.mark.parametrize(
        ("game", "options", "words"),
        [
            ("action_space_envs:unbounded", {}, "use a wrapper that states them"),
            ("gymnasium_envs:old_gym", {}, "old gym"),
            ("gymnasium_envs:nothing", {}, "has no 'nothing'"),
            ("no_such_module:make", {}, "does not import"),
            ("gym:MiniGrid-FourRoms-v0", {}, "did you mean MiniGrid-FourRooms-v0"),
            ("gymnasium_envs:corridor", {"noop": 3}, "from 0 to 2"),
            ("gymnasium_envs:corridor", {"slipp": 0.1}, "unexpected keyword"),
            ("gymnasium_envs:corridor", {"wrapper": "gymnasium_envs:Tripling"}, "has no 'Tripling'"),
        ],
    )
    def test_what_cannot_be_measured_is_refused_in_a_sentence(self, game, options, words):
        with pytest.raises(UsageError, match=words):
            make_spec(game, options=options)

    def test_a_mode_is_procgens(self):
        with pytest.raises(UsageError, match="no modes"):
            make_spec("gym:CartPole-v1", mode="hard")

    def test_a_package_that_is_missing_is_named(self):
        with pytest.raises(MissingExtraError, match="pip install minihack"):
            make_spec("gym:MiniHack-Room-5x5-v0")

    def test_a_package_that_an_extra_installs_is_named_by_the_extra(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "ale_py", None)
        with pytest.raises(MissingExtraError, match=r"gapfloor\[atari\]"):
            make_spec("gym:ALE/NoSuchGame-v5")

        def refuse(*_, **__):
            raise gymnasium.error.DependencyNotInstalled('run `pip install "gymnasium[mujoco]"`')

        monkeypatch.setattr(gymnasium, "make", refuse)
        with pytest.raises(MissingExtraError, match=r"gapfloor\[mujoco\]"):
            make_spec("gym:Ant-v5", options={"max_episode_steps": 9})

    def test_gymnasium_that_is_missing_is_named_by_its_extra(self, capsys, monkeypatch):
        monkeypatch.setattr("gapfloor.engines.engine.package_version", lambda package: None)
        for name in ("gymnasium", "gymnasium.vector"):
            monkeypatch.setitem(sys.modules, name, None)
        done = run(capsys, "floor", "gym:CartPole-v1", "--option", "max_episode_steps=9")
        assert (done.code, done.err) == (
            2, 'gapfloor: Gymnasium is not installed: pip install "gapfloor[gymnasium]".\n',
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("answer", "words"),
        [
            ({"reward": np.array([1.0, 2.0])}, "returned the reward array([1., 2.]), which is not one finite number"),
            ({"reward": None}, "returned the reward None"),
            ({"reward": np.nan}, "returned the reward nan"),
            ({"observation": np.zeros(7)}, "not in its observation space (float32 4): its shape is (7,), not (4,)"),
            ({"observation": np.zeros((2, 2))}, "its shape is (2, 2), not (4,)"),
            ({"observation": None}, "its shape is (), not (4,)"),
            ({"terminated": np.zeros(2)}, "failed in step("),
        ],
    )  # fmt: skip
    def test_a_wrong_answer_of_an_environment_is_the_users_to_correct(
        self, capsys, monkeypatch, tmp_path, answer, words
    ):
        monkeypatch.setattr(gymnasium_envs.Answering, "answer", answer)
        done = run(capsys, "floor", "gymnasium_envs:Answering", "--workers", 1, "--store", tmp_path)
        assert done.code == 2
        assert words in done.err
        assert "Traceback" not in done.err

    def test_an_array_of_one_number_is_a_reward(self, monkeypatch):
        monkeypatch.setattr(gymnasium_envs.Answering, "answer", {"reward": np.array([0.5], dtype=np.float32)})
        assert set(returns_of(engine_of("Answering"), 3)) == {0.5}

    def test_a_vector_environment_is_refused_with_the_remedy(self):
        with pytest.raises(UsageError, match="returned a vector environment: return a single one"):
            make_spec("gymnasium_envs:vector")

    def test_slots_are_separate_environments(self):
        engine = engine_of("corridor", slots=2)
        assert isinstance(engine, GymnasiumEngine)
        engine.begin(0, 1)
        engine.begin(1, 1)
        assert engine._envs[0] is not engine._envs[1]
