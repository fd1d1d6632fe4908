"""Returns that are too large or too small to compute with are refused in one sentence; others give finite numbers."""

from __future__ import annotations

import math

import gymnasium
import pyarrow.csv
import pytest
from gymnasium import spaces

import gapfloor
from command_line import run
from gapfloor.analysis.apply import analyse
from gapfloor.errors import UsageError
from gapfloor.plan.model import parse_plan
from gapfloor.statistics.conventions import LARGEST, SMALLEST
from gapfloor.statistics.power import minimum_detectable_effect
from gapfloor.statistics.reference_calls import compare_to_floor

pytestmark = pytest.mark.fast
#: So often every episode is repeated that the floors have enough of them for a test.
REPEATS = 5
POOLED = parse_plan('name = "x"\n[floor]\nmethod = "recommended"\n[gaps]\nmethod = "recommended"', source="x")


def scaled(rows, factor, *, only=lambda row: True):
    return [{**row, "episode_return": row["episode_return"] * factor} if only(row) else row for row in rows]


def with_one(rows, value):
    return [*rows[:2], {**rows[2], "episode_return": value}, *rows[3:]]


@pytest.mark.parametrize("value", [2 * LARGEST, 1e80, 1e100, 1e155, -1e200, 1.7e308])
def test_a_return_that_is_too_large_is_named(rows, as_table, value):
    with pytest.raises(UsageError, match=r"above 1e\+50 in row 3 .*Divide all returns"):
        analyse(as_table(with_one(rows, value)))


@pytest.mark.parametrize("command", ["analyse", "report", "power"])
def test_every_command_that_reads_episodes_says_so(rows, as_table, command, capsys, tmp_path):
    pyarrow.csv.write_csv(as_table(with_one(rows, 1e200)), tmp_path / "episodes.csv")
    done = run(capsys, command, tmp_path / "episodes.csv")
    assert done.code == 2
    assert "line 4" in done.err


@pytest.mark.parametrize("value", [LARGEST, -LARGEST])
def test_the_largest_return_gives_finite_numbers(rows, as_table, value):
    for row in analyse(as_table(with_one(REPEATS * rows, value)), POOLED).floor_comparisons:
        assert math.isfinite(row.mean)
        assert math.isfinite(row.sem)
        assert math.isfinite(row.delta.p)


@pytest.mark.parametrize("factor", [1e-45, 1e45])
def test_the_unit_of_returns_does_not_change_a_test(rows, as_table, factor):
    rows = REPEATS * rows
    usual = analyse(as_table(rows), POOLED).floor_comparisons
    found = analyse(as_table(scaled(rows, factor)), POOLED).floor_comparisons
    assert [(row.z, row.delta.p, row.decision.p_adjusted) for row in found] == [
        pytest.approx((row.z, row.delta.p, row.decision.p_adjusted)) for row in usual
    ]


@pytest.mark.parametrize("factor", [1e-170, 1e-300])
def test_returns_of_which_all_are_too_small_are_named(rows, as_table, factor):
    with pytest.raises(
        UsageError, match=r"no episode_return of coinrun is larger than .*Multiply all returns"
    ):
        analyse(as_table(scaled(rows, factor)))


def test_a_return_that_is_too_small_is_zero_next_to_the_others(rows, as_table):
    noisy = scaled(rows, SMALLEST / 1e20, only=lambda row: row["rule"] == "uniform")
    zero = scaled(rows, 0.0, only=lambda row: row["rule"] == "uniform")
    assert analyse(as_table(noisy)).to_dict() == analyse(as_table(zero)).to_dict()


class Jackpot(gymnasium.Env):
    """One step, one reward that is far too large."""

    action_space, observation_space = spaces.Discrete(2), spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return 0, 1e200 * (1 + self.np_random.random()), True, False, {}


def test_returns_that_gapfloor_played_itself_are_refused_too(tmp_path):
    gymnasium.register("Jackpot-v0", Jackpot)
    with pytest.raises(UsageError, match="above 1e\\+50"):
        gapfloor.floor(["gym:Jackpot-v0"], store=tmp_path, episodes=4, slots=2, draws=[0], workers=1)


def test_public_statistics_refuse_what_they_cannot_compute_with():
    with pytest.raises(UsageError, match="`run_values` must be finite and at most 1e\\+50 in size"):
        compare_to_floor([1.0, 1e80], [1.0, 2.0], rng=None)


@pytest.mark.parametrize(("se", "alpha"), [(math.inf, 0.05), (math.nan, 0.05), (0.0, 0.05), (1.0, 1e-308)])
def test_without_a_standard_error_or_a_limit_there_is_no_detectable_effect(se, alpha):
    assert math.isnan(minimum_detectable_effect(se=se, df=5, alpha=alpha))
