"""Measuring a registry, and looking floors up."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import gapfloor
from gapfloor.api.measure_registry import read_registry_file
from gapfloor.errors import UsageError

#: Ten that take little time.
CHEAP = (
    "gym:CartPole-v1", "gym:FrozenLake-v1", "gym:FrozenLake8x8-v1", "gym:Blackjack-v1", "gym:Hopper-v5",
    "gym:InvertedPendulum-v5", "gym:InvertedDoublePendulum-v5", "gym:MiniGrid-LavaGapS7-v0",
    "gym:MiniGrid-GoToDoor-8x8-v0", "envpool:merge-v0",
)  # fmt: skip

FILE = """
[[floors]]
family = "toy text"
games = ["gym:FrozenLake-v1", "gym:Blackjack-v1"]
references = ["uniform", "best-constant"]
train = "0:5"
test = "1000:1200"

[[floors]]
family = "classic control"
games = ["envpool:Pendulum-v1"]
references = ["uniform", "zero"]
test = "1000:1004"
"""


@pytest.mark.parametrize("game", CHEAP)
def test_a_floor_measured_again_on_other_seeds_agrees_within_error(game: str) -> None:
    pytest.importorskip(game.partition(":")[0].replace("gym", "gymnasium"))
    known = gapfloor.known_floor(game).floor
    again = gapfloor.measure_floor(
        game, train="none", test="5000:5100", design="census", workers=1, progress=False
    )
    row = again.floors[0]
    # An all-or-nothing return that never came has no spread of its own.
    error = math.hypot(known.sem, max(row.sem, known.sem * math.sqrt(known.n_episodes / row.n_episodes)))
    assert abs(row.mean - known.mean) < 4 * error


def test_a_registry_is_measured_once_and_then_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE)
    told: list[str] = []
    first = gapfloor.measure_registry(file, store=tmp_path / "store", workers=1, progress=told.append)
    assert told == [
        "toy text: gym:FrozenLake-v1",
        "toy text: gym:Blackjack-v1",
        "classic control: envpool:Pendulum-v1",
    ]
    cells = sorted((tmp_path / "store" / "cells").iterdir())
    times = [path.stat().st_mtime_ns for path in cells]
    written = (tmp_path / "store" / "results" / "registry.json").read_text()
    again = gapfloor.measure_registry(file, store=tmp_path / "store", workers=1, progress=False)
    assert again == first
    assert [path.stat().st_mtime_ns for path in cells] == times
    assert (tmp_path / "store" / "results" / "registry.json").read_text() == written
    lake, cards, pendulum = first.entries
    assert lake.floor.success == lake.floor.mean
    assert cards.floor.success is None
    assert [floor.reference for floor in pendulum.floors] == ["uniform", "zero"]
    assert lake.floors[1].action in "0123"
    assert lake.seeds_seen.startswith("4 seeds: 1 starts")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('references = ["uniform", "zero"]', 'references = ["zero"]', "must start with uniform"),
        ('train = "0:5"\n', "", "chosen on other seeds"),
        ("classic control", 'x"\nsuccess = "sometimes', "form of success"),
        ('test = "1000:1004"', 'tests = "1000:1004"', "has no setting 'tests'"),
    ],
)
def test_a_wrong_registry_file_is_refused_before_play(tmp_path: Path, old: str, new: str, words: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE.replace(old, new))
    with pytest.raises(UsageError, match=words):
        read_registry_file(file)


def test_an_environment_that_is_not_in_the_registry_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean gym:CartPole-v1"):
        gapfloor.known_floor("gym:CartPol-v1")


def test_the_shipped_study_file_is_valid() -> None:
    groups = read_registry_file(Path("studies/registry.toml")).floors
    assert len({group.family for group in groups}) >= 5
