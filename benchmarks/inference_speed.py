"""CPU time of one inference of an IMPALA agent in several libraries, and how far their logits are from torch's.

    OMP_NUM_THREADS=1 python benchmarks/inference_speed.py agents/starpilot-easy-impala-100k-s1 [--batch 16]

All run on one thread, on the same observations and in turn; the least time of each is taken, since other processes can
only add time. Per library: milliseconds per frame, GFLOP/s (61 million operations per frame), the largest difference
of a logit from torch, and whether the logits of a row are the same bits with fewer rows next to it. A library that is
not installed, or fails, is named. gapfloor itself uses the first two only.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import winograd_libraries
from gapfloor.policies.formats.onnx_export import export_checkpoint
from gapfloor.policies.load import PolicySource, checkpoint_path
from gapfloor.training.checkpoint import load_agent
from gapfloor.training.checkpoint_file import read_checkpoint

#: Operations of one forward pass on a frame of 64 x 64 pixels.
MFLOP = 61.0

Infer = Callable[[np.ndarray], np.ndarray]


def torch_eager(run: str, frames: np.ndarray) -> Infer:
    return PolicySource(run, backend="torch").load().logits  # type: ignore[no-any-return]


def onnx_runtime(run: str, frames: np.ndarray) -> Infer:
    return PolicySource(run, backend="onnxruntime").load().logits  # type: ignore[no-any-return]


def torch_frozen(run: str, frames: np.ndarray) -> Infer:
    """TorchScript, frozen, with the fusions of the oneDNN graph."""
    import torch

    torch.jit.enable_onednn_fusion(True)
    agent, example = _agent(run), torch.from_numpy(frames)
    with torch.no_grad():
        traced = torch.jit.freeze(torch.jit.trace(agent, example))
    return _in_torch(traced)


def torch_compiled(run: str, frames: np.ndarray) -> Infer:
    """torch.compile with constant weights."""
    import torch
    import torch._inductor.config

    torch._inductor.config.freezing = True
    return _in_torch(torch.compile(_agent(run)))


def openvino(run: str, frames: np.ndarray) -> Infer:
    """OpenVINO in float32; by itself it would choose bf16 where the processor has it."""
    import openvino as ov

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        export_checkpoint(run, path)
        core = ov.Core()
        settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": 1}
        model = core.compile_model(core.read_model(path), "CPU", settings)
    return lambda observations: np.array(model(observations)[0])


def _agent(run: str) -> Any:
    return load_agent(read_checkpoint(checkpoint_path(Path(run)))).eval()


def _in_torch(network: Any) -> Infer:
    import torch

    def infer(observations: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            logits: np.ndarray = network(torch.from_numpy(observations))[0].numpy()
        return logits

    return infer


LIBRARIES: dict[str, Callable[[str, np.ndarray], Infer]] = {
    "torch, channels last": torch_eager,
    "ONNX Runtime": onnx_runtime,
    "torch.jit, frozen, oneDNN graph": torch_frozen,
    "torch.compile, frozen": torch_compiled,
    "OpenVINO, float32": openvino,
    "ncnn, float32, Winograd": winograd_libraries.ncnn,
    "MNN, float32, Winograd": winograd_libraries.mnn,
}


def cpu_time(infer: Infer, frames: np.ndarray, repeats: int) -> float:
    """Milliseconds of CPU time per frame."""
    start = time.process_time()
    for _ in range(repeats):
        infer(frames)
    return (time.process_time() - start) / repeats / len(frames) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", help="a run's folder")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    frames = np.random.default_rng(0).integers(0, 256, (options.batch, 64, 64, 3), dtype=np.uint8)
    ready: dict[str, Infer] = {}
    for name, make in LIBRARIES.items():
        try:
            infer = make(options.run, frames)
            infer(frames)
            ready[name] = infer
        except Exception as error:
            print(f"{name}: not measured ({type(error).__name__}: {str(error).splitlines()[0]})")
    least = dict.fromkeys(ready, np.inf)
    for _ in range(options.rounds):
        for name, infer in ready.items():
            least[name] = min(least[name], cpu_time(infer, frames, options.repeats))
    first = next(iter(ready.values()))(frames)
    print("| library | ms per frame | GFLOP/s | largest difference | same bits with fewer rows |")
    print("|---|---:|---:|---:|---|")
    for name, infer in ready.items():
        logits = infer(frames)
        difference = np.abs(logits - first).max()
        same = all(np.array_equal(infer(frames[:rows].copy()), logits[:rows]) for rows in (1, 3, 7))
        print(
            f"| {name} | {least[name]:.2f} | {MFLOP / least[name]:.0f} | {difference:.1e} | {'yes' if same else 'no'} |"
        )


if __name__ == "__main__":
    main()
