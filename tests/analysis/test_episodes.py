"""Anyone's episodes are read, and what is wrong with them is named and never dropped."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from gapfloor.analysis.apply import analyse
from gapfloor.api.plan_files import count_cells
from gapfloor.errors import UsageError

pytestmark = pytest.mark.fast


def kinds(results):
    return [(problem.kind, problem.where) for problem in results.problems if problem.kind != "assumed"]


def test_csv_parquet_and_a_table_give_the_same_numbers(rows, as_table, tmp_path):
    table = as_table(rows)
    pq.write_table(table, tmp_path / "episodes.parquet")
    pa_csv.write_csv(table, tmp_path / "episodes.csv")
    expected = analyse(table).to_dict()
    assert analyse(tmp_path / "episodes.parquet").to_dict() == expected
    assert analyse(tmp_path / "episodes.csv").to_dict() == expected


def test_encoder_is_another_name_for_agent_and_floats_for_seeds(rows, as_table):
    expected = analyse(as_table(rows)).to_dict()
    renamed = [{("encoder" if k == "agent" else k): v for k, v in row.items()} for row in rows]
    for row in renamed:
        row["seed"] = None if row["seed"] is None else float(row["seed"])
    found = analyse(as_table(renamed)).to_dict()
    assert any("'encoder' is read as agent" in problem["what"] for problem in found.pop("problems"))
    del expected["problems"]
    assert found == expected


def test_unknown_columns_are_kept_and_named(rows, as_table):
    results = analyse(as_table([{**row, "wall_time": 3.0} for row in rows]))
    assert results.source.extra_columns == ("wall_time",)


def test_a_floor_without_budget_serves_every_budget(rows, as_table):
    more = [{**row, "budget": "25M"} for row in rows if row["rule"] != "uniform"]
    results = analyse(as_table(rows + more))
    assert {row.budget for row in results.floor_comparisons} == {"8M", "25M"}
    assert len(results.floors) == 4


def test_a_floor_with_a_budget_serves_that_budget_alone(rows, as_table):
    more = [{**row, "budget": "25M"} for row in rows if row["rule"] != "uniform"]
    floors = [{**row, "budget": "8M"} for row in rows if row["rule"] == "uniform"]
    results = analyse(as_table([r for r in rows if r["rule"] != "uniform"] + more + floors))
    assert {row.budget for row in results.floor_comparisons} == {"8M"}
    assert ("no floor", "coinrun, 25M, train") in kinds(results)


def test_levels_written_as_numbers_are_the_plans_level_sets(rows, as_table):
    spelled = {"train": "0:200", "test": "1000:1100"}
    renamed = [{**row, "level_set": spelled[row["level_set"]]} for row in rows]
    assert analyse(as_table(renamed)).to_dict() == analyse(as_table(rows)).to_dict()


def test_without_level_seeds_only_the_generator_is_left_out(rows, as_table):
    bare = [{k: v for k, v in row.items() if k != "level_seed"} for row in rows]
    with_levels, without = analyse(as_table(rows)), analyse(as_table(bare))
    assert repr(without.floor_comparisons) == repr(with_levels.floor_comparisons)
    assert without.to_dict()["sensitivity"][0]["generator"]["se"] is None
    assert with_levels.sensitivity[0].generator.se > 0


def test_equal_rows_without_slot_and_index_are_two_episodes(rows, as_table):
    n = analyse(as_table(rows)).floors[0].n
    assert analyse(as_table([*rows, *rows])).floors[0].n == 2 * n


def test_the_same_slot_and_index_twice_is_refused_by_row(rows, as_table):
    placed = []
    counter: dict[tuple, int] = {}
    for row in rows:
        key = tuple(row[k] for k in ("game", "level_set", "draw", "agent", "seed", "rule"))
        counter[key] = counter.get(key, -1) + 1
        placed.append({**row, "slot": counter[key] % 4, "index": counter[key] // 4})
    analyse(as_table(placed))
    with pytest.raises(UsageError, match=rf"stands in rows 8 and {len(placed) + 1}\. Remove"):
        analyse(as_table([*placed, placed[7]]))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_return_that_is_not_finite_is_refused_by_row(rows, as_table, value):
    rows[4]["episode_return"] = value
    rows[9]["episode_return"] = value
    with pytest.raises(UsageError, match=r"episode_return is missing or not finite in rows 5, 10\."):
        analyse(as_table(rows))


def test_a_csv_is_named_by_line(rows, as_table, tmp_path):
    path = tmp_path / "episodes.csv"
    rows[0]["episode_return"] = float("nan")
    pa_csv.write_csv(as_table(rows), path)
    with pytest.raises(UsageError, match="in line 2"):
        analyse(path)
    lines = path.read_text().splitlines()
    lines[3] = lines[3].rsplit(",", 1)[0] + ",high"
    path.write_text("\n".join(lines))
    with pytest.raises(UsageError, match=r"not a number in lines? .*4.*'high'|not a number in lines 2, 4"):
        analyse(path)


def test_a_missing_draw_is_named_and_the_run_kept(rows, as_table):
    def gone(row):
        return (row["game"], row["agent"], row["seed"], row["level_set"], row["draw"], row["rule"]) == (
            "heist", "b", 2, "test", 1, "greedy",
        )  # fmt: skip

    results = analyse(as_table([row for row in rows if not gone(row)]))
    assert kinds(results) == [("missing", "heist, 8M, b seed 2, greedy, test, draw 1")]
    row = next(
        r
        for r in results.floor_comparisons
        if (r.game, r.agent, r.rule, r.level_set) == ("heist", "b", "greedy", "test")
    )
    assert row.n == 2


def test_a_run_without_its_test_half_stays_in_the_train_row(rows, as_table):
    def gone(row):
        return (row["game"], row["agent"], row["seed"], row["level_set"]) == ("heist", "b", 2, "test")

    results = analyse(as_table([row for row in rows if not gone(row)]))
    assert ("missing", "heist, 8M, b seed 2, sampled, test") in kinds(results)
    of_b = [r for r in results.floor_comparisons if (r.game, r.agent) == ("heist", "b")]
    counts = {(r.rule, r.level_set): r.n for r in of_b}
    assert counts["sampled", "train"] == 2
    assert counts["sampled", "test"] == 1
    assert {r.n for r in results.gaps if (r.game, r.agent) == ("heist", "b")} == {1}


def test_a_short_draw_is_named(rows, as_table):
    index = next(i for i, row in enumerate(rows) if row["rule"] == "sampled")
    results = analyse(as_table(rows[:index] + rows[index + 1 :]))
    assert kinds(results) == [("unbalanced", "coinrun, 8M, a seed 1, sampled, train, draw 0")]
    assert "7 episodes, where 8 are usual" in results.problems[-1].what


def test_a_floor_on_other_draws_is_named(rows, as_table):
    moved = [{**row, "draw": row["draw"] + 5} if row["rule"] == "uniform" else row for row in rows]
    assert ("unbalanced", "coinrun, 8M, train, floor") in kinds(analyse(as_table(moved)))


def test_two_runs_with_identical_episodes_are_reported_as_copies(rows, as_table):
    twin = [{**row, "seed": 9} for row in rows if (row["agent"], row["seed"]) == ("a", 1)]
    found = kinds(analyse(as_table(rows + twin)))
    assert found == [("copy", "coinrun, 8M, a seed 9"), ("copy", "heist, 8M, a seed 9")]


def test_policies_that_never_score_are_not_copies(rows, as_table):
    zero = [{**row, "episode_return": 0.0} if row["rule"] != "uniform" else row for row in rows]
    assert kinds(analyse(as_table(zero))) == []


def test_one_run_is_described_and_named(rows, as_table):
    lone = [row for row in rows if row["rule"] == "uniform" or (row["agent"], row["seed"]) == ("a", 1)]
    results = analyse(as_table(lone))
    assert ("too few", "heist, 8M, sampled, test") in kinds(results)
    assert {row.decision.call for row in results.floor_comparisons} == {"not tested"}
    assert {row.decision.label for row in results.floor_comparisons} == {"not tested (1 run)"}
    assert {row.decision.label for row in results.gaps} <= {
        "not tested (1 run)",
        "not tested (no level seeds)",
    }
    assert {row.decision.family_size for row in results.floor_comparisons} == {0}


def test_runs_without_a_seed_are_one_run_and_that_is_said(rows, as_table):
    merged = [{**row, "seed": None} for row in rows]
    results = analyse(as_table(merged))
    assert any("seed is empty in rows" in p.what for p in results.problems)
    assert results.source.n_runs == 4


@pytest.mark.parametrize("column", ["game", "agent", "seed", "rule", "level_set", "episode_return"])
def test_a_missing_column_is_named_next_to_the_files_own_columns_and_the_remedy(rows, as_table, column):
    renamed = [{(f"{k}_x" if k == column else k): v for k, v in row.items()} for row in rows]
    with pytest.raises(UsageError, match=f"has no column for {column}.*{column}_x.*--columns {column}="):
        analyse(as_table(renamed))


def test_an_empty_label_is_refused_by_row(rows, as_table):
    rows[2]["game"] = ""
    with pytest.raises(UsageError, match="game is empty in row 3"):
        analyse(as_table(rows))


def test_paths_that_cannot_be_read_are_refused(tmp_path, as_table):
    (tmp_path / "notes.pdf").write_text("x")
    (tmp_path / "broken.parquet").write_text("x")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(UsageError, match="no store or file at"):
        analyse(tmp_path / "nothing.csv")
    with pytest.raises(UsageError, match=r"is not a store or a \.csv"):
        analyse(tmp_path / "notes.pdf")
    with pytest.raises(UsageError, match="cannot be read as Parquet"):
        analyse(tmp_path / "broken.parquet")
    with pytest.raises(UsageError, match="holds no header line"):
        analyse(tmp_path / "empty.csv")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no cells"):
        analyse(tmp_path / "empty")
    with pytest.raises(UsageError, match="holds no episodes"):
        analyse(pa.table({name: [] for name in ("game", "budget", "agent", "seed", "rule", "level_set", "draw",
                                                "episode_return")}))  # fmt: skip


def test_cells_are_counted_by_run_rule_level_set_and_draw(rows, as_table):
    table = as_table(rows)
    assert count_cells(table) == 2 * 2 * 2 * (2 * 2 * 2 + 1)
    assert count_cells(table, rules=("greedy",)) == 2 * 2 * 2 * 4


def test_a_stricter_reference_is_compared_in_addition_to_the_floor(rows, as_table):
    blind = [
        {**row, "rule": "constant:4", "reference": "constant:4"} for row in rows if row["rule"] == "uniform"
    ]
    marked = [{**row, "reference": "uniform" if row["rule"] == "uniform" else ""} for row in rows]
    results = analyse(as_table(marked + blind))
    assert {row.reference for row in results.reference_comparisons} == {"constant:4"}
    assert {row.reference for row in results.floor_comparisons} == {"uniform"}
    assert {row.status for row in results.reference_comparisons} == {"exploratory"}
