"""Runs on the real engine: exact resume after kill -9, equal bytes, refusals, and nothing lost."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from folders import file_hashes

sys.path.insert(0, str(Path(__file__).parent))
from small_run import small_spec, train_small

from gapfloor.errors import CheckFailedError, StoreError, UsageError
from gapfloor.machine import this_place
from gapfloor.policies.load import PolicySource
from gapfloor.records.atomic import PARTIAL
from gapfloor.records.run_identity import read_run_identity
from gapfloor.training import trainer
from gapfloor.training.checkpoint import read_checkpoint, read_header
from gapfloor.training.trainer import Tick

SCRIPT = Path(__file__).parent / "small_run.py"


def start(store: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), str(store), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def files_of(store: Path) -> dict[str, str]:
    """Every file of every run but the empty lock."""
    return file_hashes(store / "runs", without=["lock"])


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    store = tmp_path_factory.mktemp("uninterrupted")
    assert start(store, "1").wait() == 0
    files = files_of(store)
    assert {name.split("/", 1)[1] for name in files} == {
        "checkpoint.safetensors", "log.parquet", "resume/state.safetensors",
    }  # fmt: skip
    return files


def test_a_run_killed_after_an_update_and_resumed_gives_the_same_bytes(
    tmp_path: Path, uninterrupted: dict[str, str]
) -> None:
    assert start(tmp_path, "1", "2").wait() == -9
    assert start(tmp_path, "1").wait() == 0
    assert files_of(tmp_path) == uninterrupted


def test_a_run_killed_in_the_middle_of_an_update_gives_the_same_bytes(
    tmp_path: Path, uninterrupted: dict[str, str]
) -> None:
    process = start(tmp_path, "2")
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) == 3:  # the fourth rollout has begun
            break
    process.kill()
    process.wait()
    assert start(tmp_path, "1").wait() == 0
    assert files_of(tmp_path) == uninterrupted


def test_the_number_of_threads_changes_no_byte(tmp_path: Path, uninterrupted: dict[str, str]) -> None:
    assert start(tmp_path, "2").wait() == 0
    assert files_of(tmp_path) == uninterrupted


def test_another_seed_gives_another_agent_and_the_same_seed_the_same(tmp_path: Path) -> None:
    prints = [
        train_small(tmp_path / str(i), spec=small_spec(seed=seed, updates=2)).fingerprint
        for i, seed in enumerate((1, 1, 2))
    ]
    assert prints[0] == prints[1] != prints[2]


def test_training_moves_every_tensor(tmp_path: Path) -> None:
    kept = train_small(tmp_path, spec=small_spec(updates=2), checkpoint_every=1).checkpoint.parent / "history"
    first, second = (read_checkpoint(path).arrays for path in sorted(kept.iterdir()))
    assert all(not np.array_equal(first[name], second[name]) for name in first)


def test_the_same_command_again_says_that_it_is_done(tmp_path: Path) -> None:
    first = train_small(tmp_path, spec=small_spec(updates=2))
    before = files_of(tmp_path)
    again = train_small(tmp_path, spec=small_spec(updates=2))
    assert (first.updates_done_here, again.updates_done_here) == (2, 0)
    assert again.fingerprint == first.fingerprint
    assert files_of(tmp_path) == before


def test_a_lost_checkpoint_is_written_again_from_the_state(tmp_path: Path) -> None:
    result = train_small(tmp_path, spec=small_spec(updates=2))
    before = files_of(tmp_path)
    result.checkpoint.unlink()
    (
        result.checkpoint.parent / f"{PARTIAL}{this_place()}-999999999-0a1b2c3d-checkpoint.safetensors"
    ).write_bytes(b"half")
    train_small(tmp_path, spec=small_spec(updates=2))
    assert files_of(tmp_path) == before


def test_another_run_under_the_same_name_is_refused(tmp_path: Path) -> None:
    train_small(tmp_path, spec=small_spec(updates=1))
    before = files_of(tmp_path)
    with pytest.raises(StoreError, match=r"learning_rate is 0\.0005 there and 0\.001 here"):
        train_small(tmp_path, spec=small_spec(updates=1, learning_rate=1e-3))
    assert files_of(tmp_path) == before


def test_an_unfinished_run_without_its_state_is_not_overwritten(tmp_path: Path) -> None:
    def stop(tick: Tick) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_small(tmp_path, observe=stop)
    next((tmp_path / "runs").glob("*/resume/state.safetensors")).unlink()
    with pytest.raises(StoreError, match="unfinished checkpoint and no resume state"):
        train_small(tmp_path)


def test_two_processes_do_not_train_one_run(tmp_path: Path) -> None:
    refused: list[str] = []

    def try_again(tick: Tick) -> None:
        if not refused:
            with pytest.raises(StoreError, match="being trained by another process") as caught:
                train_small(tmp_path, spec=small_spec(updates=2))
            refused.append(str(caught.value))

    train_small(tmp_path, spec=small_spec(updates=2), observe=try_again)
    assert len(refused) == 1


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = trainer.update, []

    def poisoned(agent: object, *arguments: object, **options: object) -> dict[str, float]:
        calls.append(1)
        if len(calls) == 3:
            with torch.no_grad():
                agent.policy.bias[0] = float("nan")  # type: ignore[attr-defined]
        return real(agent, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(trainer, "update", poisoned)
    with pytest.raises(CheckFailedError, match="no longer finite"):
        train_small(tmp_path)
    checkpoint = read_checkpoint(next((tmp_path / "runs").glob("*/checkpoint.safetensors")))
    assert checkpoint.header["iteration"] == 2
    assert all(np.isfinite(array).all() for array in checkpoint.arrays.values())
    # Without the poison the same command goes on to the end, as if nothing had happened.
    monkeypatch.setattr(trainer, "update", real)
    resumed = train_small(tmp_path)
    assert resumed.updates_done_here == 3
    assert resumed.fingerprint == train_small(tmp_path / "clean").fingerprint


def test_intermediate_checkpoints_lie_in_history_and_the_run_has_one_checkpoint(tmp_path: Path) -> None:
    result = train_small(tmp_path, checkpoint_every=2)
    folder = result.checkpoint.parent
    assert [path.name for path in sorted((folder / "history").iterdir())] == [
        "0000000128.weights",
        "0000000256.weights",
    ]
    assert [read_header(p)["steps"] for p in sorted((folder / "history").iterdir())] == [128, 256]
    kept = PolicySource(str(folder / "history" / "0000000128.weights")).load()
    assert kept.fingerprint == read_header(folder / "history" / "0000000128.weights")["content_hash"]
    assert [p.relative_to(folder).as_posix() for p in folder.rglob("checkpoint*")] == [
        "checkpoint.safetensors"
    ]


def test_the_log_has_a_row_per_update_and_no_time_host_or_path(tmp_path: Path) -> None:
    result = train_small(tmp_path, spec=small_spec(updates=3))
    table = pq.read_table(result.checkpoint.parent / "log.parquet")
    assert table["iteration"].to_pylist() == [1, 2, 3]
    assert table["steps"].to_pylist() == [64, 128, 192]
    assert set(table["agent"].to_pylist()) == {"impoola"}
    np.testing.assert_allclose(table["entropy_nats"].to_pylist(), np.log(15), atol=0.02)
    assert "in_loop_return" in table.column_names
    assert not [n for n in table.column_names if re.search("time|host|path|second|duration|result", n)]
    header = read_header(result.checkpoint)
    assert not re.search(r"time|host|second|duration", " ".join([*header, *header["hyperparameters"]]))
    assert str(tmp_path) not in str(header)


def test_the_header_says_what_the_weights_are(tmp_path: Path) -> None:
    header = read_header(train_small(tmp_path, spec=small_spec(updates=1, game="heist")).checkpoint)
    asked = ("game", "mode", "levels", "encoder", "seed", "steps", "budget")
    assert [header[name] for name in asked] == ["heist", "easy", "0:200", "impoola", 1, 64, "64"]
    assert header["hyperparameters"]["gae_lambda"] == 0.95
    assert set(header["versions"]) >= {"gapfloor", "torch", "numpy", "procgen"}


def test_times_go_to_the_log_folder(tmp_path: Path) -> None:
    spec = small_spec(updates=1)
    train_small(tmp_path, spec=spec)
    assert "steps_per_second" in (tmp_path / "log" / f"train-{spec.run}.jsonl").read_text()


def test_wrong_settings_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    for options, message in (
        ({"threads": 0}, "The number of threads is 0"),
        ({"checkpoint_every": -1}, "--checkpoint-every is -1"),
        ({"device": "tpu"}, "The device is 'tpu'"),
    ):
        with pytest.raises(UsageError, match=message):
            train_small(tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    def stop(tick: Tick) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_small(tmp_path, observe=stop)
    next((tmp_path / "runs").glob("*/resume/state.safetensors")).write_bytes(b"not a state")
    with pytest.raises(StoreError, match=r"resume state .* cannot be read"):
        train_small(tmp_path)


def test_the_log_of_a_blind_run_names_the_blind_agent(tmp_path: Path) -> None:
    blind = dataclasses.replace(small_spec(updates=1), is_blind=True)
    train_small(tmp_path, spec=blind)
    (path,) = tmp_path.glob("runs/*/log.parquet")
    rows = pq.read_table(path, partitioning=None).to_pylist()
    assert [(row["agent"], row["run"]) for row in rows] == [("impoola_blind", path.parent.name)]
    assert read_run_identity(path.parent) == blind.identity


@pytest.mark.parametrize("place", ["weights", "header"])
def test_a_resume_state_that_was_changed_is_refused(tmp_path, place):
    with pytest.raises(KeyboardInterrupt):
        train_small(tmp_path, observe=_interrupt)
    state = next((tmp_path / "runs").glob("*/resume/state.safetensors"))
    content = bytearray(state.read_bytes())
    if place == "weights":
        content[-100] ^= 1
    else:
        content = content.replace(b'\\"adam_steps\\": 2', b'\\"adam_steps\\": 3')
    assert bytes(content) != state.read_bytes()
    state.write_bytes(content)
    with pytest.raises(StoreError, match="does not match its hash"):
        train_small(tmp_path)


def _interrupt(tick):
    raise KeyboardInterrupt
