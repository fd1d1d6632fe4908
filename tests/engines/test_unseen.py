"""Cheaper pictures leave a game as it is: the same levels, rewards and ends of episodes for the same actions."""

import numpy as np
import pytest

from gapfloor.engines.procgen import GAMES, MODE_GAMES, UnseenProcgen, make_spec
from gapfloor.engines.registry import engine_from_spec, unseen_engine
from gapfloor.levels.schedule import LevelSet

LEVELS = LevelSet(0, 50)
SLOTS, STEPS = 8, 120


def played(engine, *, steps=STEPS):
    """What happens under fixed actions, from the levels' initial states and through whatever levels follow."""
    for slot in range(SLOTS):
        engine.begin(slot, slot + 3)
    actions = np.random.default_rng(1).integers(0, engine.n_actions, (steps, SLOTS))
    rows = []
    for each in actions:
        _, rewards, firsts = engine.step(each)
        rows.append(np.concatenate([rewards, firsts, engine.level_seeds]))
    engine.close()
    return np.array(rows)


@pytest.mark.parametrize("game", GAMES)
@pytest.mark.parametrize("mode", ["easy", "hard", "extreme", "memory"])
def test_a_game_without_pictures_is_the_same_game(game, mode):
    if game not in MODE_GAMES[mode]:
        pytest.skip("the game does not have this mode")
    spec = make_spec(game, mode=mode)
    seen = engine_from_spec(spec, slots=SLOTS, levels=LEVELS)
    unseen = unseen_engine(spec, slots=SLOTS, levels=LEVELS)
    assert np.array_equal(played(seen), played(unseen))


def test_there_is_nothing_to_look_at():
    engine = unseen_engine(make_spec("miner"), slots=2, levels=LEVELS)
    assert len(engine.observe()[0]) == len(engine.step(np.array([4, 4]))[0]) == 0
    engine.close()


def test_a_recipe_with_options_of_its_own_stays_as_it_is():
    spec = make_spec("starpilot", options={"restrict_themes": True})
    engine = unseen_engine(spec, slots=1, levels=LEVELS)
    assert not isinstance(engine, UnseenProcgen)
    assert engine.spec == spec
    engine.close()
