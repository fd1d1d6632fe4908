"""The whole pipeline on data of the paper's shape gives the paper's tables and counts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.plan.model import parse_plan
from gapfloor.tables.readable import flat_row

pytestmark = pytest.mark.fast

CALLS = {"above": "above", "below": "below", "n.d.": "not distinguishable"}


@pytest.fixture(scope="module")
def facts():
    import paper_shaped

    return paper_shaped.PAPER


def find(rows, **wanted):
    (row,) = [r for r in rows if all(getattr(r, key) == value for key, value in wanted.items())]
    return row


def test_source_is_the_papers_1008_cells_with_floors_and_merged_cells(paper_results):
    source = paper_results.source
    assert (source.n_cells, source.n_runs, source.n_episodes) == (1008 + 288 + 48, 84, 172_032)
    assert source.agents == ("IMPALA", "FPN")
    assert source.budgets == ("8M", "25M")
    assert paper_results.problems == ()


def test_every_floor_call_mean_and_sem_is_the_papers(paper_results, facts):
    for printed in facts["floor_calls"]:
        for rule in ("sampled", "greedy"):
            row = find(
                paper_results.floor_comparisons,
                game=printed["env"], budget=printed["budget"], rule=rule, level_set=printed["levels"],
            )  # fmt: skip
            assert row.decision.call == CALLS[printed[rule]["call"]]
            assert row.mean == pytest.approx(printed[rule]["ret"]["mean"], abs=0.0051)
            assert row.sem == pytest.approx(printed[rule]["ret"]["sem"], abs=0.0061)
            assert row.floor == pytest.approx(printed["floor"]["mean"], abs=0.0051)
            assert row.floor_sem == pytest.approx(printed["floor"]["sem"], abs=0.0051)
            assert (row.n, row.floor_n) == (printed["n"], 384)


def test_runs_above_the_floor_and_intervals_are_the_papers(paper_results, facts):
    for printed in facts["unmask"]:
        for rule in ("sampled", "greedy"):
            row = find(
                paper_results.floor_comparisons, game=printed["env"], budget="8M", rule=rule, level_set="test"
            )
            assert row.runs_above == printed[rule]["k"]
            # z moves by z/SEM times the rounding of the SEM.
            error = 0.06 + abs(row.z) * 0.006 / math.hypot(row.sem, row.floor_sem) + 0.011 / row.sem
            assert row.z == pytest.approx(printed[rule]["z"], abs=error)
            if "ci" in printed[rule]:
                # The runs' shape is invented, only their mean and SEM are the paper's.
                assert row.delta.interval == pytest.approx(printed[rule]["ci"], abs=0.05 + 0.15 * row.sem)


def test_merged_argmax_has_the_papers_calls_differences_and_disagreement(paper_results, facts):
    for printed in facts["merged_argmax"]:
        where = {"game": printed["env"], "budget": "8M"}
        row = find(paper_results.floor_comparisons, **where, rule="merged", level_set="test")
        assert row.decision.call == CALLS[printed["merged_call"]]
        assert row.decision.family_size == 8
        pair = find(paper_results.pairs, **where, rule="merged", rule_b="greedy", quantity="test")
        assert pair.difference.value == pytest.approx(printed["merged_minus_greedy"], abs=0.011)
        share = find(paper_results.disagreements, **where, rule="merged", level_set="test").share
        assert 100 * share == pytest.approx(printed["disagree_pct"])


def test_rows_of_each_agent_are_the_papers(paper_results, facts):
    for budget, table in (("8M", "agents_8m"), ("25M", "agents_25m")):
        for printed in facts[table]:
            for rule in ("sampled", "greedy"):
                row = find(
                    paper_results.agents,
                    game=printed["env"],
                    budget=budget,
                    rule=rule,
                    agent=printed["encoder"],
                )
                for part, values in printed[rule].items():
                    assert getattr(row, part) == pytest.approx(values["mean"], abs=0.0056)
                    assert getattr(row, f"{part}_sem") == pytest.approx(values["sem"], abs=0.0061)
            if "tier" in printed:
                assert row.tier == printed["tier"]


def test_gaps_and_their_intervals_are_the_papers(paper_results, facts):
    tables = [(row, "8M") for row in facts["gaps_8m"]] + [
        (row, row["budget"]) for row in facts["gaps_extended"]
    ]
    for printed, budget in tables:
        for rule in ("sampled", "greedy"):
            row = find(paper_results.gaps, game=printed["env"], budget=budget, rule=rule)
            want = printed[rule]["gap"]
            assert row.gap == pytest.approx(want["est"], abs=0.0056)
            assert row.estimate.interval == pytest.approx(
                (want["lo"], want["hi"]), abs=0.02 + 0.15 * row.gap_sem
            )
            assert row.n == printed["n"]


def test_heist_and_starpilot_agent_differences_are_the_texts(paper_results):
    gap = find(paper_results.encoders, game="heist", budget="25M", rule="sampled", quantity="gap")
    assert (gap.agent, gap.agent_b, gap.n_runs) == ("IMPALA", "FPN", (6, 6))
    assert gap.difference.value == pytest.approx(1.06, abs=0.011)
    assert 0.0004 <= gap.difference.p <= 0.0009
    assert 100 * gap.share_from_training == pytest.approx(37, abs=1.6)
    assert gap.p_draw_min <= gap.p_draw_max
    greedy = find(paper_results.encoders, game="heist", budget="25M", rule="greedy", quantity="gap")
    assert greedy.difference.value == pytest.approx(1.37, abs=0.011)
    assert 0.0016 <= greedy.difference.p <= 0.0026
    starpilot = find(paper_results.encoders, game="starpilot", budget="25M", rule="sampled", quantity="test")
    assert starpilot.difference.p == pytest.approx(0.9, abs=0.05)
    for agent, z in (("IMPALA", -1.4), ("FPN", 0.5)):
        row = find(paper_results.agents, game="heist", budget="25M", rule="sampled", agent=agent)
        assert row.z_test == pytest.approx(z, abs=0.11)
        alone = find(
            paper_results.agent_floor_comparisons,
            game="heist", budget="25M", rule="sampled", level_set="test", agent=agent,
        )  # fmt: skip
        assert alone.z == pytest.approx(row.z_test)


def test_screen_tiers_sweep_and_shares_are_the_papers(paper_results, facts):
    letters = {"low": "L", "intermediate": "I", "high": "H"}
    for printed, sweep in zip(facts["tiers"], facts["sweep"], strict=True):
        row = find(paper_results.screen, game=printed["env"], budget="8M")
        assert row.entropy == pytest.approx(printed["H"], abs=5e-4)
        assert 100 * row.fraction == pytest.approx(printed["pct_max"], abs=0.06)
        tiers = (row.tier, row.merged_tier_state, row.merged_tier_game)
        assert tiers == (printed["raw_tier"], printed["merged_tier_state"], printed["merged_tier_game"])
        assert round(100 * row.share) == printed["share_pct"]
        assert row.call == CALLS[printed["above_floor"]]
        assert (row.gap_primary, row.gap_secondary) == pytest.approx(
            (printed["gap_s"], printed["gap_g"]), abs=0.0056
        )
        assert {str(p.cut): letters[p.raw] for p in row.sweep} == sweep["raw"]
        assert {str(p.cut): letters[p.merged_state] for p in row.sweep} == sweep["merged_state"]


def test_merged_entropies_of_both_budgets_are_the_papers(paper_results, facts):
    for printed in facts["merged_entropy"]:
        row = find(paper_results.screen, game=printed["env"], budget=printed["budget"])
        got = (
            row.k,
            row.entropy_probe,
            row.merged_state,
            row.merged_game,
            row.entropy_greedy,
            row.entropy_first,
        )
        keys = ("k_global", "raw_H", "merged_H_state", "merged_H_game", "greedy_states_H", "first1024_H")
        assert got == pytest.approx([printed[key] for key in keys], abs=5e-4)


def test_normalised_scores_are_the_papers(paper_results, facts):
    columns = {
        "sampled_train": ("sampled", "train"), "sampled_test": ("sampled", "test"),
        "greedy_test": ("greedy", "test"), "floor_train": ("uniform", "train"), "floor_test": ("uniform", "test"),
    }  # fmt: skip
    rows = [(row["env"], row) for row in facts["normalised"]["rows"]]
    rows += [("mean", row) for row in facts["normalised"]["means"]]
    for game, printed in rows:
        for column, (rule, level_set) in columns.items():
            if printed[column] is None:
                continue
            row = find(
                paper_results.normalised, game=game, budget=printed["budget"], rule=rule, level_set=level_set
            )
            assert row.score == pytest.approx(printed[column], abs=0.0056)


def test_counts_in_the_text_are_the_papers(paper_results):
    sampled = find(paper_results.call_counts, budget="8M", rule="sampled", level_set="test")
    greedy = find(paper_results.call_counts, budget="8M", rule="greedy", level_set="test")
    assert (sampled.above, greedy.below, greedy.z_not_above) == (5, 2, 3)
    summary = find(paper_results.screen_summaries, budget="8M")
    assert (summary.raw, summary.merged_state, summary.merged_game) == (6, 2, 3)
    assert (round(100 * summary.share_min), round(100 * summary.share_max)) == (32, 66)


def test_ratio_success_and_rule_counts_of_the_text(paper_results):
    miner = find(paper_results.floor_comparisons, game="miner", budget="8M", rule="sampled", level_set="test")
    assert round(miner.ratio, 1) == 5.1
    sampled = find(
        paper_results.floor_comparisons, game="heist", budget="8M", rule="sampled", level_set="test"
    )
    greedy = find(paper_results.floor_comparisons, game="heist", budget="8M", rule="greedy", level_set="test")
    # A success returns 10.
    assert [round(10 * mean) for mean in (sampled.mean, sampled.floor, greedy.mean)] == [29, 32, 5]
    fruitbot = find(paper_results.pairs, game="fruitbot", budget="8M", rule="sampled", quantity="test")
    assert fruitbot.runs_second_higher == 6
    heist = find(paper_results.pairs, game="heist", budget="8M", rule="sampled", quantity="test")
    assert (heist.runs_first_higher, round(heist.difference.value, 2)) == (6, pytest.approx(2.43, abs=0.011))
    gaps = find(paper_results.pairs, game="heist", budget="25M", rule="sampled", quantity="gap")
    assert gaps.difference.value == pytest.approx(1.32, abs=0.011)


def test_equivalence_is_unreachable_where_the_floor_is_too_noisy(paper_results):
    rows = [
        r
        for r in paper_results.floor_comparisons
        if (r.budget, r.rule, r.level_set) == ("8M", "sampled", "test")
    ]
    assert {r.game for r in rows if not r.equivalence.is_reachable} == {"fruitbot", "coinrun", "heist"}


def test_the_json_document_is_strict_and_a_comparison_has_at_most_40_leaves(paper_results):
    document = json.loads(json.dumps(paper_results.to_dict(), allow_nan=False))
    row = document["floor_comparisons"][0]
    promised = ["game", "budget", "rule", "level_set", "n", "mean", "sem", "floor", "floor_sem", "delta", "decision",
                "equivalence", "runs_above", "plan_hash", "status", "seed"]  # fmt: skip
    assert set(promised) <= set(row)
    assert {"value", "se", "df", "low", "high", "p", "estimand", "method"} <= set(row["delta"])
    assert len(flat_row(row, is_pair=lambda values: False)) <= 40
    for table in ("gaps", "pairs", "encoders", "screen", "normalised"):
        assert document[table]


def test_order_of_rows_changes_no_byte(paper, paper_results):
    order = np.random.default_rng(0).permutation(paper.episodes.num_rows)
    plan = parse_plan('name = "paper"\n[agents]\norder = ["IMPALA", "FPN"]', source="x")
    some = ("heist", "coinrun")
    keep = np.isin(paper.episodes["game"].to_numpy(zero_copy_only=False), some)
    first = paper.episodes.filter(keep)
    shuffled = paper.episodes.take(order).filter(keep[order])
    assert analyse(first, plan).to_dict() == analyse(shuffled, plan).to_dict()


def test_another_seed_moves_intervals_and_nothing_else(paper, paper_results):
    keep = paper.episodes.filter(np.equal(paper.episodes["game"].to_numpy(zero_copy_only=False), "heist"))
    one, two = (analyse(keep, parse_plan(f'name = "x"\n[intervals]\nseed = {s}', source="x")) for s in (1, 2))
    first, second = one.floor_comparisons[0], two.floor_comparisons[0]
    assert first.delta.interval != second.delta.interval
    assert (first.z, first.delta.p, first.equivalence.p) == (second.z, second.delta.p, second.equivalence.p)
