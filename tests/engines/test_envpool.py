"""EnvPool's ProcGen, held against ProcGen itself: levels, rewards and ends agree; pixels need not."""

import ctypes
import dataclasses
import importlib.metadata
import sys

import numpy as np
import pytest

import small_policies
from balanced_loop import play_plainly
from gapfloor import evaluate
from gapfloor.actions.spaces import Discrete
from gapfloor.api.floor import floor as measure_floor
from gapfloor.cli.main import main
from gapfloor.engines import envpool as engine_module
from gapfloor.engines.doctor import examine_engine
from gapfloor.engines.engine import EngineSpec
from gapfloor.engines.envpool import engine_from_spec, engine_version, make_spec
from gapfloor.engines.procgen import GAMES, PAPER_GAMES, ProcgenEngine
from gapfloor.errors import MissingExtraError, StoreError, UsageError
from gapfloor.levels.schedule import LevelSet, draw_levels
from gapfloor.play.actor import ReferenceActor
from gapfloor.play.cell import CellSpec, Design, Run
from gapfloor.play.player import CellPlay, Player
from gapfloor.play.protocol import expand_games
from gapfloor.play.replay import choose_episodes, replay_episodes
from gapfloor.policies.load import PolicySource
from gapfloor.policies.references import Uniform
from gapfloor.records.store import Store

try:
    engine_version()
except MissingExtraError as error:
    pytest.skip(str(error), allow_module_level=True)

HELD_OUT = LevelSet(1000, 1100)
SMALL = {"episodes": 4, "slots": 2, "draws": (0,), "train": "0:20", "test": "100:120", "workers": 1}
#: Games in which both engines draw every pixel the same (research-notes/environments.md).
SAME_PIXELS = ("bigfish", "chaser", "leaper", "maze", "miner")


def random_actions(steps, slots, seed=0):
    return np.random.default_rng(seed).integers(0, 15, (steps, slots))


def play_in_both(game, *, levels, steps, mode="easy", options=None):
    """Both engines on the same levels and actions; each step of both, an ended slot beginning its level again."""
    ours = engine_from_spec(
        make_spec(game, mode=mode, options=options), slots=len(levels), levels=LevelSet(0, 1)
    )
    theirs = ProcgenEngine(
        game, slots=len(levels), levels=LevelSet(levels[0], levels[0] + 1), mode=mode, options=options
    )
    for slot, level in enumerate(levels):
        ours.begin(slot, level)
        theirs.begin(slot, level)
    for row in random_actions(steps, len(levels)):
        yield [ours.observe()[0].copy(), theirs.observe()[0].copy()]
        mine = [array.copy() for array in ours.step(row)[1:]]
        other = [array.copy() for array in theirs.step(row)[1:]]
        np.testing.assert_array_equal(mine[0], other[0])
        np.testing.assert_array_equal(mine[1], other[1])
        for slot in np.flatnonzero(other[1]):
            ours.begin(slot, levels[slot])
            theirs.begin(slot, levels[slot])
        np.testing.assert_array_equal(ours.level_seeds, theirs.level_seeds)


@pytest.mark.parametrize("game", GAMES)
def test_rewards_and_ends_are_those_of_procgen_on_the_same_level(game):
    frames = list(play_in_both(game, levels=[0, 57, 1003], steps=150))
    alike = np.mean([(ours == theirs).mean() for ours, theirs in frames])
    assert alike == 1 if game in SAME_PIXELS else alike > 0.95


@pytest.mark.parametrize(
    ("game", "mode", "options", "levels"),
    [
        ("maze", "hard", {}, [3, 4]),
        ("maze", "memory", {}, [3, 4]),
        ("leaper", "extreme", {}, [3, 4]),
        ("bigfish", "easy", {"use_backgrounds": False}, [3, 4]),
        ("chaser", "easy", {"use_monochrome_assets": True, "restrict_themes": True}, [3, 4]),
    ],
)
def test_modes_and_options_mean_the_same(game, mode, options, levels):
    for ours, theirs in play_in_both(game, levels=levels, steps=40, mode=mode, options=options):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("levels", [LevelSet(0, 200), HELD_OUT, LevelSet.parse("all")])
