"""The verdict in words, where a stricter reference takes something away."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from tests.report.printed_results import printed_results

from gapfloor.analysis.apply import analyse
from gapfloor.report.findings import Findings
from gapfloor.report.verdict import build_verdicts, decision, headline

pytestmark = pytest.mark.fast


def episodes(*, blind):
    """Three runs around 6, a floor of 1, and a blind reference."""
    rng, rows = np.random.default_rng(0), []

    def add(mean, **labels):
        first = 1000 if labels["level_set"] == "test" else 0
        for level, value in enumerate(rng.normal(mean, 1.0, 60), start=first):
            row = {
                "game": "starpilot",
                "mode": "easy",
                "draw": 0,
                "level_seed": level,
                "episode_return": value,
            }
            rows.append({**row, **labels})

    for level_set in ("train", "test"):
        for seed in (1, 2, 3):
            who = {"agent": "impala", "seed": seed, "budget": "8M", "reference": ""}
            add(6 + 0.1 * seed, rule="sampled", level_set=level_set, **who)
        for name, mean in (("uniform", 1.0), ("blind", blind)):
            who = {"agent": "", "seed": None, "budget": "", "reference": name}
            add(mean, rule=name, level_set=level_set, **who)
    return pa.Table.from_pylist(rows)


def verdict(*, blind):
    return build_verdicts(Findings(analyse(episodes(blind=blind))))[0]


def test_runs_that_a_blind_agent_equals_are_not_said_to_look_at_the_level():
    said = verdict(blind=6.2)
    assert said.badge == "above the floor"
    assert said.reason == "not shown to beat a policy that sees nothing"
    assert said.supports == "that the runs score more than random play."
    assert "that the runs look at the level" in said.does_not
    assert "they are not distinguishable from blind (6." in said.does_not


@pytest.mark.parametrize(
    ("blind", "decided"),
    [
        (
            6.2,
            "do not read the gap of starpilot (not shown to beat a policy that sees nothing) as generalization.",
        ),
        (2.0, "the gap of starpilot may be read as generalization."),
    ],
)
def test_the_decision_follows_from_the_verdicts(blind, decided):
    assert decision(Findings(analyse(episodes(blind=blind)))) == f"Decision: {decided}"


def test_runs_above_every_reference_keep_their_verdict():
    said = verdict(blind=2.0)
    assert said.reason == ""
    assert "transfers" in said.supports or "both returns are above chance" in said.supports


def test_one_run_is_written_in_the_singular() -> None:
    full = printed_results()
    rows = tuple(
        dataclasses.replace(row, n=1)
        for row in full.floor_comparisons
        if (row.game, row.budget) == ("miner", "8M")
    )
    (verdict,) = build_verdicts(Findings(dataclasses.replace(full, floor_comparisons=rows, gaps=())))
    assert "the run scores 5.93" in verdict.sentence


def test_data_with_another_rule_than_the_plans_get_their_own_headline():
    rows = [
        {**row, "rule": "greedy" if row["rule"] == "sampled" else row["rule"]}
        for row in episodes(blind=1.0).to_pylist()
    ]
    found = Findings(analyse(pa.Table.from_pylist(rows)))
    assert found.primary == "greedy"
    assert headline(found).startswith("starpilot at 8M: with greedy actions the three runs score")
