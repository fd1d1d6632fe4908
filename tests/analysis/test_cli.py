"""The commands analyse and plan, as a user calls them."""

from __future__ import annotations

import csv
import json
import shlex

import numpy as np
import pyarrow.parquet as pq
import pytest

from command_line import run

pytestmark = pytest.mark.fast


@pytest.fixture
def episodes(rows, as_table, tmp_path):
    path = tmp_path / "episodes.parquet"
    pq.write_table(as_table(rows), path)
    return path


def test_analyse_prints_calls_and_gaps(capsys, episodes):
    code, out, err = run(capsys, "analyse", episodes)
    assert code == 0
    assert "Plan recommended (built in)" in out
    assert "exploratory" in out
    assert "Compared with the floor" in out
    assert "coinrun" in out
    assert "no column 'mode'" in err


def test_analyse_ends_with_the_headline_of_the_report_and_the_next_command(capsys, episodes):
    _, out, _ = run(capsys, "analyse", episodes)
    verdict, following = out.splitlines()[-2:]
    assert "random" in verdict
    assert following == f"Next: gapfloor report {episodes}"


def test_analyse_json_is_one_document(capsys, episodes):
    code, out, _ = run(capsys, "analyse", episodes, "--json")
    assert code == 0
    assert {"floor_comparisons", "gaps", "pairs", "encoders", "screen", "normalised"} <= set(json.loads(out))


def test_analyse_out_writes_json_and_csv_tables(capsys, episodes, tmp_path):
    code, _, _ = run(capsys, "analyse", episodes, "--out", tmp_path / "results")
    assert code == 0
    names = {path.name for path in (tmp_path / "results").iterdir()}
    assert {"results.json", "floor_comparisons.csv", "gaps.csv"} <= names
    with open(tmp_path / "results" / "floor_comparisons.csv", newline="") as file:
        table = list(csv.DictReader(file))
    document = json.loads((tmp_path / "results" / "results.json").read_text())
    for line, row in zip(table, document["floor_comparisons"], strict=True):
        assert (line["decision.call"], float(line["delta.low"])) == (
            row["decision"]["call"],
            row["delta"]["low"],
        )


def test_bad_input_is_one_sentence_exit_2_and_nothing_written(capsys, tmp_path):
    bad = tmp_path / "bad.csv"
    bad.write_text("game,rule\nheist,greedy\n")
    code, out, err = run(capsys, "analyse", bad, "--out", tmp_path / "results")
    assert (code, out) == (2, "")
    assert "has no column for agent" in err
    assert "Traceback" not in err
    assert not (tmp_path / "results").exists()


def test_a_table_of_runs_in_its_own_words_leads_to_a_report(capsys, tmp_path):
    """One value per run, foreign names and no row of random play: each message says what to write next."""
    table = tmp_path / "runs.csv"
    rows = [f"mine,{game},{seed},{8 + seed / 10}" for game in ("coinrun", "heist") for seed in range(4)]
    table.write_text("\n".join(["cohort,environment,seed,reward", *rows]))
    _, _, err = run(capsys, "analyse", table, "--rule", "sampled", "--floor", "random")
    assert "--columns agent=NAME,level_set=NAME names" in err
    words = ["--rule", "sampled", "--columns", "agent=cohort", "--label", "level_set=test"]
    _, _, err = run(capsys, "analyse", table, *words, "--floor", "random")
    assert "--floor registry" in err
    code, out, _ = run(capsys, "analyse", table, *words, "--floor", "registry")
    assert (code, out.count("  above\n")) == (0, 2)
    following = shlex.split(out.splitlines()[-1].removeprefix("Next: gapfloor "))
    code, out, _ = run(capsys, *following, "--out", tmp_path / "report", "--formats", "html")
    assert code == 0
    assert "both score above the random floor" in out


def test_plan_init_lock_check_and_refusal_of_a_change(capsys, episodes, tmp_path):
    plan = tmp_path / "plan.toml"
    assert run(capsys, "plan", "init", plan)[0] == 0
    assert run(capsys, "plan", "init", plan)[0] == 2
    code, _, err = run(capsys, "plan", "check", plan)
    assert code == 1
    assert "is not locked" in err
    code, out, _ = run(capsys, "plan", "lock", plan, "--episodes", episodes, "--json")
    assert code == 0
    locked = json.loads(out)["plan"]
    assert (locked["cells_seen"], locked["status"]) == (72, "pre-specified")
    assert locked["seen_in"] == "counted in episodes.parquet"
    assert run(capsys, "plan", "check", plan)[0] == 0
    document = json.loads(run(capsys, "plan", "check", plan, "--json")[1])
    assert document["plan"]["cells_seen"] == 72
    code, out, _ = run(capsys, "analyse", episodes, "--plan", plan)
    assert code == 0
    assert "pre-specified" in out
    plan.write_text(plan.read_text().replace("alpha = 0.05", "alpha = 0.1"))
    code, _, err = run(capsys, "analyse", episodes, "--plan", plan)
    assert code == 1
    assert "+alpha = 0.1" in err


def test_plan_lock_without_any_cells_is_pre_registered(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(capsys, "plan", "init")
    code, out, _ = run(capsys, "plan", "lock", "plan.toml")
    assert code == 0
    assert "pre-registered" in out
    run(capsys, "plan", "init", "--addendum", "merged.toml")
    code, out, _ = run(capsys, "plan", "addendum", "plan.toml", "merged.toml", "--cells-seen", "3")
    assert code == 0
    assert "pre-specified" in out
    code, out, _ = run(capsys, "plan", "check", "plan.toml")
    assert "merged argmax" in out
    assert run(capsys, "plan", "lock", "plan.toml", "--store", "nowhere")[0] == 2


def test_a_folder_of_evaluations_is_read_with_the_labels_of_its_paths(capsys, tmp_path):
    rng = np.random.default_rng(0)
    for seed in (1, 2, 3):
        for level_set in ("train", "test"):
            folder = tmp_path / "logs" / f"game=heist/agent=ppo/seed={seed}/rule=greedy/level_set={level_set}"
            folder.mkdir(parents=True)
            results = rng.normal(5, 1, (2, 16))
            np.savez(
                folder / "evaluations.npz", timesteps=[1, 2], results=results, ep_lengths=np.ones((2, 16))
            )
    code, out, _ = run(capsys, "analyse", tmp_path / "logs", "--json")
    assert code == 0
    assert json.loads(out)["source"]["n_runs"] == 3
    assert json.loads(out)["source"]["level_sets"] == ["train", "test"]
    assert run(capsys, "analyse")[0] == 2


def test_power_answers_from_a_pilot(capsys, episodes):
    code, out, _ = run(capsys, "power", episodes, "--json")
    assert code == 0
    rows = json.loads(out)["comparisons"]
    assert [(row["game"], row["rule"], row["level_set"]) for row in rows] == [
        ("coinrun", "sampled", "test"),
        ("heist", "sampled", "test"),
    ]
    # The pilot's floor has 16 episodes, and the design asks for more of them.
    assert all(row["design"]["n_floor"] >= 20 for row in rows)
    assert run(capsys, "power", episodes, "--rule", "merged")[0] == 2
