"""Measuring a registry, and looking floors up."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import gapfloor
from gapfloor.errors import UsageError
from measure_registry import measure_registry
from registry_cost import RegistryCost
from registry_file import read_registry_file

#: One environment of each family, with as many episodes as take little time.
AGAIN = {
    "gym:CartPole-v1": 100, "gym:FrozenLake8x8-v1": 100, "gym:Hopper-v5": 100, "envpool:LunarLanderContinuous-v3": 50,
    "gym:MiniGrid-LavaGapS7-v0": 100, "envpool:merge-v0": 100, "envpool:Sokoban-v0": 50,
    "starpilot": 100, "envpool:CheetahRun-v1": 8, "envpool:Breakout-v5": 8, "envpool:MetaWorld/DrawerOpen-v3": 8,
}  # fmt: skip

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


@pytest.mark.parametrize("game", AGAIN)
def test_a_floor_measured_again_on_other_seeds_agrees_within_error(game: str) -> None:
    engine, has_prefix, _ = game.partition(":")
    pytest.importorskip(engine.replace("gym", "gymnasium") if has_prefix else "gapfloor")
    known = gapfloor.known_floor(game).floor
    again = gapfloor.floor(
        game, train="none", test=f"5000:{5000 + AGAIN[game]}", design="census", workers=1, progress=False
    )
    row = again.floors[0]
    # An all-or-nothing return that never came has no spread of its own.
    error = math.hypot(known.sem, max(row.sem, known.sem * math.sqrt(known.n_episodes / row.n_episodes)))
    assert abs(row.mean - known.mean) < 4 * error


def test_a_registry_is_measured_once_and_then_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE)
    told: list[str] = []
    first = measure_registry(file, store=tmp_path / "store", workers=1, progress=told.append)
    assert told == [
        "1 of 3, toy text: gym:FrozenLake-v1",
        "2 of 3, toy text: gym:Blackjack-v1",
        "3 of 3, classic control: envpool:Pendulum-v1",
    ]
    cells = sorted((tmp_path / "store" / "cells").iterdir())
    times = [path.stat().st_mtime_ns for path in cells]
    written = (tmp_path / "store" / "results" / "registry.json").read_text()
    again = measure_registry(file, store=tmp_path / "store", workers=1, progress=False)
    assert again == first
    assert [path.stat().st_mtime_ns for path in cells] == times
    assert (tmp_path / "store" / "results" / "registry.json").read_text() == written
    lake, cards, pendulum = first.entries
    assert lake.floor.success == lake.floor.mean
    assert cards.floor.success is None
    assert [floor.reference for floor in pendulum.floors] == ["uniform", "zero"]
    assert lake.floors[1].action in "0123"
    assert lake.seeds_seen.startswith("4 seeds: 1 starts")


def test_other_references_may_have_fewer_seeds_and_the_command_says_so(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE.replace('"1000:1200"', '"1000:1200"\nothers = "1000:1020"'))
    lake = measure_registry(file, store=tmp_path / "store", workers=1, progress=False).entries[0]
    assert [(floor.n_episodes, floor.seeds) for floor in lake.floors] == [(200, ""), (20, "1000:1020")]
    uniform, others = lake.command.split(" && ")
    assert uniform.endswith("--train none --test 1000:1200 --reference uniform")
    assert others.endswith("--train 0:5 --test 1000:1020 --reference best-constant")


def test_an_environment_that_cannot_be_made_is_left_out_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(FILE.replace('"gym:Blackjack-v1"', '"gym:Blackjak-v1"'))
    told: list[str] = []
    registry = measure_registry(file, store=tmp_path / "store", workers=1, progress=told.append)
    assert [entry.game for entry in registry.entries] == ["gym:FrozenLake-v1", "envpool:Pendulum-v1"]
    assert registry.left_out[0].startswith("gym:Blackjak-v1: Unknown environment")
    assert told[0] == f"Left out: {registry.left_out[0]}"
    assert registry.to_dict()["left_out"] == list(registry.left_out)


def test_the_cost_of_resumed_runs_is_added_up_by_family(tmp_path: Path) -> None:
    with RegistryCost(tmp_path).timing("toy text", "Taxi-v4"):
        sum(range(3_000_000))
    first = RegistryCost(tmp_path).seconds["toy text"]["Taxi-v4"]
    with RegistryCost(tmp_path).timing("toy text", "Taxi-v4"):
        sum(range(3_000_000))
    assert RegistryCost(tmp_path).seconds["toy text"]["Taxi-v4"] > first > 0
    assert "(toy text " in RegistryCost(tmp_path).sentence()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('references = ["uniform", "zero"]', 'references = ["zero"]', "must start with uniform"),
        ('train = "0:5"\n', "", "chosen on other seeds"),
        ("classic control", 'x"\nsuccess = "sometimes', "form of success"),
        ('test = "1000:1004"', 'tests = "1000:1004"', "has no setting 'tests'"),
        ('test = "1000:1004"', 'test = "1000:1004"\nothers = "many"', "many"),
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
