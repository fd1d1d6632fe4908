"""The contracts of the engine, held against the real ProcGen."""

import subprocess
import sys

import numpy as np
import pytest

from gapfloor.engines.engine import package_version
from gapfloor.engines.procgen import (
    GAMES,
    MODE_GAMES,
    ProcgenEngine,
    make_spec,
    wheel_version,
)
from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.levels.schedule import LevelSet, draw_levels

TRAIN = LevelSet(0, 200)


def actions_for(steps, slots, seed=0):
    return np.random.default_rng(seed).integers(0, 15, (steps, slots))


def level_sequence(engine, episodes, actions):
    """The levels of each slot, ending episodes by playing them."""
    seen = [[int(level)] for level in engine.level_seeds]
    for row in actions:
        engine.step(row)
        for slot in np.flatnonzero(engine.observe()[2]):
            seen[slot].append(int(engine.level_seeds[slot]))
        if min(len(levels) for levels in seen) >= episodes:
            break
    return [levels[:episodes] for levels in seen]


@pytest.mark.parametrize("game", ["starpilot", "fruitbot", "bossfight"])
@pytest.mark.parametrize("slots", [2, 5])
def test_the_level_sequence_is_the_draws_own_whatever_game_slots_and_actions(game, slots):
    engine = ProcgenEngine(game, slots=slots, levels=TRAIN, draw=11)
    played = level_sequence(engine, 3, actions_for(4000, slots, seed=slots))
    assert played == draw_levels(TRAIN, draw=11, slots=slots, episodes=3).tolist()


def test_another_draw_seed_gives_another_sequence():
    first = ProcgenEngine("starpilot", slots=8, levels=TRAIN, draw=0).level_seeds.tolist()
    second = ProcgenEngine("starpilot", slots=8, levels=TRAIN, draw=1).level_seeds.tolist()
    assert first != second


def test_level_seeds_stay_inside_the_set():
    engine = ProcgenEngine("starpilot", slots=64, levels=LevelSet(1000, 1003), draw=0)
    assert set(engine.level_seeds.tolist()) == {1000, 1001, 1002}


def test_the_whole_distribution_is_drawn_by_the_same_law():
    engine = ProcgenEngine("coinrun", slots=8, levels=LevelSet.parse("all"), draw=4)
    expected = draw_levels(LevelSet.parse("all"), draw=4, slots=8, episodes=1)[:, 0]
    assert engine.level_seeds.tolist() == expected.tolist()


def frames_from(engine, slot, actions):
    """Frames, rewards and boundaries of one slot under `actions`."""
    history = [engine.observe()[0][slot].copy()]
    rewards = []
    for action in actions:
        row = np.full(engine.n_slots, engine.noop)
        row[slot] = action
        observations, reward, firsts = engine.step(row)
        rewards.append((float(reward[slot]), bool(firsts[slot])))
        if firsts[slot]:
            break
        history.append(observations[slot].copy())
    return np.array(history), rewards


@pytest.mark.parametrize("game", GAMES)
def test_an_episode_from_its_initial_state_is_a_function_of_the_actions(game):
    actions = actions_for(120, 1)[:, 0]
    fresh = ProcgenEngine(game, slots=1, levels=TRAIN, draw=0)
    fresh.load(0, fresh.initial_state(17))
    used = ProcgenEngine(game, slots=3, levels=LevelSet(500, 900), draw=9)
    for row in actions_for(50, 3, seed=5):
        used.step(row)
    used.load(2, used.initial_state(17))
    frames, rewards = frames_from(fresh, 0, actions)
    again, rewards_again = frames_from(used, 2, actions)
    assert rewards == rewards_again
    assert np.array_equal(frames, again)


@pytest.mark.parametrize("game", GAMES)
def test_a_loaded_state_continues_exactly_as_the_saved_one(game):
    engine = ProcgenEngine(game, slots=2, levels=TRAIN, draw=1)
    for row in actions_for(20, 2, seed=3):
        engine.step(row)
    engine.load(1, engine.save(0))
    for action in actions_for(60, 1, seed=4)[:, 0]:
        observations, rewards, firsts = engine.step(np.array([action, action]))
        assert np.array_equal(observations[0], observations[1])
        assert rewards[0] == rewards[1]
        assert firsts[0] == firsts[1]
        if firsts[0]:
            break


def test_a_level_played_in_a_draw_starts_in_its_initial_state():
    engine = ProcgenEngine("miner", slots=4, levels=TRAIN, draw=2)
    other = ProcgenEngine("miner", slots=4, levels=TRAIN, draw=0)
    for slot, level in enumerate(engine.level_seeds.tolist()):
        other.load(slot, other.initial_state(level))
    assert np.array_equal(engine.observe()[0], other.observe()[0])


@pytest.mark.parametrize("mode", sorted(MODE_GAMES))
def test_a_mode_that_a_game_lacks_is_refused_before_the_engine_ends_the_process(mode):
    missing = [game for game in GAMES if game not in MODE_GAMES[mode]]
    if not missing:
        for game in GAMES:
            assert make_spec(game, mode=mode).mode == mode
        return
    with pytest.raises(UsageError, match=f"has no {mode} mode"):
        make_spec(missing[0], mode=mode)


@pytest.mark.parametrize(("mode", "game"), [("extreme", "leaper"), ("memory", "maze"), ("hard", "climber")])
def test_every_mode_plays(mode, game):
    engine = ProcgenEngine(game, slots=2, levels=TRAIN, mode=mode)
    engine.step(np.array([7, 7]))
    assert engine.observe()[0].any()


def test_visual_options_change_the_picture_and_defaults_leave_the_recipe():
    plain = ProcgenEngine("coinrun", slots=1, levels=TRAIN, options={"use_backgrounds": False})
    usual = ProcgenEngine("coinrun", slots=1, levels=TRAIN, options={"use_backgrounds": True})
    assert not np.array_equal(plain.observe()[0], usual.observe()[0])
    assert plain.spec.options == (("use_backgrounds", False),)
    assert usual.spec.options == ()


def test_unknown_names_are_answered_with_the_nearest():
    with pytest.raises(UsageError, match="did you mean starpilot"):
        make_spec("starpilt")
    with pytest.raises(UsageError, match="did you mean use_backgrounds"):
        make_spec("coinrun", options={"use_background": False})


def test_gyms_notice_does_not_reach_the_user():
    code = (
        "from gapfloor.engines.procgen import ProcgenEngine; from gapfloor.levels.schedule import LevelSet;"
        "ProcgenEngine('coinrun', slots=1, levels=LevelSet(0, 1))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout == ""


def test_a_missing_wheel_is_answered_with_the_command_that_installs_it(monkeypatch):
    import importlib.metadata

    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    package_version.cache_clear()
    with pytest.raises(MissingExtraError, match=r'pip install "gapfloor\[procgen\]"'):
        wheel_version.__wrapped__()
    package_version.cache_clear()


def test_an_engine_that_is_garbage_can_be_freed_while_another_is_made():
    engine = ProcgenEngine("coinrun", slots=1, levels=LevelSet(0, 1))
    ffi, library = engine._batch._ffi, engine._batch._lib
    # Making an engine holds this lock; freeing one must not ask for it.
    assert ffi._lock is not None
    assert "libenv_close" in vars(library)
