"""Results as other tools leave them: published tables, logs, exports and folders of files."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gapfloor
from command_line import run
from gapfloor.analysis.column_names import TableOptions
from gapfloor.analysis.episodes import read_inputs, read_source
from gapfloor.analysis.table_files import read_table
from gapfloor.errors import UsageError

PUBLISHED = Path(__file__).parents[2] / "examples" / "published"


def calls(results):
    return {(row.game, row.agent): row.call for row in results.floor_comparisons}


@pytest.mark.fast
def test_a_published_table_has_a_verdict_per_game_and_agent(capsys):
    code, out, _ = run(capsys, "analyse", PUBLISHED / "ctrl_procgen.csv", "--label", "n=5", "--json")
    rows = json.loads(out)["floor_comparisons"]
    found = {(row["game"], row["agent"]): row["decision"]["call"] for row in rows}
    assert (code, len(found)) == (0, 16 * 7)
    assert found["coinrun", "CTRL"] == "above"
    # 3.3 ± 0.3 where random play earns 3.18 ± 0.24.
    assert found["heist", "CTRL"] == "not distinguishable"
    assert found["heist", "PPO+DIAYN"] == "below"


@pytest.mark.fast
def test_an_export_of_open_rl_benchmark_finds_the_floors_of_atari():
    results = gapfloor.analyse(PUBLISHED / "tianshou_atari.csv", labels={"n": "10"})
    found = calls(results)
    # The registry has no floor of Seaquest and Enduro.
    assert len(found) == 5 * 8
    assert {each.where for each in results.problems if each.kind == "no floor"} == {
        "SeaquestNoFrameskip-v4, test", "EnduroNoFrameskip-v4, test"
    }  # fmt: skip
    assert found["PongNoFrameskip-v4", "baselines-ppo2-cnn"] == "above"


@pytest.mark.fast
def test_scores_of_single_runs_without_spread_are_described_and_not_tested():
    results = gapfloor.analyse(PUBLISHED / "dataset_procgen.csv")
    assert set(calls(results).values()) == {"not tested"}
    assert len(results.floor_comparisons) == 16


MARKDOWN = """Our results:

