"""Layouts found through frames, held against the objects in the engine's own states."""

import pytest
from tests.engines.procgen_state import objects

from gapfloor.engines.level_comparison import (
    LATER,
    SCREEN,
    Layouts,
    compare_levels,
    fixed_sequences,
    random_sequences,
)
from gapfloor.engines.procgen import GAMES, ProcgenEngine, make_spec
from gapfloor.errors import UsageError
from gapfloor.levels.overlap import equal_pairs
from gapfloor.levels.schedule import LevelSet

TRAIN, TEST = LevelSet(0, 60), LevelSet(1000, 1030)


def check_layouts(game, *, train, test, mode="easy"):
    return compare_levels(make_spec(game, mode=mode), train=train, test=test)


@pytest.fixture(scope="module")
def coinrun():
    return check_layouts("coinrun", train=TRAIN, test=TEST)


def pairs_by_objects(game, train=TRAIN, test=TEST):
    options = {"restrict_themes": True, "use_backgrounds": False}
    engine = ProcgenEngine(game, slots=1, levels=LevelSet(0, 1), options=options)
    levels = [*range(train.start, train.stop), *range(test.start, test.stop)]
    return equal_pairs(
        {level: objects(engine.initial_state(level)) for level in levels}, train=train, test=test
    )


def as_pairs(overlap):
    return [(pair.held_out, pair.training) for pair in overlap.pairs]


def test_coinruns_pairs_are_those_with_the_same_objects(coinrun):
    assert as_pairs(coinrun) == pairs_by_objects("coinrun")
    assert len(coinrun.leaked) >= 3


@pytest.mark.parametrize(
    ("game", "test"), [("maze", LevelSet(1000, 1030)), ("climber", LevelSet(1060, 1090)), ("heist", TEST)]
)
def test_pairs_of_other_games_are_those_with_the_same_objects_too(game, test):
    found = check_layouts(game, train=TRAIN, test=test)
    assert as_pairs(found) == pairs_by_objects(game, test=test)
    assert bool(found.pairs) == (game != "heist")


def test_a_shared_first_screen_is_not_called_a_leak(coinrun):
    assert coinrun.first_screen > len(coinrun.leaked)


def test_levels_that_only_start_alike_are_told_apart_by_play():
    found = check_layouts("bigfish", train=LevelSet(0, 20), test=LevelSet(1000, 1020))
    assert found.first_frame > 0
    assert found.pairs == ()
    assert found.distinct_train == 20
    assert "64 steps of 3 fixed sequences" in found.compared
    assert found.later == LATER["bigfish"]


def test_longer_play_confirms_coinruns_pairs(coinrun):
    assert coinrun.confirmed_by_moves == coinrun.confirmed_by_actions == len(coinrun.leaked)


def test_longer_play_with_every_action_refutes_ninjas_pairs_and_moves_do_not():
    # Its stars break ties by the level's own random stream, so equal layouts are not yet equal play.
    found = check_layouts("ninja", train=LevelSet(0, 60), test=LevelSet(1013, 1015))
    assert found.leaked
    assert found.confirmed_by_moves == len(found.leaked)
    assert found.confirmed_by_actions < len(found.leaked)


def test_a_fingerprint_depends_neither_on_companions_nor_on_what_comes_after_an_end():
    look = Layouts(make_spec("maze"))
    long = ((7,) * 60, (1, 5) * 60)
    together = look.fingerprints([3, 8, 1000, 41], SCREEN, long)
    for level in (3, 1000):
        assert look.fingerprints([level], SCREEN, long) == {level: together[level]}


def test_fixed_sequences_hold_straight_moves_and_never_change():
    assert fixed_sequences() == fixed_sequences()
    assert {len(sequence) for sequence in fixed_sequences()} == {64}
    assert len({*fixed_sequences()}) == 3


def test_longer_play_is_another_play_than_the_fixed_one():
    moves, actions = random_sequences(9, seed=0), random_sequences(15, seed=0)
    assert max(max(sequence) for sequence in moves) == 8
    assert max(max(sequence) for sequence in actions) > 8
    assert not {sequence[:64] for sequence in (*moves, *actions)} & {*fixed_sequences()}


def test_what_comes_later_is_said_of_real_games():
    assert set(LATER) <= set(GAMES)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"game": "coinrn"}, "did you mean coinrun"),
        ({"mode": "memory"}, "has no memory mode"),
        ({"test": LevelSet(150, 250)}, "share the levels"),
        ({"test": LevelSet.parse("all")}, "give a range"),
    ],
)
def test_bad_settings_are_refused_before_the_engine_sees_them(settings, words):
    chosen = {"game": "coinrun", "train": LevelSet(0, 200), "test": LevelSet(1000, 1100), **settings}
    with pytest.raises(UsageError, match=words):
        check_layouts(chosen.pop("game"), **chosen)
