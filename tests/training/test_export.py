import numpy as np
import pytest

torch = pytest.importorskip("torch")

from export_half import export_half  # noqa: E402
from gapfloor.errors import UsageError  # noqa: E402
from gapfloor.policies.checkpoint import load_network  # noqa: E402
from gapfloor.training.agent import make_agent  # noqa: E402
from gapfloor.training.checkpoint import read_header, write_checkpoint  # noqa: E402
from gapfloor.training.spec import TrainingSpec  # noqa: E402


def write_run(folder, iteration):
    spec = TrainingSpec(game="coinrun", encoder="impoola", seed=1, steps=8192)
    agent = make_agent("impoola", observation_shape=(64, 64, 3), n_actions=15, seed=1)
    header = {
        **spec.to_dict(), "iteration": iteration, "steps": iteration * 4096, "observation_shape": [64, 64, 3],
        "n_actions": 15, "versions": {},
    }  # fmt: skip
    write_checkpoint(folder / spec.run / "checkpoint.safetensors", agent, header)
    (folder / spec.run / "log.parquet").write_bytes(b"log")
    return folder / spec.run


def test_a_copy_is_half_the_size_with_nearly_the_same_logits_and_its_own_hash(tmp_path):
    run = write_run(tmp_path / "runs", iteration=2)
    copy = export_half(run, tmp_path / "agents")
    assert copy.stat().st_size < 0.6 * (run / "checkpoint.safetensors").stat().st_size
    original, small = (load_network(path, backend="torch") for path in (run / "checkpoint.safetensors", copy))
    assert small.fingerprint != original.fingerprint
    assert small.header["rounded_from"] == original.fingerprint
    frames = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), dtype=np.uint8)
    assert np.allclose(small.logits(frames), original.logits(frames), atol=2e-3)
    assert (copy.parent / "log.parquet").read_bytes() == b"log"


def test_the_checkpoints_of_the_history_are_rounded_too_where_asked_for(tmp_path):
    run, earlier = write_run(tmp_path / "runs", iteration=2), write_run(tmp_path / "earlier", iteration=1)
    (run / "history").mkdir()
    (earlier / "checkpoint.safetensors").rename(run / "history" / "0000004096.weights")
    assert not (export_half(run, tmp_path / "without").parent / "history").exists()
    small = export_half(run, tmp_path / "agents", history=True).parent / "history" / "0000004096.weights"
    assert small.stat().st_size < 0.6 * (run / "history" / small.name).stat().st_size
    assert read_header(small)["rounded_from"] == read_header(run / "history" / small.name)["content_hash"]


def test_an_unfinished_run_is_not_shipped(tmp_path):
    run = write_run(tmp_path / "runs", iteration=1)
    with pytest.raises(UsageError, match="has done 1 of 2 updates"):
        export_half(run, tmp_path / "agents")