def test_envpool_itself_draws_levels_by_procgens_law(levels):
    import envpool

    limits = {} if levels.is_everything else {"num_levels": levels.n, "start_level": levels.start}
    pool = envpool.make("MinerEasy-v0", env_type="gymnasium", num_envs=3, num_threads=1, seed=11, **limits)
    drawn = np.stack([pool.reset()[1]["level_seed"].copy() for _ in range(5)], axis=1)
    np.testing.assert_array_equal(drawn, draw_levels(levels, draw=11, slots=3, episodes=5))


def test_the_call_after_an_end_is_not_a_step_in_envpool_and_is_never_made():
    import envpool

    pool = envpool.make("StarpilotEasy-v0", env_type="gymnasium", num_envs=1, num_threads=1, num_levels=1)
    pool.reset()
    actions = random_actions(1100, 1).astype(np.int32)
    length = next(n for n, row in enumerate(actions, 1) if pool.step(row)[2][0])
    _, rewards, ends, _, info = pool.step(actions[0])
    assert info["elapsed_step"][0] == rewards[0] == 0
    assert not ends[0]
    engine = engine_from_spec(make_spec("starpilot"), slots=1, levels=LevelSet(0, 1))
    ends = [bool(engine.step(row)[2][0]) for row in [*actions[:length], *actions[:length]]]
    assert np.flatnonzero(ends).tolist() == [length - 1, 2 * length - 1]


def test_a_fresh_engine_plays_through_its_draw_and_shows_the_next_level_where_one_ends():
    engine = engine_from_spec(make_spec("dodgeball"), slots=2, levels=HELD_OUT, draw=5)
    beside = engine_from_spec(make_spec("dodgeball"), slots=1, levels=HELD_OUT)
    _, rewards, firsts = engine.observe()
    assert firsts.all()
    assert not rewards.any()
    played = [[level] for level in engine.level_seeds.tolist()]
    for row in random_actions(1000, 2):
        observations, _, firsts = engine.step(row)
        for slot in np.flatnonzero(firsts):
            played[slot].append(int(engine.level_seeds[slot]))
            beside.begin(0, played[slot][-1])
            np.testing.assert_array_equal(observations[slot], beside.observe()[0][0])
    fewest = min(map(len, played))
    assert fewest >= 3
    expected = draw_levels(HELD_OUT, draw=5, slots=2, episodes=20)
    for slot in range(2):
        assert played[slot] == expected[slot, : len(played[slot])].tolist()


def test_a_draw_can_be_longer_than_first_thought():
    engine = engine_from_spec(make_spec("leaper"), slots=1, levels=HELD_OUT, draw=1)
    engine.observe()
    levels = [int(engine.level_seeds[0]) for row in random_actions(3000, 1) if engine.step(row)[2][0]]
    assert len(levels) > 16
    assert levels == draw_levels(HELD_OUT, draw=1, slots=1, episodes=len(levels) + 1)[0, 1:].tolist()


def test_a_begun_slot_waits_where_its_episode_ends():
    engine = engine_from_spec(make_spec("starpilot"), slots=2, levels=HELD_OUT)
    engine.begin(1, 1005)
    actions = random_actions(1100, 2)
    steps = iter(actions)
    while not engine.step(next(steps))[2][1]:
        pass
    for row in actions[:3]:
        observations, rewards, firsts = engine.step(row)
        assert firsts[1]
        assert rewards[1] == 0
        assert not observations[1].any()
    engine.begin(1, 1006)
    assert engine.observe()[0][1].any()
    assert not engine.step(actions[0])[2][1]


