"""CPU time of one inference of an IMPALA agent: the checkpoint in torch, against its export in ONNX Runtime.

    OMP_NUM_THREADS=1 python benchmarks/inference_speed.py agents/starpilot-easy-impala-100k-s1 --batch 32

Both run on one thread, on the same observations and turn about; the least time of each is taken, since what other
processes take away only ever adds.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from gapfloor.policies.formats.onnx_export import export_checkpoint
from gapfloor.policies.load import PolicySource


def cpu_time(policy: Any, observations: np.ndarray, repeats: int) -> float:
    """Milliseconds of CPU time a batch."""
    start = time.process_time()
    for _ in range(repeats):
        policy.logits(observations)
    return (time.process_time() - start) / repeats * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", help="a run's folder")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    observations = np.random.default_rng(0).integers(0, 256, (options.batch, 64, 64, 3), dtype=np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "model.onnx"
        export_checkpoint(options.run, exported)
        policies = {
            "torch": PolicySource(options.run).load(),
            "onnxruntime": PolicySource(f"onnx:{exported}").load(),
        }
        logits = [policy.logits(observations) for policy in policies.values()]
        least = dict.fromkeys(policies, np.inf)
        for _ in range(options.rounds):
            for name, policy in policies.items():
                least[name] = min(least[name], cpu_time(policy, observations, options.repeats))
    for name, milliseconds in least.items():
        print(f"{name:12} {milliseconds:6.2f} ms CPU a batch of {options.batch}")
    print(f"largest difference of a logit: {np.abs(logits[0] - logits[1]).max():.1e}")


if __name__ == "__main__":
    main()
