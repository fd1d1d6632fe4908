"""Small copies of trained runs, for publication: float16 weights and the training log.

    python tools/export_half.py STORE/runs/RUN... --out agents [--history]

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


def export_half(run: Path, out: Path, *, history: bool = False) -> Path:
    """Write a float16 copy of a finished run below `out`, with the checkpoints of its history if asked for."""
    header = read_checkpoint(run / "checkpoint.safetensors").header
    if header["iteration"] < header["n_updates"]:
        done = f"{header['iteration']} of {header['n_updates']} updates"
        raise UsageError(f"{run.name} has done {done}: finish it first.")
    target = out / run.name
    _round(run / "checkpoint.safetensors", target / "checkpoint.safetensors")
    for kept in sorted((run / "history").glob("*.weights")) if history else ():
        _round(kept, target / "history" / kept.name)

    def copy_log(partial: Path) -> None:
        shutil.copyfile(run / "log.parquet", partial)

    write_atomically(target / "log.parquet", copy_log)
    return target / "checkpoint.safetensors"


def _round(source: Path, target: Path) -> None:
    original = read_checkpoint(source)
    tensors = {name: torch.tensor(array).to(torch.float16) for name, array in original.arrays.items()}
    header = {**original.header, "rounded_from": original.header["content_hash"]}
    write_weights(target, tensors, header)


def main(arguments: Sequence[str] | None = None) -> None:
    """Export the runs named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--history", action="store_true", help="also the checkpoints kept during training")
    chosen = parser.parse_args(arguments)
    try:
        for run in chosen.runs:
            export_half(run, chosen.out, history=chosen.history)
    except GapfloorError as error:
        parser.exit(2, f"gapfloor: {error}\n")


if __name__ == "__main__":
    main()
