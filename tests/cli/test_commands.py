"""The command line as a user meets it: output, JSON, and one sentence for each mistake."""

import json

import pytest

from command_line import run, run_python
from gapfloor.cli.commands import COMMANDS

SMALL = ["--episodes", "8", "--slots", "4", "--draws", "0", "--workers", "1"]


@pytest.mark.fast
def test_help_names_every_command_and_imports_nothing_heavy():
    code = (
        "import sys; from gapfloor.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'procgen', 'ray', 'scipy', 'matplotlib'} & set(sys.modules)\n"
        "print('HEAVY', sorted(heavy))"
    )
    done = run_python(code)
    assert "HEAVY []" in done.out
    for words in COMMANDS:
        assert f"\n  {words.split()[0]} " in done.out


@pytest.mark.fast
def test_version(capsys):
    status, out, _ = run(capsys, "--version")
    assert status == 0
    assert out.startswith("gapfloor, version ")


@pytest.mark.fast
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["florr", "coinrun"], "did you mean floor?"),
        (["floor", "coinrnu"], "Unknown game 'coinrnu': did you mean coinrun"),
        (["floor", "coinrun", "--train", "5:5"], "is empty"),
        (["floor", "coinrun", "--train", "0:200", "--test", "100:300"], "share the levels 100:200"),
        (["floor", "coinrun", "--train", "none", "--test", "none"], "train and test are both none"),
        (["floor", "coinrun", "--episodes", "100"], "cannot be shared equally by 16 slots"),
        (["floor", "coinrun", "--slots", "0"], "slots is 0: use at least 1"),
        (["floor", "coinrun", "--draws", "0,x"], "is not a list of draws"),
        (["floor", "coinrun", "--draws", "0,0"], "named twice"),
        (["floor", "coinrun", "--draws", "-1"], "out of range"),
        (["floor", "coinrun", "--mode", "esay"], "did you mean easy"),
        (["floor", "coinrun", "--mode", "extreme"], "coinrun has no extreme mode"),
        (["floor", "coinrun", "--option", "use_backgrounds"], "write NAME=true or NAME=false"),
        (["floor", "coinrun", "--option", "use_background=false"], "did you mean use_backgrounds"),
        (["floor", "coinrun", "--reference", "unifrm"], "did you mean uniform"),
        (["floor"], "Missing argument 'GAME...'"),
        (["evaluate", "small_policies:linear", "--game", "coinrun"], "Missing option '--rules'"),
        (["evaluate", "small_policies:linear", "--game", "coinrun", "--rules", "greddy"], "did you mean greedy"),
        (["evaluate", "small_policies:linear", "--game", "conrun", "--rules", "greedy"], "did you mean coinrun"),
        (["evaluate", "no_such_module:load", "--game", "coinrun", "--rules", "greedy"], "does not import"),
        (["evaluate", "gone.safetensors", "--game", "coinrun", "--rules", "greedy"], "There is no checkpoint"),
        (["evaluate", "small_policies:linear", "--game", "coinrun", "--rules", "greedy", "--seeds", "1,2"], "one seed"),
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


@pytest.mark.fast
def test_a_reference_beyond_the_actions_is_refused(capsys, tmp_path):
    status, _, err = run(
        capsys, "floor", "coinrun", "--reference", "constant:15", "--store", str(tmp_path / "s"), *SMALL
    )
    assert status == 2
    assert "actions go from 0 to 14" in err
    assert not list(tmp_path.glob("s/cells/*"))


@pytest.mark.fast
def test_a_store_that_cannot_be_written_is_named(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    status, _, err = run(capsys, "floor", "coinrun", "--store", str(tmp_path / "file"))
    assert status == 2
    assert "is a file, not a folder" in err


def test_floor_prints_a_table_and_json(capsys, tmp_path):
    arguments = ["floor", "starpilot", "--store", str(tmp_path), *SMALL]
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    assert "starpilot" in out
    assert "uniform" in out
    status, out, err = run(capsys, *arguments, "--json")
    floors = json.loads(out)["floors"]
    assert {"game", "mode", "level_set", "reference", "mean", "sem", "n_episodes", "n_draws"} <= set(
        floors[0]
    )
    assert err == ""


def test_evaluate_prints_train_test_gap_and_floor_and_json(capsys, tmp_path):
    arguments = [
        "evaluate", "small_policies:linear", "--game", "starpilot", "--rules", "sampled,greedy", "--agent", "linear",
        "--budget", "8M", "--store", str(tmp_path), *SMALL,
    ]  # fmt: skip
    status, out, _ = run(capsys, *arguments)
    assert status == 0
    for heading in ("train", "test", "gap", "floor gap", "not tested (1 run)"):
        assert heading in out
    status, out, _ = run(capsys, *arguments, "--json")
    document = json.loads(out)
    assert {"game", "agent", "rule", "level_set", "mean", "sem", "n_episodes"} <= set(document["returns"][0])
    assert {"game", "rule", "gap", "floor_gap"} <= set(document["gaps"][0])
    assert len(document["cells"]) == 6


def test_doctor_finds_the_engine_in_order(capsys):
    status, out, _ = run(capsys, "doctor")
    assert status == 0
    assert "ok       starpilot: 11 of 11 parts of the engine contract hold" in out
    assert "ok       dodgeball: 11 of 11" in out
