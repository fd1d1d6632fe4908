"""A gapfloor checkpoint as an ONNX file, for ONNX Runtime here or anywhere else.

    python -m gapfloor.policies.formats.onnx_export RUN --out model.onnx
    gapfloor evaluate onnx:model.onnx --game starpilot --rules sampled,greedy

The file reads uint8 observations `[n, height, width, channels]`, returns logits and values, and contains the
checkpoint's header. It counts as another policy than the checkpoint, because its logits differ in the last bits.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from gapfloor.policies.formats.converter import run_converter
from gapfloor.policies.formats.inference import missing_library, require_torch
from gapfloor.policies.formats.onnx import METADATA
from gapfloor.policies.load import checkpoint_path

#: The fields of a checkpoint's header that the file contains.
KEPT = ("game", "mode", "encoder", "seed", "budget", "content_hash", "blind")


def export_checkpoint(run: str | Path, path: str | Path) -> None:
    """Write the agent of a run's folder or checkpoint to `path`."""
    torch = require_torch("cpu")
    try:
        import onnx
    except ImportError as error:
        raise missing_library(error) from None
    from gapfloor.records.atomic import write_bytes_atomically
    from gapfloor.training.checkpoint import load_agent
    from gapfloor.training.checkpoint_file import read_checkpoint

    checkpoint = read_checkpoint(checkpoint_path(str(run)))
    agent = load_agent(checkpoint).eval()
    header = checkpoint.header
    example = torch.zeros(2, *header["observation_shape"], dtype=torch.uint8)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # The tracing exporter needs no further package, and is enough because the agent has no control flow.
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
    return run_converter(parser, arguments, lambda options: export_checkpoint(options.run, options.out))


if __name__ == "__main__":
    sys.exit(main())
