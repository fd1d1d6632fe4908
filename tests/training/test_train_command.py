"""`gapfloor train` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import exit_code
from gapfloor.records.store import Store
from gapfloor.training.checkpoint import read_header


def run(*arguments: str, command: str = "train") -> int:
    return exit_code(command, *arguments)


def test_train_resumes_or_says_that_it_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = (
        "coinrun", "--encoder", "impoola", "--seed", "2", "--steps", "256", "--envs", "1", "--train", "0:50",
        "--threads", "1", "--store", str(tmp_path),
    )  # fmt: skip
    assert run(*command) == 0
    first = capsys.readouterr()
    assert "in-loop return" in first.err
    assert "floor about" in first.err
    assert "Next: gapfloor evaluate" in first.out
    assert run(*command) == 0
    assert "coinrun-easy-impoola-256-s2 is done (256 steps)" in capsys.readouterr().out
    assert run(*command, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    header = read_header(Path(document["checkpoint"]))
    assert (header["levels"], header["hyperparameters"]["environments"]) == ("0:50", 1)
    assert document["fingerprint"] == header["content_hash"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("starpilt",), "did you mean starpilot?"),
        (("starpilot", "--encoder", "fnp"), "did you mean fpn?"),
        (("starpilot", "--steps", "10"), "10 steps are fewer than one rollout"),
        (("starpilot", "--train", "9:9"), "is empty"),
        (("starpilot", "--device", "cuda"), "no CUDA device"),
        (("starpilot", "--threads", "0"), "The number of threads is 0"),
        (("starpilot", "--envs", "0"), "`environments` is 0"),
    ],
)
def test_wrong_use_is_one_sentence_exit_2_and_nothing_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    assert run(*arguments, "--store", str(tmp_path / "store")) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "store").exists()


def test_evaluate_takes_what_train_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = ("--store", str(tmp_path))
    training = ("--encoder", "fpn", "--steps", "256", "--envs", "1", "--seed", "7", "--threads", "1")
    assert run("starpilot", *training, "--json", *store) == 0
    trained = json.loads(capsys.readouterr().out)
    small = (
        "--rules",
        "sampled",
        "--draws",
        "0",
        "--episodes",
        "2",
        "--slots",
        "2",
        "--batch",
        "2",
        "--workers",
        "1",
    )
    folder = str(Path(trained["checkpoint"]).parent)
    assert run(folder, "--game", "starpilot", *small, *store, command="evaluate") == 0
    records = Store(tmp_path).cell_records().to_pylist()
    mine = [record for record in records if not record["reference"]]
    assert {(r["agent"], r["seed"], r["budget"], r["policy"]) for r in mine} == {
        ("fpn", 7, "256", trained["fingerprint"])
    }
    assert run(folder, "--game", "heist", *small, *store, command="evaluate") == 2
    assert "starpilot" in capsys.readouterr().err
