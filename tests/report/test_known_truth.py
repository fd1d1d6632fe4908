"""What the verdict says about small files whose truth is known."""

import dataclasses
import math

import pyarrow.csv
import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.report.findings import Findings
from gapfloor.report.source import load_report_source
from gapfloor.report.verdict import build_verdicts, headline
from known_truth import game_rows, repeated, table

pytestmark = pytest.mark.fast


def verdict(rows):
    return build_verdicts(Findings(analyse(table(rows))))[0]


@pytest.mark.parametrize(
    ("changes", "badge", "supports"),
    [
        ({"train": 8.0}, "above the floor", "what new levels cost"),
        ({}, "above the floor", "transfers"),
        ({"train": 8.0, "floor_train": 4.0}, "above the floor", "transfers"),
        ({"train": 8.0, "has_levels": False}, "above the floor", "was not tested (no level seeds)"),
        ({"train": 6.0, "test": 2.0, "noise_sd": 2.0}, None, "learnt about the training levels"),
        ({"train": 0.5, "test": 0.5, "n_runs": 10, "seed": 1}, "below the floor", "worse"),
        ({"n_runs": 1}, "not tested", "not tested (1 run)"),
        ({"n_runs": 2}, "not tested", "not tested (2 runs)"),
    ],
)
def test_the_reading_follows_from_what_is_true(changes, badge, supports):
    said = verdict(game_rows(**changes))
    assert badge in (None, said.badge)
    assert supports in said.supports


@pytest.mark.parametrize("shared", [range(0, 60), range(59, 119)])
def test_held_out_levels_that_are_training_levels_support_nothing(shared):
    said = verdict(game_rows(levels={"train": range(0, 60), "test": shared}))
    assert said.reason == "the level sets overlap"
    assert "also played as training levels" in said.supports
    assert "transfers" not in said.supports
    assert "the level sets overlap" in said.does_not


def test_above_chance_on_ten_levels_is_not_said_to_transfer():
    """The effect of a level is the agent's own and large: ten levels say little about those of the generator."""
    few = {"train": range(0, 10), "test": range(1000, 1010)}
    rows = game_rows(
        test=3.0,
        train=3.0,
        level_sd=3.0,
        noise_sd=0.5,
        run_sd=0.1,
        levels=few,
        floor_levels=few,
        n_runs=8,
        repeats=10,
        seed=3,
    )
    flat = [
        {**row, "episode_return": 2.0 + 0.1 * (i % 3)} if row["reference"] else row
        for i, row in enumerate(rows)
    ]
    said = verdict(flat)
    assert said.badge == "above the floor"
    assert "that return is above chance on these 10 held-out levels" in said.supports
    assert "that the policy transfers to new levels of the generator" in said.does_not


def test_a_gap_that_was_not_tested_is_not_called_unestablished():
    said = verdict(game_rows(train=8.0, has_levels=False))
    assert "established" not in said.supports
    assert "interval" not in said.does_not


def test_nothing_is_called_adjusted_where_nothing_was_taken_off():
    results = analyse(table(game_rows(train=8.0)))
    row = results.gaps[0]
    same = dataclasses.replace(row, estimate=dataclasses.replace(row.estimate, value=row.gap))
    (said,) = build_verdicts(Findings(dataclasses.replace(results, gaps=(same,))))
    assert "adjusted" not in said.supports


def test_below_chance_in_doubt_is_not_worse_than_random():
    values = (-0.2, -0.1, 0.0, 0.0, 0.1, 0.2)
    said = verdict(game_rows(train=0.5, test=0.5, run_values=values))
    assert "not tested (the runs may be right-skewed)" in said.supports
    assert said.reason.startswith("not tested")


@pytest.mark.parametrize(
    "changes", [{}, {"train": 8.0, "floor_train": 4.0}, {"has_levels": False, "train": 8.0}]
)
def test_new_levels_are_not_said_to_cost_what_they_do_not(changes):
    assert "what new levels cost" not in verdict(game_rows(**changes)).supports


def test_copies_of_one_run_are_named_in_the_verdict():
    said = verdict(repeated(repeated(game_rows(n_runs=1), seed=0, under=7), seed=0, under=8))
    assert said.badge == "not tested"
    assert any("2 copies left out" in remark for remark in said.remarks)


def test_equal_agents_are_not_said_to_differ_and_unequal_ones_are():
    same = verdict(game_rows(agents=("a", "b"), n_runs=4))
    assert not any("Agents differ" in remark for remark in same.remarks)
    rows = game_rows(agents=("a", "b"), n_runs=4)
    apart = [{**row, "episode_return": row["episode_return"] + 3 * (row["agent"] == "b")} for row in rows]
    assert any("Agents differ: a scores" in remark for remark in verdict(apart).remarks)


