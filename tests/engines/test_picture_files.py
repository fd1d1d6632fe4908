"""A process that reads fewer pictures plays the same games, and shows the real pictures of those it looks at."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gapfloor.engines.picture_files import BACKGROUND_FOLDERS
from gapfloor.engines.procgen import GAMES

PLAY = """
import hashlib, json, sys
import numpy as np
from gapfloor.engines import picture_files
from gapfloor.engines.procgen import ProcgenEngine
from gapfloor.levels.schedule import LevelSet

promised, games, modes = json.loads(sys.argv[1])
if promised is not None:
    picture_files.only_look_at(promised)
SLOTS, found = 16, {}
for game in games:
    for mode in modes:
        engine = ProcgenEngine(game, slots=SLOTS, levels=LevelSet(0, 500), mode=mode)
        actions = np.random.default_rng(1).integers(0, 15, (12, SLOTS))
        play, frames = hashlib.sha256(), hashlib.sha256()
        for start in range(0, 160, SLOTS):
            for slot in range(SLOTS):
                engine.begin(slot, start + slot)
            for row in actions:
                observations, rewards, firsts = engine.step(row)
                play.update(rewards.tobytes() + firsts.tobytes() + engine.level_seeds.tobytes())
                frames.update(observations.tobytes())
            play.update(b"".join(engine.save(slot) for slot in range(SLOTS)))
        found[f"{game} {mode}"] = play.hexdigest(), frames.hexdigest(), len(observations)
        engine.close()
print(json.dumps(found))
"""


def played(promised, games, modes=("easy",)):
    """(what happened, frames, rows of observations) by game, in a process that made this promise (None: none)."""
    arguments = [sys.executable, "-c", PLAY, json.dumps([promised, games, modes])]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def with_all_pictures():
    return played(None, GAMES, ["easy", "hard"])


def test_games_that_nobody_looks_at_are_the_same_games(with_all_pictures):
    unseen = played([], GAMES, ["easy", "hard"])
    assert {name: row[0] for name, row in unseen.items()} == {
        name: row[0] for name, row in with_all_pictures.items()
    }
    assert {row[2] for row in unseen.values()} == {0}


@pytest.mark.parametrize("first", ["starpilot", "coinrun", "heist", "bigfish"])
def test_games_that_are_looked_at_have_every_pixel(first, with_all_pictures):
    alike = [game for game in GAMES if BACKGROUND_FOLDERS[game] == BACKGROUND_FOLDERS[first]]
    assert len(alike) > 1
    assert played(alike, alike) == {f"{game} easy": with_all_pictures[f"{game} easy"] for game in alike}


def test_a_game_that_was_not_promised_shows_nothing():
    (_, _, n_shown), (_, _, n_hidden) = played(["starpilot"], ["starpilot", "heist"]).values()
    assert (n_shown, n_hidden) == (16, 0)


def test_a_promise_comes_too_late_once_pictures_are_read():
    late = (
        "from gapfloor.engines import picture_files\n"
        "from gapfloor.engines.procgen import ProcgenEngine\n"
        "from gapfloor.levels.schedule import LevelSet\n"
        "ProcgenEngine('starpilot', slots=1, levels=LevelSet(0, 1))\n"
        "picture_files.only_look_at([])\n"
        "assert picture_files.is_shown('starpilot')\n"
    )
    subprocess.run([sys.executable, "-c", late], capture_output=True, check=True)


@pytest.mark.fast
def test_every_game_has_its_backgrounds():
    import procgen

    folders = {path.name for path in (Path(procgen.__file__).parent / "data" / "assets").iterdir()}
    assert set(BACKGROUND_FOLDERS) == set(GAMES)
    assert set().union(*BACKGROUND_FOLDERS.values()) == {name for name in folders if "_backgrounds" in name}