def test_the_queue_plays_what_the_plain_loop_plays():
    # Dodgeball, because there a slot of ProcGen remembers what it played before.
    spec = make_spec("dodgeball")
    cell = CellSpec(
        spec, Run(reference="uniform"), "uniform", "uniform", "test", HELD_OUT, 2, Design(2, 1, 6)
    )
    actor = ReferenceActor(Uniform(), space=Discrete(15))
    player = Player(
        make_engine=lambda n: engine_from_spec(spec, slots=n, levels=HELD_OUT), actor=actor, n_slots=3
    )
    queued = next(player.play([CellPlay(cell)])).finished()
    engine = engine_from_spec(spec, slots=2, levels=HELD_OUT, draw=2)
    plain = play_plainly(CellPlay(cell), engine=engine, actor=actor)
    assert [(o.episode_return, o.length) for o in queued] == [(o.episode_return, o.length) for o in plain]


def test_the_schedule_of_a_draw_is_procgens():
    ours = measure_cell("envpool:leaper").schedule()
    theirs = measure_cell("leaper").schedule()
    np.testing.assert_array_equal(ours.level_seed, theirs.level_seed)


def measure_cell(game):
    from gapfloor.engines.registry import make_spec as spec_of

    return CellSpec(spec_of(game), Run(reference="uniform"), "uniform", "uniform", "test", HELD_OUT, 1)


def test_both_engines_in_one_command_are_two_rows_and_only_procgens_is_shown_with_a_shipped_floor():
    from gapfloor.analysis.known_floors import shipped_procgen_floor

    measured = measure_floor(
        ["starpilot", "envpool:starpilot"], **{**SMALL, "train": "none", "test": "1000:1100"}
    )
    assert measured.floors[0].engine.startswith("procgen ")
    assert measured.floors[1].engine == f"envpool {engine_version()}"
    assert shipped_procgen_floor(measured.floors[0], "measured")
    assert not shipped_procgen_floor(measured.floors[1], "measured")


def test_a_cell_records_the_engine_and_the_library_that_drew_it(tmp_path):
    measure_floor("envpool:leaper", store=tmp_path, **SMALL)
    contents = [cell.manifest.content for cell in Store(tmp_path).cells()]
    assert {content["engine"] for content in contents} == {"envpool"}
    assert {content["engine_version"] for content in contents} == {engine_version()}
    assert ("+qt5." in engine_version()) == (sys.platform == "linux")


@pytest.fixture
def policy():
    made = small_policies.linear()
    made.fingerprint = "linear"
    return made


def test_floors_of_the_other_engine_are_left_aside_and_runs_of_it_refused(tmp_path, policy):
    measure_floor("starpilot", store=tmp_path, **SMALL)
    evaluate(policy, game="envpool:starpilot", rules="sampled", store=tmp_path, **SMALL)
    kept = Store(tmp_path).comparable_cells()
    assert {cell.manifest.content["engine"] for cell in kept} == {"envpool"}
    assert {cell.is_reference for cell in kept} == {True, False}
    before = sorted(path.name for path in (tmp_path / "cells").iterdir())
    with pytest.raises(StoreError, match="engine: envpool there, procgen here"):
        evaluate(policy, game="starpilot", rules="sampled", store=tmp_path, **SMALL)
    assert sorted(path.name for path in (tmp_path / "cells").iterdir()) == before


def test_floors_of_two_engines_alone_are_not_comparable(tmp_path):
    for game in ("leaper", "envpool:leaper"):
        measure_floor(game, store=tmp_path, **{**SMALL, "train": "none"})
    with pytest.raises(StoreError, match="2 designs"):
        Store(tmp_path).comparable_cells()


def test_episodes_can_be_replayed(tmp_path, policy):
    evaluate(policy, game="envpool:starpilot", rules="sampled,greedy", store=tmp_path, **SMALL)
    store = Store(tmp_path)
    episodes = choose_episodes(store.cells(), count=1)
    paths = replay_episodes(episodes, store=store, sources=[PolicySource("linear", given=policy)])
    assert len(paths) == 3
    assert all(np.load(path)["frames"].any() for path in paths)


