"""Error rates and coverage of every estimator, from the benchmark's own simulation at a small size."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import statistics_simulation as simulation

pytestmark = pytest.mark.fast

#: The one rate that differs from an earlier simulation, because that one does not say how skewed its runs were.
EXPLAINED = {"any false call of 8, log-normal runs, n=6"}


@pytest.mark.parametrize("section", list(simulation.SECTIONS))
def test_rates_agree_with_what_is_expected(section):
    rates = simulation.run(section, replicates=120, seed=1)
    wrong = [f"{r.name}: {r.rate:.3f} ± {r.error:.3f}, expected {r.expected}" for r in rates if not r.agrees]
    assert [line for line in wrong if line.split(":")[0] not in EXPLAINED] == []


def test_same_seed_same_rates_and_other_seed_others():
    first, again, other = (simulation.run("levels", replicates=40, seed=s) for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_skewed_runs_break_the_call_more_than_normal_ones():
    rates = {r.name: r.rate for r in simulation.run("family", replicates=200, seed=0)}
    normal, exponential, heavy = (
        rates[f"any false call of 8, {kind}n=6"] for kind in ("", "exponential runs, ", "log-normal runs, ")
    )
    assert normal < exponential < heavy
