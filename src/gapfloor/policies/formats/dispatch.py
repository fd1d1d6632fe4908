"""From a parsed line to a policy: the format's loader, then what comes before the network."""

from __future__ import annotations

from gapfloor.errors import GapfloorError, PolicyError
from gapfloor.plugins import find_plugin, refuse_plugin
from gapfloor.policies.formats.preprocessing import prepare
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.protocol import Policy, StatefulPolicy, wrap
from gapfloor.users_code import in_users_words


def load_policy(spec: PolicySpec, *, device: str = "cpu") -> Policy | StatefulPolicy:
    """The policy of a file, e.g. that of `PolicySpec.parse("sb3:model.zip,framestack=4")`."""
    spec.file()
    policy, rest = _load(spec, device)
    if spec.kind in ("onnx", "statedict"):
        from gapfloor.policies.formats.stated_distribution import with_stated_distribution

        policy = with_stated_distribution(policy, spec)
    return prepare(policy, rest)


def _load(spec: PolicySpec, device: str) -> tuple[Policy | StatefulPolicy, PolicySpec]:
    """The policy, and the line with the options that are still to be applied."""
    # Imported here because each loader needs a library of its own.
    if spec.kind in ("sb3", "recurrent"):
        from gapfloor.policies.formats.sb3 import load_sb3

        return load_sb3(spec, device=device), spec
    if spec.kind == "onnx":
        from gapfloor.policies.formats.onnx import load_onnx

        return load_onnx(spec, device=device), spec
    if spec.kind == "statedict":
        from gapfloor.policies.formats.module import load_state_dict_policy

        return load_state_dict_policy(spec, device=device)
    if spec.kind == "cleanrl":
        from gapfloor.policies.formats.cleanrl import load_cleanrl

        return load_cleanrl(spec, device=device)
    return _load_plugin(spec, device), spec


def _load_plugin(spec: PolicySpec, device: str) -> Policy | StatefulPolicy:
    """The policy that another package's loader reads."""
    load = find_plugin("policy_formats", spec.kind)
    if not callable(load):
        raise refuse_plugin("policy_formats", spec.kind, "it is not a function")
    try:
        return wrap(load(spec, device=device), device=device)
    except GapfloorError:
        raise
    except Exception as error:
        raise PolicyError(
            f"The plugin '{spec.kind}' could not read {spec.path}: {in_users_words(error)}"
        ) from error
