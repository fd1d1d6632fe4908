"""A gapfloor checkpoint as an ONNX file, for ONNX Runtime here or anywhere else.

    python -m gapfloor.policies.formats.onnx_export RUN --out model.onnx
    gapfloor evaluate onnx:model.onnx --game starpilot --rules sampled,greedy

The file reads uint8 observations `[n, height, width, channels]`, gives logits and values, and carries the
checkpoint's header. It is another policy than the checkpoint: its logits differ in the last bits.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from gapfloor.errors import GapfloorError
from gapfloor.policies.formats.inference import missing_library, require_torch
from gapfloor.policies.formats.onnx import METADATA
from gapfloor.policies.load import checkpoint_path

#: What of a checkpoint's header the file carries.
KEPT = ("game", "mode", "encoder", "seed", "budget", "content_hash", "blind")


def export_checkpoint(run: str | Path, path: str | Path) -> None:
    """Write the agent of a run's folder or checkpoint to `path`."""
    torch = require_torch("cpu")
    try:
        import onnx
    except ImportError as error:
        raise missing_library(error) from None
    from gapfloor.records.atomic import write_bytes_atomically
    from gapfloor.training.checkpoint import load_agent, read_checkpoint

    checkpoint = read_checkpoint(checkpoint_path(str(run)))
    agent = load_agent(checkpoint).eval()
    header = checkpoint.header
    example = torch.zeros(2, *header["observation_shape"], dtype=torch.uint8)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # The tracing exporter is the one that needs no further package; the agent has no control flow.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            agent,
            (example,),
            buffer,
            dynamo=False,
            input_names=["observations"],
            output_names=["logits", "values"],
            dynamic_axes={"observations": {0: "n"}, "logits": {0: "n"}, "values": {0: "n"}},
        )
    model = onnx.load_from_string(buffer.getvalue())
    entry = model.metadata_props.add()
    entry.key, entry.value = METADATA, json.dumps({key: header[key] for key in KEPT if key in header})
    write_bytes_atomically(Path(path), model.SerializeToString())


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a gapfloor checkpoint as an ONNX file."""
    parser = argparse.ArgumentParser(
        prog="python -m gapfloor.policies.formats.onnx_export", description=main.__doc__
    )
    parser.add_argument("run", help="a run's folder or a .safetensors checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="the .onnx file to write")
    options = parser.parse_args(arguments)
    try:
        export_checkpoint(options.run, options.out)
    except GapfloorError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
