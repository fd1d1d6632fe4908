"""bf16 is recorded, gives other weights than float32, and is refused where the machine cannot run it.

The runs are processes of their own, because the variable that keeps torch from using AMX is read when torch starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from gapfloor.training.checkpoint import read_checkpoint, read_header

WITHOUT_AMX = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}


def train(store: Path, precision: str, encoder: str = "impoola") -> Path:
    command = [
        sys.executable, "-m", "gapfloor.cli.main", "train", "starpilot", "--encoder", encoder, "--steps", "512",
        "--envs", "2", "--precision", precision, "--store", str(store),
    ]  # fmt: skip
    done = subprocess.run(command, env=os.environ | WITHOUT_AMX, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return next(store.glob("runs/*/checkpoint.safetensors"))


def test_bf16_is_recorded_and_gives_weights_close_to_those_of_float32(tmp_path: Path) -> None:
    files = {name: train(tmp_path / name, name) for name in ("float32", "bf16")}
    headers = {name: read_header(file)["hyperparameters"] for name, file in files.items()}
    assert "precision" not in headers["float32"]
    assert headers["bf16"] == {**headers["float32"], "precision": "bf16"}
    exact, rounded = (read_checkpoint(files[name]).arrays for name in ("float32", "bf16"))
    assert any(not np.array_equal(exact[name], rounded[name]) for name in exact)
    for name in exact:
        assert rounded[name].dtype == np.float32
        # 24 gradient steps of Adam move a weight by at most about 5e-4 each.
        np.testing.assert_allclose(rounded[name], exact[name], atol=0.024, rtol=0.0)
