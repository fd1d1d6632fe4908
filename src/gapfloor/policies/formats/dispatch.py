"""From a parsed line to a policy: the format's loader, then what comes before the network."""

from __future__ import annotations

import importlib

from gapfloor.errors import GapfloorError, PolicyError
from gapfloor.plugins import find_plugin, refuse_plugin
from gapfloor.policies.formats.preprocessing import prepare
from gapfloor.policies.formats.spec import FORMATS, PolicySpec
from gapfloor.policies.policy import Policy, StatefulPolicy, as_policy
from gapfloor.users_code import in_users_words


def load_policy(spec: PolicySpec, *, device: str = "cpu") -> Policy | StatefulPolicy:
    """The policy of a file, e.g. that of `PolicySpec.parse("sb3:model.zip,framestack=4")`."""
    spec.file()
    known = FORMATS.get(spec.kind)
    if known is None:
        return prepare(_load_plugin(spec, device), spec)
    # Imported here because each loader needs a library of its own.
    module, _, function = known.loader.partition(":")
    load = getattr(importlib.import_module(f"gapfloor.policies.formats.{module}"), function)
    policy, rest = load(spec, device=device)
    return prepare(policy, rest)


def _load_plugin(spec: PolicySpec, device: str) -> Policy | StatefulPolicy:
    """The policy that another package's loader reads."""
    load = find_plugin("policy_formats", spec.kind)
    if not callable(load):
        raise refuse_plugin("policy_formats", spec.kind, "it is not a function")
    try:
        return as_policy(load(spec, device=device), device=device)
    except GapfloorError:
        raise
    except Exception as error:
        raise PolicyError(
            f"The plugin '{spec.kind}' could not read {spec.path}: {in_users_words(error)}"
        ) from error
