"""Tables whose numbers would be misread are refused, or what is wrong is said."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from command_line import run
from gapfloor.analysis.apply import analyse
from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.episodes import read_inputs
from gapfloor.errors import UsageError
from known_truth import game_rows, table

pytestmark = pytest.mark.fast


def test_a_learning_curve_is_refused_and_its_last_step_can_be_read():
    rows = [{**row, "global_step": step} for step in (100, 900) for row in game_rows(n_runs=3, repeats=1)]
    late = [
        {**row, "episode_return": row["episode_return"] + 5 * (row["global_step"] == 900)} for row in rows
    ]
    with pytest.raises(UsageError, match="it is a learning curve"):
        read_inputs(table(late))
    found = read_inputs(table(late), options=TableOptions(step="last"))
    assert found.n_rows * 2 == len(late)
    assert found.returns.mean() > 7


def test_one_step_per_run_is_not_a_learning_curve():
    rows = [{**row, "global_step": 900} for row in game_rows(n_runs=3, repeats=1)]
    assert read_inputs(table(rows)).n_rows == len(rows)


def test_a_floor_on_other_levels_is_a_problem():
    elsewhere = {"train": range(200, 260), "test": range(1200, 1260)}
    problems = analyse(table(game_rows(floor_levels=elsewhere))).problems
    assert any(
        "measured on other levels than the runs: they have no level in common" in each.what
        for each in problems
    )
    assert not any("were not played" in each.what for each in analyse(table(game_rows())).problems)


def test_one_missing_level_seed_is_said():
    rows = game_rows(n_runs=3)
    rows[5]["level_seed"] = None
    results = analyse(table(rows))
    assert any("level_seed is missing in row 6" in problem.what for problem in results.problems)


def test_returns_from_0_to_1_are_not_equivalent_by_a_margin_of_a_quarter():
    """A success rate of .55 against a floor of .40: a margin of .25 would call it equivalent."""
    rng = np.random.default_rng(0)
    rows = []
    for row in game_rows(n_runs=8, repeats=4):
        chance = 0.55 if row["agent"] else 0.40
        rows.append({**row, "episode_return": float(rng.random() < chance)})
    calls = {row.call for row in analyse(table(rows)).floor_comparisons}
    assert "equivalent" not in calls
    (margin,) = {
        row.equivalence.margin for row in analyse(table(rows)).floor_comparisons if row.level_set == "test"
    }
    assert margin < 0.06


def test_parquet_text_that_is_not_utf8_is_one_sentence(capsys, tmp_path):
    whole = table(game_rows(n_runs=3))
    bad = pa.array([b"\xff\xfegame"] * whole.num_rows, pa.binary()).view(pa.string())
    pq.write_table(whole.set_column(whole.column_names.index("game"), "game", bad), tmp_path / "bad.parquet")
    code, _, err = run(capsys, "analyse", tmp_path / "bad.parquet")
    assert code == 2
    assert "UTF-8" in err or "Parquet" in err
    (tmp_path / "plan.toml").write_text('name = "x"\n')
    assert run(capsys, "plan", "lock", tmp_path / "plan.toml")[0] == 0


def test_whole_numbers_above_2_to_the_53_are_refused_or_marked(tmp_path):
    """A table keeps every digit and is refused; a CSV file is read as 64-bit numbers and marked."""
    rows = [{**row, "episode_return": round(row["episode_return"]) + 2**60} for row in game_rows(n_runs=3)]
    with pytest.raises(UsageError, match="episode_return holds whole numbers above 2\\^53"):
        analyse(table(rows))
    pyarrow.csv.write_csv(table(rows), tmp_path / "episodes.csv")
    results = analyse(tmp_path / "episodes.csv")
    assert any("2^53" in problem.what for problem in results.problems)
    assert {row.call for row in results.floor_comparisons} == {"not tested"}


def large_returns(kind: type, *, spread: float) -> list[str]:
    """What is said about returns near ten million, with this standard deviation, stored as `kind`."""
    whole = table(game_rows(n_runs=3))
    returns = whole["episode_return"].to_numpy()
    returns = pa.array((1e7 + spread * returns / returns.std()).astype(kind))
    at = whole.column_names.index("episode_return")
    problems = analyse(whole.set_column(at, "episode_return", returns)).problems
    return [problem.what for problem in problems if "32-bit" in problem.what]


def test_32_bit_returns_that_lost_their_digits_are_marked():
    (said,) = large_returns(np.float32, spread=1.0)
    assert "near 1e+07, 32-bit numbers are 1 apart, and the returns vary by only" in said
    assert not large_returns(np.float32, spread=1000.0)
    assert not large_returns(np.float64, spread=1.0)


def test_32_bit_returns_are_recognised_in_a_file_of_text(tmp_path):
    """A frame of 32-bit numbers, written as text, is read as 64-bit numbers."""
    rows = [
        {**row, "episode_return": float(np.float32(1e6 + row["episode_return"] / 20))}
        for row in game_rows(n_runs=3)
    ]
    pyarrow.csv.write_csv(table(rows), tmp_path / "episodes.csv")
    assert any("32-bit" in problem.what for problem in analyse(tmp_path / "episodes.csv").problems)
