"""Tables of means: a floor verdict per game and agent, or one sentence."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import gapfloor
from command_line import run
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast

WIDE = """Game,PPO,IDAAC,Random
BigFish,4.0 ± 1.2,18.5 ± 1.2,0.9 ± 0.1
CoinRun,8.5 ± 0.5,9.4 ± 0.1,2.6 ± 0.2
Heist,3.2 ± 0.5,3.5 ± 0.3,3.2 ± 0.2
"""


def calls(results):
    return {(row.game, row.agent): row.call for row in results.floor_comparisons}


def write(tmp_path, text):
    path = tmp_path / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_published_table_with_a_column_per_agent_gets_a_verdict_each(tmp_path):
    found = calls(gapfloor.analyse(write(tmp_path, WIDE), labels={"n": "10"}))
    assert found["BigFish", "PPO"] == "above"
    assert found["CoinRun", "IDAAC"] == "above"
    assert found["Heist", "PPO"] == "not distinguishable"
    assert ("Heist", "Random") not in found


def test_a_column_per_game_is_the_same_table(tmp_path):
    rows = [line.split(",") for line in WIDE.splitlines()]
    turned = "\n".join(",".join(column) for column in zip(*rows, strict=True)).replace("Game", "Agent")
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    wide, tall = (
        gapfloor.analyse(write(p, t), labels={"n": "10"}) for p, t in ((first, WIDE), (second, turned))
    )
    assert calls(wide) == calls(tall)


def test_the_test_is_welch_where_the_floor_is_exact():
    """With no error of the floor the test is Student's one-sample test of the run means."""
    table = pa.Table.from_pylist([{"game": "x", "agent": "a", "mean": 5.0, "std": 1.0, "n": 8}])
    (row,) = gapfloor.analyse(table, floor="4").floor_comparisons
    expected = 2 * stats.t.sf(1.0 / (1.0 / math.sqrt(8)), 7)
    assert row.delta.p == pytest.approx(expected, rel=1e-6)
    assert (row.sem, row.n) == (pytest.approx(1 / math.sqrt(8)), 8)


def test_means_of_single_runs_are_a_sample_of_runs():
    values = [7.0, 8.0, 9.5]
    rows = [{"env": "CoinRun", "algo": "a", "seed": i, "mean_reward": v} for i, v in enumerate(values)]
    (row,) = gapfloor.analyse(pa.Table.from_pylist(rows)).floor_comparisons
    assert (row.n, row.mean) == (3, pytest.approx(np.mean(values)))
    assert row.sem == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))


def test_an_interval_agrees_with_its_call(tmp_path):
    for row in gapfloor.analyse(write(tmp_path, WIDE), labels={"n": "10"}).floor_comparisons:
        assert (row.delta.low > 0 or row.delta.high < 0) == (row.call in ("above", "below"))


def test_a_floor_comes_from_the_registry_by_name_and_says_so(capsys, tmp_path):
    without = "\n".join(line.rpartition(",")[0] for line in WIDE.splitlines())
    code, out, err = run(capsys, "analyse", write(tmp_path, without), "--label", "n=10")
    assert code == 0
    assert "above" in out
    assert "the floor is the one that ships with gapfloor: easy levels 1000:1100" in out + err


def test_a_floor_can_be_stated_for_all_games_or_for_each():
    rows = [{"game": game, "agent": "a", "mean": 5.0, "sem": 0.1, "n": 6} for game in ("x", "y")]
    one = gapfloor.analyse(pa.Table.from_pylist(rows), floor="3.1±0.2")
    assert [(row.floor, row.floor_sem, row.call) for row in one.floor_comparisons] == [
        (3.1, 0.2, "above")
    ] * 2
    each = gapfloor.analyse(pa.Table.from_pylist(rows), floor="x=3.1±0.2,y=5.05±0.2")
    assert [row.call for row in each.floor_comparisons] == ["above", "not distinguishable"]


def test_percentages_are_shares():
    rows = [{"agent": "ours", "reach": "85% ± 4%"}, {"agent": "random", "reach": "5% ± 1%"}]
    (row,) = gapfloor.analyse(pa.Table.from_pylist(rows), labels={"n": "10"}).floor_comparisons
    assert (row.mean, row.floor) == (0.85, 0.05)


