"""Where a policy comes from: a gapfloor checkpoint, another library's file, a factory, or an object in memory.

A source can be sent to another process, which then loads the policy itself. Loading never runs what is in a file
(`formats` reads those of other libraries); a factory is the user's own code, named by the user.
"""

from __future__ import annotations

import functools
import importlib
import os
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from gapfloor.errors import PolicyError, shortened
from gapfloor.input_files import check_input_file
from gapfloor.policies.acting import ActingPolicy, acting_policy
from gapfloor.policies.formats.spec import (
    ACTING,
    CHECKPOINT,
    FACTORY,
    FORMATS,
    HUB,
    RANDOM_WEIGHTS,
    UNKNOWN,
    PolicySpec,
    meaning_of,
)
from gapfloor.policies.policy import Policy, StatefulPolicy, as_policy
from gapfloor.users_code import (
    clean_arguments,
    in_users_words,
    named_callable,
    parameters_of,
    required_parameters,
)

_NOTHING = PolicySpec(UNKNOWN, Path())


@dataclass(frozen=True)
class PolicySource:
    """A policy by name, or (`given`) an object that stays in this process."""

    name: str
    """What the user typed, or what messages call the policy."""
    device: str = "cpu"
    given: Any = None
    backend: str | None = None
    """The library for networks (`backends`); None leaves the choice to gapfloor."""
    spec: PolicySpec = _NOTHING
    """What the name means; read from it unless it is given."""

    def __post_init__(self) -> None:
        """Read the name, once."""
        if self.spec is _NOTHING and self.given is None:
            object.__setattr__(self, "spec", meaning_of(self.name))

    @classmethod
    def named(
        cls, name: str | Path | PolicySource, *, device: str = "cpu", backend: str | None = None
    ) -> PolicySource:
        """The source of a name or a path; a path is never read as a line with a prefix and options."""
        if isinstance(name, PolicySource):
            return replace(name, device=device, backend=backend)
        return cls(str(name), device, backend=backend, spec=meaning_of(name))

    @property
    def is_checkpoint(self) -> bool:
        """Whether the policy is a checkpoint file or a run's folder."""
        return self.spec.kind == CHECKPOINT

    @property
    def runs_no_code(self) -> bool:
        """Whether nothing but a file's content computes the logits: no code of a user or of another library."""
        return self.spec.kind in (CHECKPOINT, RANDOM_WEIGHTS, "onnx")

    def acting(self) -> PolicySource:
        """The same policy under the rule own: a function is then one from an observation to an action."""
        if self.given is not None:
            if isinstance(self.given, ActingPolicy) or hasattr(self.given, "logits"):
                return self
            return replace(self, given=acting_policy(self.given, name=self.name))
        if self.spec.kind == FACTORY:
            return replace(self, spec=replace(self.spec, kind=ACTING))
        return self

    def fetched(self) -> PolicySource:
        """The same with a file on this machine, if it is one on the Hub: every worker then reads the same file."""
        if self.spec.kind != HUB:
            return self
        from gapfloor.policies.formats.hugging_face import fetch_policy

        return replace(self, spec=fetch_policy(self.spec))

    def load(self) -> Policy | StatefulPolicy:
        """The policy itself, loaded once: what was checked and hashed is also what plays in this process."""
        return self._loaded

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: another process loads the policy itself."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @functools.cached_property
    def _loaded(self) -> Policy | StatefulPolicy:
        if self.given is not None:
            return as_policy(self.given, device=self.device)
        kind = self.spec.kind
        if kind == HUB:
            return self.fetched().load()
        if kind == CHECKPOINT:
            from gapfloor.policies.checkpoint import load_network

            return load_network(checkpoint_path(self.spec.path), device=self.device, backend=self.backend)  # type: ignore[no-any-return]
        if kind == RANDOM_WEIGHTS:
            from gapfloor.policies.checkpoint import load_random_weights

            return load_random_weights(self.name, device=self.device, backend=self.backend)  # type: ignore[no-any-return]
        if kind == ACTING:
            # A function that acts, or one that makes what acts.
            name = str(self.spec.path)
            found = named_callable(name, what="policy", error=PolicyError, kind="factory ")
            if required_parameters(found)[:1] not in ([], ["device"]):
                return cast(Policy, acting_policy(found, name=name))
            make = functools.partial(_call_factory, name, self.device)
            return cast(Policy, ActingPolicy(make, name=name))
        if kind == FACTORY:
            return as_policy(_call_factory(self.name, self.device), device=self.device)
        from gapfloor.policies.formats.preprocessing import prepare

        spec = self.spec.recognised() if kind == UNKNOWN else self.spec
        check_input_file(spec.path, error=PolicyError)
        # Imported here because each loader needs a library of its own.
        module, _, function = FORMATS[spec.kind].loader.partition(":")
        load = getattr(importlib.import_module(f"gapfloor.policies.formats.{module}"), function)
        options = {"backend": self.backend} if spec.kind == "sb3" else {}
        return prepare(load(spec, device=self.device, **options), spec)


def checkpoint_path(name: str | Path) -> Path:
    """The checkpoint file that `name` means: a file, or a run's folder that holds one."""
    path = Path(name)
    if os.path.isdir(path):
        path = path / "checkpoint.safetensors"
    if not os.path.isfile(path):
        raise PolicyError(
            f"There is no checkpoint at {shortened(str(path))}: give the path of a .safetensors file that exists."
        )
    return path


def _call_factory(name: str, device: str) -> Any:
    factory = named_callable(name, what="policy", error=PolicyError, kind="factory ")
    try:
        with clean_arguments(name.partition(":")[0]):
            return factory(device=device) if "device" in parameters_of(factory) else factory()
    except Exception as error:
        raise PolicyError(f"The factory {name} failed: {in_users_words(error)}") from error
