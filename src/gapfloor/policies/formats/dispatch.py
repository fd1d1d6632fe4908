"""From one line of the command line to a policy: the prefix's loader, then what stood before the network."""

from __future__ import annotations

from gapfloor.policies.formats.preprocessing import prepare
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.protocol import Policy, StatefulPolicy


def load_policy(text: str, *, device: str = "cpu") -> Policy | StatefulPolicy:
    """The policy that `KIND:PATH,option=value` names, as `sb3:model.zip,framestack=4`."""
    spec = PolicySpec.parse(text)
    spec.file()
    return prepare(_load(spec, device), spec)


def _load(spec: PolicySpec, device: str) -> Policy | StatefulPolicy:
    # Imported here: each loader needs a library of its own.
    if spec.kind in ("sb3", "recurrent"):
        from gapfloor.policies.formats.sb3 import load_sb3

        return load_sb3(spec, device=device)
    if spec.kind == "torchscript":
        from gapfloor.policies.formats.torchscript import load_torchscript

        return load_torchscript(spec, device=device)
    if spec.kind == "onnx":
        from gapfloor.policies.formats.onnx import load_onnx

        return load_onnx(spec, device=device)
    from gapfloor.policies.formats.cleanrl import load_cleanrl

    return load_cleanrl(spec, device=device)