@pytest.mark.parametrize(
    ("change", "reason"),
    [({"n": None}, "number of runs is not given"), ({"std": None}, "no spread"), ({"n": 2}, "2 runs")],
)
def test_what_is_missing_for_a_test_is_said(change, reason):
    whole = {"game": "x", "agent": "a", "mean": 5.0, "std": 1.0, "n": 8}
    (row,) = gapfloor.analyse(pa.Table.from_pylist([{**whole, **change}]), floor="4").floor_comparisons
    assert row.call == "not tested"
    assert reason in row.decision.reason


def test_no_floor_at_all_is_refused_with_what_to_do():
    table = pa.Table.from_pylist([{"game": "my own", "agent": "a", "mean": 5.0, "std": 1.0, "n": 8}])
    with pytest.raises(UsageError, match="no floor to compare with"):
        gapfloor.analyse(table)
    with pytest.raises(UsageError, match="nor a number such as"):
        gapfloor.analyse(table, floor="about three")


def test_what_means_cannot_answer_is_said_once(tmp_path):
    results = gapfloor.analyse(write(tmp_path, WIDE), labels={"n": "10"})
    assert sum("only means were given" in problem.what for problem in results.problems) == 1
    json.dumps(results.to_dict(), allow_nan=False)


def test_a_table_of_episodes_is_still_one():
    rows = [
        {"game": "x", "agent": a, "seed": s, "rule": r, "level_set": "test", "score": float(s + e)}
        for a, r in (("a", "sampled"), ("", "uniform"))
        for s in range(3)
        for e in range(4)
    ]
    assert gapfloor.analyse(pa.Table.from_pylist(rows)).source.n_episodes == 24


@pytest.mark.parametrize(
    ("game", "offer"), [("CartPole-v1", "--floor registry takes the floor"), ("my own", "--floor 3.1±0.2")]
)
def test_episodes_without_a_floor_say_where_one_is(game, offer):
    rows = [
        {"game": game, "agent": "a", "seed": s, "rule": "sampled", "level_set": "test", "score": float(s + e)}
        for s in range(3)
        for e in range(4)
    ]
    (what,) = [
        each.what for each in gapfloor.analyse(pa.Table.from_pylist(rows)).problems if each.kind == "no floor"
    ]
    assert offer in what


def test_a_column_of_means_next_to_episodes_does_not_make_a_table_of_means():
    rows = [
        {
            "game": "x",
            "agent": a,
            "seed": s,
            "rule": r,
            "level_set": "test",
            "score": float(s + e),
            "mean": 7.0,
        }
        for a, r in (("a", "sampled"), ("", "uniform"))
        for s in range(3)
        for e in range(4)
    ]
    assert gapfloor.analyse(pa.Table.from_pylist(rows)).source.n_episodes == 24


def test_scores_with_their_spread_are_means():
    table = pa.Table.from_pylist([{"game": "x", "agent": "a", "score": 5.0, "std": 1.0, "n": 8}])
    (row,) = gapfloor.analyse(table, floor="2±0.1").floor_comparisons
    assert (row.mean, row.call) == (5.0, "above")


def test_a_spread_below_zero_is_refused(tmp_path):
    text = "game,agent,mean,sem,n\nmaze,ppo,5.0,-0.11,5\n"
    with pytest.raises(UsageError, match=r"The spread of the mean 5.0 is -0.11: it must be 0 or more"):
        gapfloor.analyse(write(tmp_path, text), floor="3.1±0.2")


@pytest.mark.fast
def test_success_rates_are_means_with_their_number_of_runs(tmp_path):
    path = tmp_path / "rates.csv"
    path.write_text("task,method,success_rate,seeds\npush,ours,85% ± 3%,5\npush,bc,4.5% ± 2%,5\n")
    ours, bc = gapfloor.analyse(path, floor="5%±1%").floor_comparisons
    assert (ours.game, ours.agent, ours.mean, ours.n, ours.call) == ("push", "ours", 0.85, 5, "above")
    assert (bc.agent, bc.mean) == ("bc", pytest.approx(0.045))
    assert bc.call != "above"


@pytest.mark.fast
def test_a_success_next_to_a_return_is_not_the_return(tmp_path):
    path = tmp_path / "both.csv"
    path.write_text("game,agent,success,reward,n,sem\npush,ours,0.5,7.0,5,0.1\n")
    (row,) = gapfloor.analyse(path, floor="1±0.1").floor_comparisons
    assert row.mean == 7.0
