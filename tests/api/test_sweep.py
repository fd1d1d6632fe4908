"""A sweep on the real engine: ordinary cells, tempered entropy, and a figure."""

import json
import math

import numpy as np
import pytest

import small_policies
from gapfloor.actions.partition import entropy
from gapfloor.api.checkpoints import check_temperatures, rule_at, sweep
from gapfloor.api.evaluate import evaluate
from gapfloor.api.plot import with_files
from gapfloor.errors import UsageError
from gapfloor.records.store import Store
from gapfloor.records.stored_cell import read_episodes
from gapfloor.rules.rule import Epsilon, Temperature, softmax

SMALL = {"game": "fruitbot", "draws": [0], "episodes": 8, "slots": 4}
GRID = (0, 0.25, 1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("sweep")


@pytest.fixture(scope="module")
def result(store):
    return sweep(
        small_policies.LinearPolicy(),
        temperatures=GRID,
        agent="linear",
        store=store,
        batch=4,
        workers=1,
        **SMALL,
    )


def test_every_temperature_is_an_ordinary_cell_that_evaluate_shares(store, result):
    before = {cell.manifest.key: cell.path.read_bytes() for cell in Store(store).cells()}
    rules = {cell.manifest.labels["rule"] for cell in Store(store).cells()}
    assert rules == {"uniform", "greedy", "temperature:0.25", "sampled"}
    again = evaluate(
        small_policies.LinearPolicy(), rules="sampled,greedy,temperature:0.25", agent="linear", store=store,
        workers=1, batch=4, **SMALL,
    )  # fmt: skip
    assert {row.key for row in again.cells} == set(before)
    for row in again.returns:
        if row.reference == "uniform":
            assert row.mean == pytest.approx(result.row(1, row.level_set).floor)
    for row in again.cells:
        if not row.reference:
            temperature = {"greedy": 0, "sampled": 1}.get(row.rule, 0.25)
            assert result.row(temperature, row.level_set).mean == pytest.approx(row.mean)


def test_only_changed_distributions_record_what_was_drawn_from(store, result):
    records = {
        (c.manifest.labels["rule"], c.manifest.labels["level_set"]): c.manifest.record
        for c in Store(store).cells()
    }
    for (rule, level_set), record in records.items():
        assert ("entropy_played" in record) == (rule == "temperature:0.25")
        if rule == "temperature:0.25":
            assert 0 < record["entropy_played"] < record["entropy_raw"] < math.log(15)
            assert result.row(0.25, level_set).entropy_played == record["entropy_played"]
    for level_set in ("train", "test"):
        assert result.row(0, level_set).entropy_played == 0
        cold, hot = (result.row(value, level_set) for value in (0, 1))
        assert hot.entropy_played == hot.entropy_raw
        assert cold.entropy_raw > 0
    assert "entropy_played" in Store(store).cell_records().column_names


def test_differences_are_paired_episode_by_episode(store, result):
    returns = {
        cell.manifest.labels["rule"]: read_episodes(cell.path)["episode_return"].to_numpy()
        for cell in Store(store).cells()
        if cell.manifest.labels["level_set"] == "test"
    }  # fmt: skip
    (greedy,) = [row for row in result.pairs if (row.rule, row.quantity) == ("greedy", "test")]
    assert greedy.rule_b == "sampled"
    assert greedy.difference.value == pytest.approx(np.mean(returns["greedy"] - returns["sampled"]))
    floor = result.row(1, "test").delta
    assert floor.value == pytest.approx(np.mean(returns["sampled"] - returns["uniform"]))


def test_the_result_says_that_it_is_one_checkpoint(result):
    text = " ".join(result.sentences())
    assert "sampled - greedy" in text
    assert "one checkpoint" in text
    assert "steps as entropy falls" in text or "step as entropy falls" in text
    json.dumps(result.to_dict(), allow_nan=False)


def test_the_figure_is_written_in_three_formats_with_the_document_and_the_same_twice(result, tmp_path):
    first = {path.name: path.read_bytes() for path in with_files(result, tmp_path / "a").written}
    second = {path.name: path.read_bytes() for path in with_files(result, tmp_path / "b").written}
    assert set(first) == {"sweep.pdf", "sweep.svg", "sweep.png", "sweep.txt", "sweep.json"}
    assert first == second
    assert b"entropy played" in first["sweep.svg"]


def test_one_level_set_alone_has_no_gap(tmp_path):
    found = sweep(
        small_policies.LinearPolicy(),
        temperatures=(0, 1),
        test="none",
        batch=4,
        workers=1,
        **SMALL,
    )
    assert found.gaps == ()
    assert "gap" not in found.table().csv_names
    assert len(with_files(found, tmp_path).written) == 5


@pytest.mark.fast
def test_the_played_entropy_is_that_of_the_distribution_that_is_drawn_from():
    logits = np.random.default_rng(0).normal(0, 2, (5, 15))
    cold, hot = Temperature(0.25), Temperature(4.0)
    assert np.allclose(cold.changed_distribution(logits), softmax(logits / 0.25))
    assert (entropy(cold.changed_distribution(logits)) < entropy(softmax(logits))).all()
    assert (entropy(hot.changed_distribution(logits)) > entropy(softmax(logits))).all()
    mixed = Epsilon(0.3).changed_distribution(logits)
    assert np.allclose(mixed.sum(axis=1), 1)
    assert np.allclose(mixed.max(axis=1), 0.7 + 0.3 / 15)
    uniforms = np.linspace(0, 0.9999, 20_000)
    drawn = Epsilon(0.3).choose(np.repeat(logits[:1], 20_000, axis=0), uniforms)
    assert np.allclose(np.bincount(drawn, minlength=15) / 20_000, mixed[0], atol=1e-3)


@pytest.mark.fast
@pytest.mark.parametrize(
    ("grid", "words"),
    [
        ([1], "two or more temperatures"),
        ([0, -0.5], "-0.5 is out of range"),
        ([0, float("inf")], "out of range"),
        ([0, float("nan")], "out of range"),
    ],
)
def test_a_grid_that_is_none_is_refused(grid, words):
    with pytest.raises(UsageError, match=words):
        check_temperatures(grid)


def test_a_temperature_that_is_named_twice_is_refused_before_any_work(tmp_path):
    with pytest.raises(UsageError, match=r"'temperature:0\.5' is named twice"):
        sweep("no-such-policy", game="starpilot", temperatures=[0, 0.5, 0.5], store=tmp_path / "store")
    assert not (tmp_path / "store").exists()


@pytest.mark.fast
def test_the_grid_goes_from_cold_to_hot_and_may_pass_one():
    assert check_temperatures([2, 0, 1]) == (0, 1, 2)
    assert [rule_at(value) for value in (0, 1.0, 2)] == ["greedy", "sampled", "temperature:2"]


def test_a_policy_that_takes_one_action_whatever_it_sees_is_told(tmp_path):
    found = sweep(
        "small_policies:constant_logits",
        temperatures=(0, 1),
        test="none",
        batch=4,
        workers=1,
        **SMALL,
    )
    assert any("greedy took one action in nearly every visited state" in line for line in found.sentences())


def test_a_census_plays_every_level_once_at_every_temperature(tmp_path):
    found = sweep(
        small_policies.LinearPolicy(), game="fruitbot", temperatures=(0, 0.5, 1), train="0:5", test="1000:1004",
        design="census", repeats=1, store=tmp_path, batch=4, workers=1,
    )  # fmt: skip
    for row in found.floor_comparisons:
        n = 5 if row.level_set == "train" else 4
        assert (row.n_levels, row.n_episodes) == (n, n)
    assert found.design.startswith("census")
