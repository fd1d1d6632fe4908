"""`gapfloor sweep`, `training-curve` and `compare` as a user meets them."""

import json

import pyarrow.csv as pa_csv
import pytest

from command_line import document_of, run

SMALL = ["--episodes", "16", "--draws", "0", "--workers", "1"]
SWEEP = ["sweep", "small_policies:linear", "--game", "fruitbot", "--agent", "linear"]


@pytest.mark.fast
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["sweep", "small_policies:linear"], "Missing option '--game'"),
        ([*SWEEP, "--temperatures", "0,warm"], "is not a list of temperatures"),
        ([*SWEEP, "--temperatures", "1"], "two or more temperatures"),
        ([*SWEEP, "--temperatures", "-1,1"], "temperature -1 is out of range"),
        ([*SWEEP, "--temperatures", "0,1,1"], "The rule 'sampled' is named twice"),
        (["sweep", "small_policies:linear", "--game", "conrun"], "did you mean coinrun"),
        (["sweep", "gone.safetensors", "--game", "coinrun"], "There is no checkpoint"),
        ([*SWEEP, "--batch", "0"], "argument batch of the function in Python"),
        (["training-curve"], "Missing argument"),
        (["over-training", "nowhere"], "nowhere is not a run's folder"),
        (["compare"], "Missing argument"),
        (["compare", "small_policies:linear"], "name the two agents, e.g. impala and fpn"),
        (["compare", "x.csv", "--agents", "impala"], "does not name two agents"),
        (["compare", "x.csv", "--agents", "impala,fpn"], "There is no store or file at x.csv"),
        (["compare", "runs/*a*", "runs/*b*"], "is not a store or a table of episodes"),
        (["compare", "small_policies:linear", "small_policies:other_linear"], "gapfloor evaluate POLICY"),
        (["compare", "a.csv", "b.csv", "--detect", "0"], "The difference to detect is 0"),
        (["compair", "a", "b"], "did you mean compare"),
    ],
)  # fmt: skip
def test_a_mistake_gets_one_sentence_exit_2_and_no_file(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert words in err
    assert out == ""
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_sweep_prints_a_table_writes_a_figure_and_the_same_json(capsys, tmp_path):
    arguments = [
        *SWEEP,
        "--temperatures",
        "0,0.5,1",
        "--store",
        str(tmp_path / "store"),
        *SMALL,
    ]
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    for words in ("temperature:0.5", "entropy test", "uniform", "as entropy falls", "one checkpoint"):
        assert words in out
    folder = tmp_path / "store" / "results" / "sweep" / "fruitbot-easy-linear-s1"
    endings = (".pdf", ".svg", ".png", ".txt", ".json")
    assert {path.name for path in folder.iterdir()} == {f"sweep{ending}" for ending in endings}
    status, out, err = run(capsys, *arguments, "--json")
    document = document_of(out)
    assert document == json.loads((folder / "sweep.json").read_text())
    assert err == ""
    assert [gap["at"] for gap in document["gaps"]] == [0, 0.5, 1]


@pytest.mark.fast
def test_compare_reads_an_episode_file(capsys, tmp_path, episode_rows):
    import pyarrow as pa

    path = tmp_path / "episodes.csv"
    pa_csv.write_csv(pa.Table.from_pylist(episode_rows), path)
    arguments = ["compare", str(path), "--agents", "a,b", "--rules", "greedy"]
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    for words in ("coinrun", "heist", "by level", "runs each needed", "a - b"):
        assert words in out
    assert "sampled " not in out
    status, out, _ = run(capsys, *arguments, "--json", "--out", str(tmp_path / "out"))
    document = document_of(out)
    assert document == json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert {row["quantity"] for row in document["rows"]} == {"train", "test", "gap"}
    # Two runs of each agent are described, not called.
    assert {row["decision"]["call"] for row in document["rows"]} == {"not tested"}


@pytest.mark.fast
def test_an_argument_that_only_python_has_is_named(capsys):
    status, _, err = run(capsys, *SWEEP, "--slots", "4")
    assert status == 2
    assert "it is the argument slots of the function in Python" in err