def said(*parts):
    findings = Findings(analyse(table(*parts)))
    return headline(findings), build_verdicts(findings)


def greedy_of(rows, *, lower=0.0):
    return [
        {**row, "rule": "greedy", "episode_return": row["episode_return"] - lower}
        for row in rows
        if row["rule"] == "sampled"
    ]


def test_the_headline_tells_every_budget():
    early = game_rows(test=2.0, train=2.0, budget="1M")
    late = [row for row in game_rows(seed=1) if row["rule"] != "uniform"]
    other = game_rows(game="heist", seed=2)
    text, verdicts = said(early, late, other)
    assert "Of two games at 8M, both score above" in text
    assert "At 1M, the coinrun runs are " in text
    assert len(verdicts) == 3


def test_counts_of_the_headline_add_up_to_the_games():
    games = [
        game_rows(game="coinrun"),
        game_rows(game="heist", test=0.5, train=0.5, run_values=(-0.2, -0.1, 0.0, 0.0, 0.1, 0.2), seed=1),
        game_rows(game="miner", test=2.0, train=2.0, seed=2),
        game_rows(game="maze", n_runs=2, seed=3),
        game_rows(game="ninja", test=2.0, train=2.0, run_sd=0.02, repeats=12, seed=5),
    ]
    text, _ = said(*games)
    assert text.startswith("Of five games at 8M, one scores above")
    for words in ("one equivalent to it", "two not tested"):
        assert words in text
    inside = text[text.index("(") + 1 : text.index(")")]
    numbers = {"one": 1, "two": 2, "three": 3}
    assert 1 + sum(numbers[part.split()[0]] for part in inside.split(", ")) == 5


def test_the_second_rules_counts_are_all_told():
    first, second = game_rows(), game_rows(game="heist", seed=2)
    text, _ = said(first, greedy_of(first), second, greedy_of(second, lower=4.0))
    assert "under greedy actions: one above, one not distinguishable from it." in text


def test_equal_agents_with_unequal_numbers_of_runs_are_not_said_to_differ():
    rows = game_rows(agents=("a", "b"), n_runs=6)
    fewer = [row for row in rows if not (row["agent"] == "b" and row["seed"] >= 3)]
    assert not any("Agents differ" in remark for remark in verdict(fewer).remarks)


def test_a_floor_on_other_levels_is_not_called_the_same(tmp_path):
    elsewhere = {"train": range(5000, 5060), "test": range(6000, 6060)}
    path = tmp_path / "episodes.csv"
    pyarrow.csv.write_csv(table(game_rows(train=8.0, floor_levels=elsewhere)), path)
    source = load_report_source(path)
    assert source.findings.same_draws is False
    assert "what new levels cost" not in build_verdicts(source.findings)[0].supports


def test_a_census_is_recommended_where_levels_matter_and_the_call_is_open():
    open_ = {"train": 2.2, "test": 2.2, "noise_sd": 1.0}
    varied = verdict(game_rows(**open_, level_sd=3.0))
    alike = verdict(game_rows(**open_, level_sd=0.0))
    assert "not distinguishable" in varied.badge
    assert any("a census" in remark for remark in varied.remarks)
    assert not any("a census" in remark for remark in alike.remarks)


def test_equivalence_of_one_game_says_what_correction_over_games_leaves():
    alone = {"train": 2.0, "test": 2.0, "run_sd": 0.02, "repeats": 12}
    _, one = said(game_rows(**alone))
    assert one[0].badge == "equivalent to the floor"
    assert not any("correction over" in remark for remark in one[0].remarks)
    _, several = said(game_rows(**alone), *(game_rows(game=f"g{i}", seed=i) for i in range(1, 4)))
    (sure,) = [v for v in several if v.place.name == "coinrun"]
    assert any("correction over the 4 games" in remark for remark in sure.remarks)


def test_the_gap_is_told_with_the_interval_of_the_excess_that_was_tested():
    rows = game_rows(train=8.0)
    (gap,) = analyse(table(rows)).gaps
    low, high = gap.estimate.interval
    said = verdict(rows)
    excess = f"adjusted for the floor's gap: +{gap.estimate.value:.2f} [{low:.2f}, {high:.2f}]"
    text = f"the gap of +{gap.gap:.2f} ({excess})"
    assert text in said.supports
    untested = verdict(game_rows(train=8.0, has_levels=False))
    assert "excess" not in untested.supports
    assert "[" not in untested.supports


def test_the_error_of_the_floors_gap_is_that_of_its_two_means():
    results = analyse(table(game_rows(train=8.0)))
    errors = {row.level_set: row.floor_sem for row in results.floor_comparisons}
    assert results.gaps[0].floor_gap_sem == pytest.approx(math.hypot(errors["train"], errors["test"]))