| Game    | PPO         | Random      |
|:--------|:------------|:------------|
| CoinRun | 8.5 ± 0.5   | 2.6 ± 0.2   |
"""
LATEX = r"""\begin{tabular}{l|ll}
\toprule
Game & PPO & Random \\ \midrule
CoinRun & \textbf{8.5$\pm$0.5} & $2.6 \pm 0.2$ \\ \hline
\end{tabular}
"""


@pytest.mark.fast
@pytest.mark.parametrize(("name", "text"), [("table.md", MARKDOWN), ("table.tex", LATEX)])
def test_tables_of_markdown_and_latex_are_read(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    (row,) = gapfloor.analyse(tmp_path / name, labels={"n": "10"}).floor_comparisons
    assert (row.game, row.agent, row.mean, row.floor, row.call) == ("CoinRun", "PPO", 8.5, 2.6, "above")


@pytest.mark.fast
def test_a_spread_that_is_rounded_to_zero_is_not_zero():
    table = pa.Table.from_pylist([{"game": "x", "agent": "a", "mean": "4.30 ± 0.00"}])
    (row,) = gapfloor.analyse(table, floor="4", labels={"n": "4"}).floor_comparisons
    assert row.sem == pytest.approx(0.005 / 2)


@pytest.mark.fast
def test_a_row_with_its_number_of_episodes_is_one_run():
    rows = [
        {"algo": "ppo", "env_id": "CartPole-v1", "mean_reward": 490.0, "std_reward": 9.0, "n_episodes": 300}
    ]
    (row,) = gapfloor.analyse(pa.Table.from_pylist(rows)).floor_comparisons
    assert (row.n, row.call) == (1, "not tested")


SCORES = {"ppo": [[6.0, 8.0], [6.5, 8.5], [7.0, 9.0]], "random": [[2.0, 3.0], [2.1, 3.1], [1.9, 2.9]]}


@pytest.mark.fast
@pytest.mark.parametrize("form", ["matrix", "by game", "archive"])
def test_dictionaries_of_rliable_are_scores_of_runs(tmp_path, form):
    path = tmp_path / ("scores.npz" if form == "archive" else "scores.json")
    if form == "archive":
        np.savez(path, **{agent: np.array(rows) for agent, rows in SCORES.items()})
    elif form == "matrix":
        path.write_text(json.dumps(SCORES))
    else:
        named = {agent: {"game 1": [row[0] for row in rows], "game 2": [row[1] for row in rows]}
                 for agent, rows in SCORES.items()}  # fmt: skip
        path.write_text(json.dumps(named))
    results = gapfloor.analyse(path)
    assert calls(results) == {("game 1", "ppo"): "above", ("game 2", "ppo"): "above"}
    assert {row.n for row in results.floor_comparisons} == {3}


@pytest.mark.fast
def test_json_of_pandas_is_a_table(tmp_path):
    (tmp_path / "wide.json").write_text(
        json.dumps({"PPO": {"CoinRun": "8.5 ± 0.5"}, "Random": {"CoinRun": "2.6 ± 0.2"}})
    )
    assert calls(gapfloor.analyse(tmp_path / "wide.json", labels={"n": "5"})) == {("CoinRun", "PPO"): "above"}
    (tmp_path / "other.json").write_text('{"schema": "gapfloor/1", "rows": []}')
    with pytest.raises(UsageError, match="is JSON, but none of these"):
        gapfloor.analyse(tmp_path / "other.json")


@pytest.mark.fast
def test_a_chart_of_wandb_is_read_at_its_last_step(tmp_path):
    runs = [f"CartPole-v1__ppo__{seed}__16746729{seed}" for seed in (1, 2, 3)]
    header = [
        '"global_step"',
        *(f'"{r} - charts/episodic_return{e}"' for r in runs for e in ("", "__MIN", "__MAX")),
    ]
    lines = [",".join(header)] + [",".join(map(str, [step, *[v] * 3, *[v + 9] * 3, *[v + 5] * 3]))
                                  for step, v in ((1000, 20.0), (50000, 480.0))]  # fmt: skip
    path = tmp_path / "wandb_export.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(UsageError, match="it is a learning curve"):
        gapfloor.analyse(path)
    (row,) = gapfloor.analyse(path, step="last").floor_comparisons
    assert (row.game, row.agent, row.n, row.call) == ("CartPole-v1", "ppo", 3, "above")
    assert row.mean == pytest.approx(480 + 14 / 3)


@pytest.mark.fast
def test_a_chart_of_wandb_without_ranges_is_one_too(tmp_path):
    path = tmp_path / "chart.csv"
    path.write_text("Step,ppo-s1 - eval/return,ppo-s2 - eval/return,sac-s1 - eval/return\n9,3.0,3.2,1.0\n")
    with pytest.raises(UsageError, match="do not say which game"):
        gapfloor.analyse(path, floor="1.2±0.1")
    rows = gapfloor.analyse(path, floor="1.2±0.1", labels={"game": "maze"}).floor_comparisons
    assert [(row.game, row.agent, row.n, row.mean) for row in rows] == [
        ("maze", "ppo", 2, pytest.approx(3.1)),
        ("maze", "sac", 1, 1.0),
    ]
    path.write_text("Step,ppo-s1 - eval/return,ppo-s1 - eval/length\n9,3.0,500\n")
    with pytest.raises(UsageError, match="several quantities"):
        gapfloor.analyse(path, floor="1.2±0.1")


@pytest.mark.fast
def test_a_table_of_wandb_runs_is_one_score_per_run(tmp_path):
    path = tmp_path / "runs.csv"
    rows = [f'"run-{seed}","finished","CartPole-v1","ppo","{seed}","{480 + seed}.5"' for seed in (1, 2, 3, 4)]
    path.write_text("\n".join(['"Name","State","env_id","exp_name","seed","charts/episodic_return"', *rows]))
    (row,) = gapfloor.analyse(path).floor_comparisons
    assert (row.agent, row.n, row.mean, row.call) == ("ppo", 4, 483.0, "above")


def log_of_inspect(scores):
    samples = [
        {"id": f"s{at}", "epoch": epoch, "scores": {"match": {"value": value}}}
        for epoch in (1, 2)
        for at, value in enumerate(scores)
    ]
    header = {
        "version": 2, "status": "success", "eval": {"task": "coin", "model": "stub", "model_generate_config": {}},
        "plan": {"config": {"temperature": 0.7}},
    }  # fmt: skip
    return header, samples


@pytest.mark.fast
@pytest.mark.parametrize("form", ["json", "eval", "zstandard"])
def test_logs_of_inspect_are_episodes(tmp_path, form):
    header, samples = log_of_inspect(["C", "I", "C", "C"])
    path = tmp_path / ("log.json" if form == "json" else "log.eval")
    if form == "json":
        path.write_text(json.dumps({**header, "samples": samples}))
    elif form == "eval":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("header.json", json.dumps(header))
            archive.writestr("summaries.json", json.dumps(samples))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name, value in (("header.json", header), ("summaries.json", samples)):
                archive.writestr(name, pa.compress(json.dumps(value).encode(), "zstd", asbytes=True))
        # zipfile cannot write the method that inspect_ai uses, so its number is put in afterwards.
        content = path.read_bytes()
        for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
            at = -1
            while (at := content.find(mark, at + 1)) >= 0:
                content = content[: at + place] + b"\x5d\x00" + content[at + place + 2 :]
        path.write_bytes(content)
    inputs = read_inputs(path)
    assert (inputs.n_rows, inputs.labels["agent"][1]) == (8, ("stub",))
    assert inputs.labels["rule"][1] == ("temperature:0.7",)
    (row,) = gapfloor.analyse(path, floor="0.5±0.01").floor_comparisons
    assert (row.game, row.mean, row.floor, row.call) == ("coin", 0.75, 0.5, "not tested")


@pytest.mark.fast
def test_a_log_with_a_sample_that_has_no_score_is_refused(tmp_path):
    header, samples = log_of_inspect(["C"])
    samples[0]["scores"] = {}
    (tmp_path / "log.json").write_text(json.dumps({**header, "samples": samples}))
    with pytest.raises(UsageError, match="s0 has no score"):
        read_source(tmp_path / "log.json")


@pytest.mark.fast
@pytest.mark.parametrize("form", ["one task", "many tasks"])
def test_eval_info_of_lerobot_is_read(tmp_path, form):
    episodes = [{"episode_ix": i, "sum_reward": 2.0 * i, "max_reward": 1.0, "success": i > 1, "seed": 1000 + i}
                for i in range(4)]  # fmt: skip
    document = {"per_episode": episodes, "aggregated": {"pc_success": 50.0}}
    metrics = {"sum_rewards": [0.0, 2.0, 4.0, 6.0], "successes": [False, False, True, True]}
    if form == "many tasks":
        document = {"per_task": [{"task_group": "libero", "task_id": 3, "metrics": metrics}], "overall": {}}
    (tmp_path / "eval_info.json").write_text(json.dumps(document))
    labels = {"agent": "act", **({"game": "pusht"} if form == "one task" else {})}
    inputs = read_inputs(tmp_path / "eval_info.json", options=TableOptions(labels=labels))
    assert inputs.returns.mean() == 3.0
    columns = {"episode_return": "success"}
    inputs = read_inputs(tmp_path / "eval_info.json", options=TableOptions(labels=labels, columns=columns))
    assert inputs.returns.mean() == 0.5


def test_a_folder_of_monitor_files_is_read(tmp_path):
    gymnasium = pytest.importorskip("gymnasium")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    for seed in (1, 2, 3):
        folder = tmp_path / "logs" / "ppo" / f"CartPole-v1_{seed}"
        env = monitor.Monitor(gymnasium.make("CartPole-v1"), str(folder / "0"))
        for episode in range(3):
            env.reset(seed=seed * 10 + episode)
            while not any(env.step(episode % 2)[2:4]):
                pass
        env.close()
    results = gapfloor.analyse(
        tmp_path / "logs", labels={"rule": "sampled", "level_set": "train"}, floor="registry", step="last"
    )
    (row,) = results.floor_comparisons
    assert (row.game, row.agent, row.n, row.call) == ("CartPole-v1", "ppo", 3, "below")
    assert any("the last 100 episodes" in problem.what for problem in results.problems)


@pytest.mark.fast
def test_files_of_a_folder_with_other_columns_are_refused_in_a_sentence(tmp_path):
    for seed, first in ((1, "1.5"), (2, "much")):
        folder = tmp_path / "logs" / f"seed={seed}"
        folder.mkdir(parents=True)
        (folder / "monitor.csv").write_text(f'#{{"env_id": "x"}}\nr,l,t\n{first},20,0.5\n')
    with pytest.raises(UsageError, match="do not have the same columns"):
        read_table(tmp_path / "logs", TableOptions())


def test_a_score_that_no_float_can_hold_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(f'{{"impala": [[1{"0" * 400}, 2], [3, 4]]}}')
    with pytest.raises(UsageError, match="cannot be read"):
        read_table(path, TableOptions())


def test_a_table_that_declares_too_many_rows_is_refused_before_it_is_read(tmp_path):
    n = 1_000_000
    columns = {name: pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, dtype=np.int8)), pa.array(["x"]))
               for name in ("game", "agent", "seed", "rule", "level_set")}  # fmt: skip
    piece = pa.table({**columns, "episode_return": pa.array(np.zeros(n))})
    with pq.ParquetWriter(tmp_path / "bomb.parquet", piece.schema) as writer:
        for _ in range(51):
            writer.write_table(piece)
    with pytest.raises(UsageError, match="51,000,000 rows or more"):
        read_source(tmp_path / "bomb.parquet")


@pytest.mark.fast
@pytest.mark.parametrize("shape", [(1, 30_000_000), (30_000_000, 1)])
def test_a_matrix_of_more_games_or_scores_than_a_benchmark_has_is_refused(tmp_path, shape):
    path = tmp_path / "scores.npz"
    np.savez_compressed(path, impala=np.zeros(shape, np.uint8))
    with pytest.raises(UsageError, match="at most 1,000 games"):
        read_table(path, TableOptions())


def test_an_archive_that_declares_too_much_is_refused(tmp_path):
    path = tmp_path / "bomb.eval"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("header.json", "w") as file,
    ):
        for _ in range(260):
            file.write(b" " * (1 << 20))
    with pytest.raises(UsageError, match="unpacks to 272,629,760 bytes"):
        read_source(path)
