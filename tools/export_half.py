"""Small copies of trained runs, for publication: float16 weights and the training log.

    python tools/export_half.py STORE/runs/RUN... --out agents

A copy is a different checkpoint (rounding changes the logits), so it has its own content hash and names the
original's in its header. Evaluation computes in float32, as for every checkpoint.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch

from gapfloor.errors import GapfloorError, UsageError
from gapfloor.records.atomic import write_atomically
from gapfloor.training.checkpoint import read_checkpoint, write_weights


def export_half(run: Path, out: Path) -> Path:
    """Write a float16 copy of a finished run below `out`; returns its checkpoint."""
    original = read_checkpoint(run / "checkpoint.safetensors")
    header = dict(original.header)
    if header["iteration"] < header["n_updates"]:
        done = f"{header['iteration']} of {header['n_updates']} updates"
        raise UsageError(f"{run.name} has done {done}: finish it first.")
    tensors = {name: torch.tensor(array).to(torch.float16) for name, array in original.arrays.items()}
    header["rounded_from"] = header["content_hash"]
    target = out / run.name / "checkpoint.safetensors"
    write_weights(target, tensors, header)

    def copy_log(partial: Path) -> None:
        shutil.copyfile(run / "log.parquet", partial)

    write_atomically(target.with_name("log.parquet"), copy_log)
    return target


def main(arguments: Sequence[str] | None = None) -> None:
    """Export the runs named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args(arguments)
    try:
        for run in chosen.runs:
            export_half(run, chosen.out)
    except GapfloorError as error:
        parser.exit(2, f"gapfloor: {error}\n")


if __name__ == "__main__":
    main()
