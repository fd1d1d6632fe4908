"""Agents are pooled only where a plan asks for it."""

from __future__ import annotations

import pytest

from command_line import run
from gapfloor.analysis.apply import analyse
from gapfloor.plan.model import Plan, parse_plan
from gapfloor.report.findings import Findings
from gapfloor.report.verdict import build_verdicts, headline
from known_truth import game_rows, table

pytestmark = pytest.mark.fast

FAMILIES = ("floor_comparisons", "gaps", "pairs", "sensitivity", "call_counts")


def two_agents(*games):
    """One agent far below the floor of 1.8, one far above it."""
    parts = []
    for at, game in enumerate(games or ("heist",)):
        options = {
            "game": game,
            "n_runs": 3,
            "floor_train": 1.8,
            "floor_test": 1.8,
            "seed": at,
            "run_sd": 0.1,
        }
        poor = game_rows(agents=("poor",), train=0.9, test=0.9, **options)
        good = game_rows(agents=("good",), train=4.9, test=4.9, **options)
        parts += [poor, [row for row in good if row["agent"]]]
    return table(*parts)


def test_two_agents_get_two_rows_and_two_calls():
    results = analyse(two_agents())
    calls = {row.agent: row.call for row in results.floor_comparisons if row.level_set == "test"}
    # Three runs of one game cannot rule out right skew, so "below" is not called.
    assert calls == {"poor": "not tested", "good": "above"}
    for name in FAMILIES:
        assert {row.agent for row in getattr(results, name)} <= {"poor", "good"}, name
    assert not results.plan.pooled


def test_the_papers_plan_pools_and_says_so(capsys):
    results = analyse(two_agents(), Plan.paper())
    assert {row.agent for row in results.floor_comparisons} == {None}
    assert results.plan.pooled
    assert "The plan pools the runs of all agents." in results.sentences()[0]


def test_a_plan_can_ask_for_rows_per_agent():
    plan = parse_plan('name = "x"\n[agents]\npooled = false', source="x")
    results = analyse(two_agents(), plan)
    assert [row.agent for row in results.gaps] == ["poor", "good"]
    assert {row.decision.family for row in results.gaps} == {
        "gap: sampled, 8M, poor",
        "gap: sampled, 8M, good",
    }


def test_the_headline_of_a_report_tells_the_agents_apart():
    findings = Findings(analyse(two_agents()))
    assert [findings.name(env) for env in findings.all_envs] == ["heist (poor)", "heist (good)"]
    text = headline(findings)
    assert "heist (poor) runs are not tested" in text
    assert "heist (good) runs are above" in text
    assert [verdict.badge for verdict in build_verdicts(findings)] == ["not tested", "above the floor"]


def test_the_headline_counts_games_per_agent():
    text = headline(Findings(analyse(two_agents("heist", "coinrun"))))
    assert "poor: of two games at 8M, none" in text
    assert "good: of two games at 8M, both score" in text or "good: of two games at 8M, two score" in text


def test_one_agent_is_named_in_its_rows_and_not_in_the_games_name():
    findings = Findings(analyse(table(game_rows())))
    assert {row.agent for row in findings.results.gaps} == {"a"}
    assert [findings.name(env) for env in findings.all_envs] == ["coinrun"]


def test_a_report_of_two_agents_has_a_row_for_each(tmp_path, capsys):
    import pyarrow.csv

    pyarrow.csv.write_csv(two_agents(), tmp_path / "episodes.csv")
    code, _, err = run(capsys, "report", tmp_path / "episodes.csv", "--out", tmp_path / "report")
    assert code == 0, err
    written = "".join(path.read_text() for path in (tmp_path / "report").rglob("*.csv"))
    assert "heist (poor)" in written
    assert "heist (good)" in written
