"""ONNX files as policies, run by ONNX Runtime: `onnx:model.onnx`.

An ONNX file is a graph of operators and numbers; nothing is unpickled and no library of custom operators is
loaded. Observations are cast to the type that the graph declares, and images are transposed if it declares
channels first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from gapfloor.errors import PolicyError, UsageError
from gapfloor.policies.formats.content_hash import extend_hash
from gapfloor.policies.formats.inference import missing_library
from gapfloor.policies.formats.network_form import NetworkForm
from gapfloor.policies.formats.onnx_file import not_onnx, read_onnx
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.graph import GraphPolicy

#: The key of the metadata under which files that gapfloor 0.2 exported say what is known of the run.
METADATA = "gapfloor"


def load_onnx(spec: PolicySpec, *, device: str) -> tuple[GraphPolicy, PolicySpec]:
    """The policy of an ONNX file."""
    try:
        import onnxruntime
    except ImportError as error:
        raise missing_library(error) from None
    path, form = spec.path, NetworkForm.of(spec)
    provider = "CPUExecutionProvider" if device == "cpu" else "CUDAExecutionProvider"
    if provider not in onnxruntime.get_available_providers() or not device.startswith(("cpu", "cuda")):
        raise UsageError(f"ONNX Runtime cannot use the device '{device}' here: use --device cpu.")
    file = read_onnx(path)
    content = form.extend(extend_hash(file.content_hash, form=form.describe()))
    try:
        policy = GraphPolicy(
            file.content,
            name=path.stem,
            header={},
            fingerprint=content,
            form=form,
            device=device,
            is_ours=False,
        )
    except PolicyError:
        raise
    except Exception as error:
        raise not_onnx(path, error) from None
    policy.header = _header(policy.metadata.get(METADATA))
    return policy, spec


def _header(metadata: str | None) -> Mapping[str, Any]:
    try:
        header = json.loads(metadata) if metadata else None
    except ValueError:
        header = None
    return header if isinstance(header, dict) else {"encoder": "onnx"}
