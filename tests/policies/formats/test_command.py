"""`gapfloor evaluate` on other libraries' files, as it is typed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from command_line import exit_code

SMALL = (
    "--train", "0:20", "--test", "100:120", "--draws", "0", "--episodes", "4", "--slots", "2", "--batch", "4",
    "--workers", "1",
)  # fmt: skip


run = partial(exit_code, "evaluate")


@pytest.mark.parametrize("name", ["ppo", "recurrent"])
def test_a_model_is_measured_under_both_rules_by_one_line(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = request.getfixturevalue(name)
    line = (
        f"sb3:{saved.path},key=image", "--game", "gym:MiniGrid-Empty-Random-5x5-v0", "--rules", "sampled,greedy",
        "--store", str(tmp_path), "--json", *SMALL,
    )  # fmt: skip
    assert run(*line) == 0
    document = json.loads(capsys.readouterr().out)
    text = json.dumps(document)
    assert "greedy" in text
    assert "sampled" in text
    assert {"ppo": "sb3-mlp", "recurrent": "recurrent-mlp"}[name] in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sb3:no/such/model.zip", "There is no file no/such/model.zip"),
        ("onnx:no/such/model.onnx", "There is no file no/such/model.onnx"),
        ("sb3:{model},frames=4", "Unknown option of sb3: 'frames'"),
        ("{model},frames=4", "Unknown option of sb3: 'frames'"),
    ],
)
def test_a_wrong_line_ends_in_one_sentence_and_writes_nothing(
    line: str, words: str, ppo: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    policy = line.format(model=ppo.path)
    assert run(policy, "--game", "coinrun", "--rules", "greedy", "--store", str(store), *SMALL) == 2
    err = capsys.readouterr().err
    assert words in " ".join(err.split())
    assert "Traceback" not in err
    assert not store.exists()
