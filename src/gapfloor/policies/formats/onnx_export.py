"""A gapfloor checkpoint as an ONNX file, for ONNX Runtime here or anywhere else.

The file is the graph that gapfloor itself runs: it reads uint8 observations `[n, height, width, channels]`, returns
logits, and contains the checkpoint's header. It counts as another policy than the checkpoint.
"""

from __future__ import annotations

import json
from pathlib import Path

from gapfloor.errors import PolicyError
from gapfloor.policies.encoder_graphs import agent_graph, has_graph
from gapfloor.policies.formats.inference import missing_library
from gapfloor.policies.formats.onnx import METADATA
from gapfloor.policies.load import checkpoint_path
from gapfloor.records.atomic import write_bytes_atomically
from gapfloor.training.checkpoint_file import read_checkpoint

#: The fields of a checkpoint's header that the file contains.
KEPT = ("game", "mode", "encoder", "seed", "budget", "content_hash", "blind")


def export_checkpoint(run: str | Path, path: str | Path) -> None:
    """Write the agent of a run's folder or checkpoint to `path`."""
    try:
        import onnx
    except ImportError as error:
        raise missing_library(error) from None
    checkpoint = read_checkpoint(checkpoint_path(run))
    header = checkpoint.header
    if not has_graph(header):
        raise PolicyError(f"Only torch can run the encoder {header['encoder']}, so {run} cannot be exported.")
    model = onnx.ModelProto.FromString(agent_graph(checkpoint.arrays, header, path=checkpoint.path))
    entry = model.metadata_props.add()
    entry.key, entry.value = METADATA, json.dumps({key: header[key] for key in KEPT if key in header})
    write_bytes_atomically(Path(path), model.SerializeToString())
