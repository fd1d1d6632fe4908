"""A census on the real engine: every level equally often, and nothing left to draw."""

import numpy as np
import pytest

import small_policies
from gapfloor import evaluate
from gapfloor.analysis.apply import analyse
from gapfloor.api.floor import floor as measure_floor
from gapfloor.engines.procgen import ProcgenEngine
from gapfloor.errors import StoreError, UsageError
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.cell import episode_stream
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import canonical_json

CENSUS = {"design": "census", "train": "0:6", "test": "100:104", "workers": 1}


def test_every_level_is_played_as_often_as_asked(tmp_path):
    floor = measure_floor("starpilot", repeats=3, store=tmp_path, **CENSUS)
    assert [row.n_episodes for row in floor.floors] == [18, 12]
    levels = Store(tmp_path).episodes().column("level_seed").to_numpy()
    assert dict(zip(*np.unique(levels, return_counts=True), strict=True)) == dict.fromkeys(
        [*range(6), *range(100, 104)], 3
    )


def test_an_episode_of_a_census_is_the_level_played_alone_with_its_own_stream(tmp_path):
    measure_floor("bossfight", repeats=2, store=tmp_path, **CENSUS)
    rows = [row for row in Store(tmp_path).episodes().to_pylist() if row["level_set"] == "test"]
    name = canonical_json(
        ["action", "procgen", "bossfight", "easy", "uniform", "uniform", "100:104", "census"]
    )
    for row in rows:
        engine = ProcgenEngine(
            "bossfight", slots=1, levels=LevelSet(row["level_seed"], row["level_seed"] + 1)
        )
        stream = episode_stream(name, slot=row["slot"], index=row["index"])
        returned, length, ended = 0.0, 0, False
        while not ended:
            _, rewards, firsts = engine.step(np.array([int(stream.random() * 15)]))
            returned, length, ended = returned + float(rewards[0]), length + 1, bool(firsts[0])
        engine.close()
        assert (row["episode_return"], row["length"]) == (returned, length)


def test_greedy_once_is_exact_and_further_repeats_are_copies(tmp_path):
    once = evaluate(small_policies.linear(), game="starpilot", rules="greedy", **CENSUS)
    thrice = evaluate(small_policies.linear(), game="starpilot", rules="greedy", repeats=3, **CENSUS)
    mine = [[row for row in result.returns if row.agent] for result in (once, thrice)]
    assert [row.mean for row in mine[0]] == [row.mean for row in mine[1]]
    assert [row.sem for row in mine[1]] == [0.0, 0.0]


def test_draws_and_a_census_of_one_game_are_not_compared(tmp_path):
    policy = small_policies.linear()
    evaluate(policy, game="starpilot", rules="greedy", store=tmp_path, **CENSUS)
    draws = {**CENSUS, "design": "draws", "episodes": 8, "slots": 8, "draws": (0,)}
    evaluate(policy, game="starpilot", rules="greedy", store=tmp_path, **draws)
    with pytest.raises(StoreError, match="2 designs"):
        Store(tmp_path).episodes()


def test_the_analysis_knows_that_a_census_leaves_only_the_chance_within_levels(tmp_path):
    measure_floor("starpilot", repeats=4, store=tmp_path, **CENSUS)
    for row in analyse(tmp_path).floors:
        episodes = [e for e in Store(tmp_path).episodes().to_pylist() if e["level_set"] == row.level_set]
        returns = np.array([e["episode_return"] for e in episodes]).reshape(-1, 4)
        within = returns.var(axis=1, ddof=1).mean()
        assert row.sem == pytest.approx(np.sqrt(within / returns.size))


def test_a_gap_of_a_census_has_the_error_of_other_levels(tmp_path):
    result = evaluate(
        small_policies.linear(), game="starpilot", rules="greedy", repeats=2, store=tmp_path, **CENSUS
    )
    assert {row.sem for row in result.returns if row.rule == "greedy"} == {0.0}
    rows = [row for row in Store(tmp_path).episodes().to_pylist() if row["rule"] == "greedy"]
    halves = {}
    for row in rows:
        halves.setdefault(row["level_set"], {})[row["level_seed"]] = row["episode_return"]
    errors = [np.var(list(half.values()), ddof=1) / len(half) for half in halves.values()]
    assert result.gaps[0].gap_sem == pytest.approx(np.sqrt(sum(errors)))


def test_a_census_of_everything_is_refused():
    with pytest.raises(UsageError, match="name a smaller level set"):
        measure_floor("starpilot", design="census", train="none", test="all")
    with pytest.raises(UsageError, match="at least once"):
        measure_floor("starpilot", design="census", repeats=0)
