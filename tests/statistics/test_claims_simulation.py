"""The simulation study decides as the package does, keeps its targets, and depends on nothing but its seed."""

from __future__ import annotations

import numpy as np
import pytest

import claims_simulation as simulation
import skewed_limits as ways
from claims_worlds import N_EPISODES, World, gap_games, null_families
from gapfloor.statistics.reference_calls import call_reference_family, compare_to_reference
from gapfloor.statistics.sequential import sequential_divisors
from gapfloor.statistics.skewness import family_skewness

pytestmark = pytest.mark.fast


def floor_with(mean, variance_of_mean):
    """Episodes with exactly this mean and square of the SEM."""
    ends = np.sqrt(variance_of_mean * (N_EPISODES - 1))
    return mean + np.tile([ends, -ends], N_EPISODES // 2)


@pytest.mark.parametrize("shape", ["normal", "log-normal"])
def test_the_simulated_calls_are_the_packages_calls(shape):
    data = null_families(World(shape, 3.0, 0.3), 6, 25, np.random.default_rng(0))
    data.runs[:, :2] += 4.0
    data.runs[:, 2] -= 3.0
    found, marked = simulation.recommended_rejects(data), simulation.doubted_below(data)
    for family in range(25):
        tests = [
            compare_to_reference(
                data.runs[family, game],
                floor_with(data.floor[family, game], data.floor_variance[family, game]),
            )
            for game in range(8)
        ]
        calls = call_reference_family(tests)
        assert [call.call in ("above", "below") for call in calls] == found[family].tolist()
        skewness = family_skewness(data.runs[family])
        assert [skewness.doubts(-1.0, runs) for runs in data.runs[family]] == marked[family].tolist()
        lower, upper = (ends[family] for ends in simulation.limits_at(data)(np.full((1, 1), 0.05)))
        for game, call in enumerate(calls):
            low, high = call.test.interval(alpha=0.05)
            assert low == pytest.approx(call.test.delta - lower[game], rel=1e-9)
            assert high == pytest.approx(call.test.delta + upper[game], rel=1e-9)


def test_the_last_of_the_ways_to_treat_skew_is_the_recommended_one():
    data = null_families(World("log-normal", 1.0, 0.3), 6, 30, np.random.default_rng(3))
    level = np.full((1, 1), 0.05)
    expected, plain = simulation.limits_at(data)(level), ways.limits_of(ways.WAYS[0], data)(level)
    found = ways.limits_of(ways.WAYS[-1], data)(level)
    assert found[0] == pytest.approx(expected[0])
    assert found[1] == pytest.approx(expected[1])
    assert (found[1] >= plain[1]).all()
    assert (found[1] > plain[1]).any()


def test_the_simulated_looks_are_the_packages_looks():
    data = null_families(World("normal", 1.0, 0.3), 15, 20, np.random.default_rng(1))
    data.runs[:, :4] += data.run_sd[:4, None] * 1.5
    data.runs[:, 4] -= data.run_sd[4] * 1.5
    called, _ = simulation.sequential_calls(data)
    for family in range(20):
        p = [
            [
                compare_to_reference(
                    data.runs[family, game, :n],
                    floor_with(data.floor[family, game], data.floor_variance[family, game]),
                ).p
                for n in simulation.LOOKS
            ]
            for game in range(8)
        ]
        assert sequential_divisors(p, simulation.LOOKS)[1].tolist() == called[family].tolist()


@pytest.mark.parametrize("section", ["calls", "equivalence", "looks"])
def test_targets_are_kept_at_a_small_size(section):
    rows = simulation.run(section, replicates=40, seed=1)
    assert any(row.target for row in rows)
    assert [row for row in rows if simulation.misses(row, errors=4.0)] == []


def test_games_without_a_gap_are_rarely_said_to_have_one():
    rng = np.random.default_rng(2)
    data = gap_games(World("normal", 1.0, 1.0), 6, 240, rng, shift=0.3)
    rates = {
        name.split("|")[0]: float(np.mean(value)) for name, value in simulation._gap_rates(data, rng).items()
    }
    assert rates["false gap of one game: recommended"] <= 0.05 + 3 * 0.014
    assert rates["false gap of one game: paper (Fisher)"] > 0.5
    assert rates['false sentence "what new levels cost": rule'] <= 0.02
    assert rates['false sentence "what new levels cost": before'] > 0.05


def test_the_same_seed_gives_the_same_rates_and_another_seed_others():
    first, again, other = (simulation.run("equivalence", replicates=40, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_table_has_a_row_per_quantity_and_says_what_is_missed():
    rows = simulation.run("equivalence", replicates=20, seed=0)
    table = simulation.markdown(rows)
    assert table.count("\n") == 2 + 1 + len({(row.quantity, row.world) for row in rows})
    missed = simulation.Measured("calls", "rate", "normal", "", 6, 0.5, "<= .05")
    assert ".500 (missed)" in simulation.markdown([missed])
