"""Policies: the protocol, the references that know nothing, and loaders."""

from gapfloor.policies.policy import Policy, StatefulPolicy
from gapfloor.policies.references import Reference, parse_reference

__all__ = ["Policy", "Reference", "StatefulPolicy", "parse_reference"]