def test_a_census_plays_every_level(tmp_path):
    measured = measure_floor(
        "envpool:leaper", train="none", test="1000:1006", design="census", workers=1, store=tmp_path
    )
    assert measured.floors[0].n_episodes == 6
    assert sorted(Store(tmp_path).episodes()["level_seed"].to_pylist()) == list(range(1000, 1006))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["calibrate", "envpool:starpilot"], "Calibration clones states, which EnvPool cannot do"),
        (["calibrate", "envpool:paper"], "Calibration clones states, which EnvPool cannot do"),
        (
            ["evaluate", "small_policies:linear", "--game", "envpool:miner", "--rules", "greedy,merged"],
            "The rule merged clones states, which EnvPool cannot do",
        ),
        (
            [
                "evaluate",
                "small_policies:linear",
                "--game",
                "envpool:miner",
                "--rules",
                "sampled",
                "--probe",
                "64",
            ],
            "The probe of merged entropy clones states, which EnvPool cannot do",
        ),
    ],
)
def test_what_clones_states_says_so_before_any_work(capsys, tmp_path, arguments, words):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--store", str(tmp_path / "store")])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_saving_a_state_is_refused_in_words():
    engine = engine_from_spec(make_spec("miner"), slots=1, levels=HELD_OUT)
    assert not engine.can_clone
    for attempt in (lambda: engine.save(0), lambda: engine.load(0, b"")):
        with pytest.raises(UsageError, match="calibration is not possible"):
            attempt()


@pytest.mark.parametrize(
    ("game", "settings", "words"),
    [
        ("starpilt", {}, "did you mean starpilot"),
        ("starpilot", {"mode": "memory"}, "has no memory mode"),
        ("starpilot", {"options": {"use_background": False}}, "did you mean use_backgrounds"),
        ("starpilot", {"options": {"use_backgrounds": 3}}, "must be true or false"),
    ],
)
def test_a_wrong_recipe_is_refused_before_the_engine_sees_it(game, settings, words):
    with pytest.raises(UsageError, match=words):
        make_spec(game, **settings)


def test_modes_slots_and_draws_that_would_end_the_process_are_refused():
    with pytest.raises(UsageError, match="mode 'exploration'"):
        make_spec("maze", mode="exploration")
    with pytest.raises(UsageError, match="at least 1 slot"):
        engine_from_spec(make_spec("maze"), slots=0, levels=HELD_OUT)
    with pytest.raises(UsageError, match="out of range"):
        engine_from_spec(make_spec("maze"), slots=1, levels=HELD_OUT, draw=-1)


def test_another_version_of_envpool_or_qt_is_refused():
    other = EngineSpec("envpool", "1.2.5+qt5.9.7", "starpilot", "easy")
    with pytest.raises(UsageError, match=r"made with EnvPool 1\.2\.5\+qt5\.9\.7 and"):
        engine_from_spec(other, slots=1, levels=HELD_OUT)


def test_missing_parts_are_named(monkeypatch):
    def absent(*_):
        raise OSError("cannot open shared object file")

    with monkeypatch.context() as patch:
        patch.setattr(ctypes, "CDLL", absent)
        with pytest.raises(MissingExtraError, match="apt install libqt5gui5"):
            engine_module._system_qt()
    absent_wheel = dataclasses.replace(engine_module.ENVPOOL, package="no-such-wheel-of-envpool")
    monkeypatch.setattr(engine_module, "ENVPOOL", absent_wheel)
    with pytest.raises(MissingExtraError, match=r"gapfloor\[envpool\]"):
        engine_version.__wrapped__()
    assert importlib.metadata.version("envpool")


def test_the_papers_games_can_be_named_together():
    assert expand_games(["envpool:paper"]) == tuple(f"envpool:{game}" for game in PAPER_GAMES)
    assert len(expand_games(["envpool:all", "paper"])) == 24


def test_doctor_says_that_it_is_there_and_cannot_clone():
    findings = examine_engine(engine_module.ENVPOOL, ["dodgeball"])
    assert [finding.mark for finding in findings] == ["ok", "note"]
    assert "10 of 11 parts of the engine contract hold" in findings[0].words
    assert "states can be cloned" in findings[1].words
