"""Error rates and coverage of every estimator, from the benchmark's simulation at a size that notices deviations."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import statistics_simulation as simulation

#: Replicates of the sections that simulate thousands of studies per second; each of the others takes seconds.
QUICK = dict.fromkeys(("intervals", "family", "floor_sem", "detectable", "two_parts"), 4000)
SLOW = dict.fromkeys(set(simulation.SECTIONS) - set(QUICK), 900)
#: The largest deviation of a nominal or accepted rate that a section may fail to notice.
NOTICED = 0.05


def check_rates(section: str, replicates: int) -> None:
    rates = simulation.run(section, replicates=replicates, seed=1)
    assert [
        f"{rate.name}: {rate.rate:.3f} ± {rate.error:.3f}, expected {rate.expected}"
        for rate in rates
        if not rate.agrees
    ] == []
    for rate in rates:
        if rate.expected is not None and rate.source != "earlier":
            nearest = min(max(0.5, rate.expected[0]), rate.expected[1])
            assert 4 * math.sqrt(nearest * (1 - nearest) / rate.n) <= NOTICED, rate.name


@pytest.mark.fast
@pytest.mark.parametrize("section", QUICK)
def test_rates_agree_with_what_is_expected(section):
    check_rates(section, QUICK[section])


@pytest.mark.parametrize("section", sorted(SLOW))
def test_rates_of_slow_estimators_agree_with_what_is_expected(section):
    check_rates(section, SLOW[section])


@pytest.mark.fast
def test_a_rate_that_differs_by_what_must_be_noticed_is_noticed():
    for n in (*QUICK.values(), *SLOW.values()):
        for nominal in (0.05, 0.95):
            rate = nominal + math.copysign(NOTICED, 0.5 - nominal)
            assert not simulation.Rate("size", rate, n, (nominal, nominal), "nominal").agrees


@pytest.mark.fast
def test_same_seed_same_rates_and_other_seed_others():
    first, again, other = (simulation.run("levels", replicates=40, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.fast
def test_skewed_runs_break_the_call_more_than_normal_ones():
    rates = {rate.name: rate for rate in simulation.run("family", replicates=2000, seed=0)}
    normal, exponential, heavy = (
        rates[f"any false call of 8, {kind}n=6"] for kind in ("", "exponential runs, ", "log-normal runs, ")
    )
    # Each step is larger than the error of both rates together.
    assert exponential.rate - normal.rate > 4 * math.hypot(normal.error, exponential.error)
    assert heavy.rate - exponential.rate > 4 * math.hypot(exponential.error, heavy.error)
