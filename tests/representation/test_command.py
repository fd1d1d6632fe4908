"""`gapfloor cka` as a user meets it, and what the report makes of it."""

import json
import os
import shutil
from pathlib import Path

import pytest

import gapfloor
from command_line import run
from gapfloor.errors import UsageError
from gapfloor.report.cka import read_cka

#: 64 rows per level set; geo16 is recorded because the other geometry has 16 slots.
SMALL = ["--geometry", "8x8", "--other-geometry", "16x4", "--permutations", "20"]


@pytest.fixture(scope="module")
def store(tmp_path_factory, runs):
    """A store measured once, from Python."""
    store = tmp_path_factory.mktemp("store")
    gapfloor.cka(runs, geometry="8x8", other_geometry="16x4", permutations=20, store=store, progress=False)
    return store


def test_a_record_holds_the_run_its_null_and_its_controls(store):
    records = read_cka(store / "results" / "cka")
    assert [(record.game, record.agent, record.seed, record.budget) for record in records] == [
        ("starpilot", "fpn", "1", "8M"),
        ("starpilot", "impoola", "1", "8M"),
    ]
    for record in records:
        assert (record.n, record.n_control, record.permutations) == (64, 32, 20)
        values = [getattr(record, name) for name in ("as_computed", "perm_mean", "A", "B", "C", "D", "geo16")]
        assert all(0 < value < 1 for value in values)
        assert record.z == pytest.approx((record.as_computed - record.perm_mean) / record.perm_sd)
        assert record.perm_mean == pytest.approx(record.analytic, abs=5 * record.perm_sd / 20**0.5)
        assert 1 <= record.pr <= 63


def test_json_is_one_document_and_the_same_command_measures_nothing_again(capsys, store, runs):
    before = {path: path.read_bytes() for path in (store / "results" / "cka").iterdir()}
    code, out, err = run(capsys, "cka", *runs, *SMALL, "--store", store, "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert [record["agent"] for record in document["records"]] == ["impoola", "fpn"]
    code, out, err = run(capsys, "cka", *runs, *SMALL, "--store", store)
    assert "..." not in err  # nothing was under way
    assert {path: path.read_bytes() for path in (store / "results" / "cka").iterdir()} == before


def test_measuring_again_gives_the_same_bytes_and_another_draw_other_ones(capsys, store, runs, tmp_path):
    arguments = ["cka", runs[0], *SMALL, "--store"]
    name = f"results/cka/{runs[0].name}.json"
    assert run(capsys, *arguments, tmp_path / "again")[0] == 0
    assert (tmp_path / "again" / name).read_bytes() == (store / name).read_bytes()
    small = {"geometry": "8x8", "other_geometry": "16x4", "permutations": 20, "progress": False}
    gapfloor.cka(runs[0], **small, draw=1, store=tmp_path / "again")
    assert (tmp_path / "again" / name).read_bytes() != (store / name).read_bytes()


def test_words_say_what_the_control_found(capsys, store, runs):
    code, out, _ = run(capsys, "cka", runs[0], *SMALL, "--store", store)
    assert code == 0
    assert "does not measure generalization" in out
    assert "x A; shuffling divides A by" in out
    assert "Trained for 0 of 8,000,000 steps." in out


def test_the_report_prints_the_table_and_the_numbers(capsys, store, runs, tmp_path):
    root = tmp_path / "store"
    shutil.copytree(store, root)
    for each in runs:
        code, _, err = run(
            capsys, "evaluate", each, "--game", "starpilot", "--rules", "sampled", "--draws", "0", "--episodes", "2",
            "--slots", "2", "--batch", "2", "--workers", "1", "--store", root,
        )  # fmt: skip
        assert code == 0, err
    code, _, err = run(capsys, "report", root, "--out", tmp_path / "report", "--formats", "tex,csv")
    assert code == 0, err
    table = (tmp_path / "report" / "tables" / "ckacontrol.tabular.tex").read_text()
    rows = [line.split("&") for line in table.splitlines() if line.startswith("starpilot")]
    by_agent = {record.agent: record for record in read_cka(root / "results" / "cka")}
    assert len(rows) == 2
    for row in rows:
        record = next(by_agent[agent] for agent in by_agent if agent.lower() in row[1].lower())
        printed = [float(cell.replace("\\", "")) for cell in row[2:]]
        order = ("as_computed", "perm_mean", "analytic", "A", "C", "B", "D", "pr")
        assert printed == pytest.approx([getattr(record, name) for name in order], abs=0.051)
        assert printed[:7] == pytest.approx([getattr(record, name) for name in order[:7]], abs=0.00051)
    numbers = (tmp_path / "report" / "numbers.tex").read_text()
    for key in (
        "ctl.z.min",
        "ctl.starpilot.collapse.max",
        "d4.raw",
        "d4.analytic.s1",
        "geo16.impoola.factor",
    ):
        assert key in numbers


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.safetensors"], "no checkpoint"),
        (["RUN", "RUN"], "same content"),
        (["RUN", "--geometry", "64"], "SLOTSxSTEPS"),
        (["RUN", "--other-geometry", "16x16"], "must agree"),
        (["RUN", "--permutations", "1"], "at least 2"),
        (["RUN", "--draw", "1"], "it is the argument draw of the function in Python"),
    ],
)
def test_a_mistake_is_one_sentence_and_nothing_is_written(
    capsys, runs, tmp_path, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "cka", *(runs[0] if word == "RUN" else word for word in arguments))
    assert code == 2
    assert out == ""
    assert message in err
    assert os.listdir(".") == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"test": "100:300"}, "share the levels 100:200"),
        ({"test": "5:5"}, "is empty"),
    ],
)
def test_a_mistake_in_python_is_one_sentence_too(runs, tmp_path, settings, message):
    with pytest.raises(UsageError, match=message):
        gapfloor.cka([runs[0]], store=tmp_path, **settings)
    assert os.listdir(tmp_path) == []


def test_two_different_checkpoints_of_one_name_are_refused(capsys, runs, tmp_path, monkeypatch):
    from gapfloor.training.agent import make_agent
    from gapfloor.training.checkpoint import read_header, write_checkpoint

    monkeypatch.chdir(tmp_path)
    header = read_header(runs[0] / "checkpoint.safetensors")
    agent = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=9)
    write_checkpoint(Path("other.safetensors"), agent, header)
    code, _, err = run(capsys, "cka", runs[0], "other.safetensors")
    assert code == 2
    assert "are both starpilot-easy-impoola-8M-s1" in err
