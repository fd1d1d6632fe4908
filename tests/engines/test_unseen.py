"""Cheaper pictures leave a game as it is: the same levels, rewards and ends of episodes for the same actions."""

import numpy as np
import pytest

from gapfloor.engines.procgen import MODE_GAMES, make_spec
from gapfloor.engines.registry import engine_from_spec
from gapfloor.engines.unseen import CHEAP_PICTURES, unseen
from gapfloor.levels import LevelSet

LEVELS = LevelSet(0, 50)
SLOTS, STEPS = 8, 120


def played(spec, *, steps=STEPS):
    """What happens under fixed actions, from the levels' initial states and through whatever levels follow."""
    engine = engine_from_spec(spec, slots=SLOTS, levels=LEVELS)
    for slot in range(SLOTS):
        engine.begin(slot, slot + 3)
    actions = np.random.default_rng(1).integers(0, engine.n_actions, (steps, SLOTS))
    rows, frames = [], []
    for each in actions:
        observations, rewards, firsts = engine.step(each)
        rows.append(np.concatenate([rewards, firsts, engine.level_seeds]))
        frames.append(observations.copy())
    engine.close()
    return np.array(rows), np.array(frames)


@pytest.mark.parametrize("game", sorted(CHEAP_PICTURES))
@pytest.mark.parametrize("mode", ["easy", "hard", "extreme", "memory"])
def test_a_game_without_pictures_is_the_same_game(game, mode):
    if game not in MODE_GAMES[mode]:
        pytest.skip("the game does not have this mode")
    spec = make_spec(game, mode=mode)
    (expected, seen), (found, unlike) = played(spec), played(unseen(spec))
    assert np.array_equal(expected, found)
    assert not np.array_equal(seen, unlike)


@pytest.mark.fast
def test_a_recipe_with_options_of_its_own_stays_as_it_is():
    spec = make_spec("starpilot", options={"restrict_themes": True})
    assert unseen(spec) == spec
    assert unseen(make_spec("caveflyer")) == make_spec("caveflyer")
