"""Levels that come in `options` or as an argument, scores in `info`, pairs as actions, threads, other libraries."""

import sys
import threading
import types

import numpy as np
import pytest
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from threadpoolctl import threadpool_info, threadpool_limits

import gapfloor
from command_line import run
from gapfloor.engines.gymnasium import description
from gapfloor.engines.registry import check_seed, engine_from_spec, make_spec
from gapfloor.errors import LevelWarning, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.machine import one_blas_thread, without_chatter

GAME = "gymnasium_envs:Elsewhere"


def lengths(**options):
    """The corridor's length on three levels."""
    engine = engine_from_spec(make_spec(GAME, options=options), slots=2, levels=LevelSet(0, 200))
    seen = []
    for level in (1, 2, 11):
        engine.begin(1, level)
        seen.append(float(engine.observe()[0][1, 1]))
    return seen


def test_a_level_reaches_the_environment_where_the_user_says():
    assert lengths() == [6.0, 6.0, 6.0]
    assert lengths(level_in="options:level") == [4.0, 5.0, 7.0]
    assert lengths(level_in="argument:size") == [4.0, 5.0, 7.0]


def test_a_state_is_kept_on_a_level_that_is_an_argument():
    spec = make_spec(GAME, options={"level_in": "argument:size"})
    engine = engine_from_spec(spec, slots=2, levels=LevelSet(0, 9))
    engine.begin(0, 4)
    engine.step(np.array([4, 4]))
    engine.load(1, engine.save(0))
    rows, _, _ = engine.step(np.array([4, 4]))
    assert rows[0].tolist() == rows[1].tolist()


def test_a_place_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="options:NAME"):
        make_spec(GAME, options={"level_in": "somewhere"})


@pytest.mark.parametrize("game", [GAME, "gym:FrozenLake-v1"])
def test_one_level_for_every_seed_is_warned_of_with_the_remedy(game):
    options = {"is_slippery": False} if game.startswith("gym:") else {}
    with pytest.warns(LevelWarning, match="--level-in options:NAME"):
        check_seed(make_spec(game, options=options))


def test_levels_that_differ_are_not_warned_of(recwarn):
    check_seed(make_spec(GAME, options={"level_in": "options:level"}))
    check_seed(make_spec("gym:FrozenLake-v1"))
    assert [each for each in recwarn if each.category is LevelWarning] == []


def test_the_command_takes_both_and_its_cells_record_them(capsys, tmp_path):
    arguments = ["--draws", 0, "--episodes", 16, "--workers", 1, "--store", tmp_path]
    done = run(capsys, "floor", GAME, "--level-in", "options:level", "--score", "points", *arguments)
    assert done.code == 0, done.err
    (first, *_) = gapfloor.Store(tmp_path).cells()
    assert first.manifest.content["options"] == {"level_in": "options:level", "score": "points"}
    done = run(capsys, "floor", GAME, "--score", "coins", *arguments)
    assert done.code == 2
    assert "does not report a score 'coins': info has points" in done.err


def test_a_score_is_added_up_like_rewards():
    engine = engine_from_spec(make_spec(GAME, options={"score": "points"}), slots=1, levels=LevelSet(0, 9))
    engine.begin(0, 0)
    rewards = [float(engine.step(np.array([action]))[1][0]) for action in (0, 1, 2, 3)]
    assert rewards == [0.5, 1.0, 0.5, 1.0]


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_standard_stream_survives_threads(stream):
    before, inside = getattr(sys, stream), threading.Barrier(2)

    def mute():
        for _ in range(200):
            with without_chatter(stream):
                pass
        inside.wait()

    threads = [threading.Thread(target=mute) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert getattr(sys, stream) is before


def test_only_the_thread_that_makes_a_level_is_silent(capsys):
    with without_chatter():
        sys.stdout.write("chatter")
        other = threading.Thread(target=print, args=("the host's own words",))
        other.start()
        other.join()
    assert capsys.readouterr().out == "the host's own words\n"


@pytest.mark.parametrize(
    ("library", "wrapper"), [("pettingzoo", "gymnasium.Env"), ("gymnax", "GymnaxToGymWrapper")]
)
def test_environments_of_other_interfaces_get_the_name_of_a_wrapper(monkeypatch, library, wrapper):
    kind = type("ParallelEnv", (), {"__module__": f"{library}.utils.env", "reset": None, "step": None})
    module = types.ModuleType("strangers")
    module.make = kind
    monkeypatch.setitem(sys.modules, "strangers", module)
    description._describe.cache_clear()
    with pytest.raises(UsageError, match=wrapper):
        make_spec("strangers:make")


def test_a_reward_that_becomes_nan_is_refused_when_it_occurs(capsys, monkeypatch, tmp_path):
    real = CartPoleEnv.step

    def step(self, action):
        observation, _, *rest = real(self, action)
        return observation, float("nan"), *rest

    monkeypatch.setattr(CartPoleEnv, "step", step)
    done = run(capsys, "floor", "gym:CartPole-v1", "--workers", 1, "--store", tmp_path)
    assert done.code == 2
    assert "finite" in done.err


def test_numbers_of_threads_are_restored_when_evaluations_overlap():
    def threads():
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads() == {1}
        second.__exit__(None, None, None)
        assert threads() == {2}
