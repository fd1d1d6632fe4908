"""Where a policy comes from: a gapfloor checkpoint, another library's file, a factory, or an object in memory.

A source can be sent to another process, which then loads the policy itself. Loading a checkpoint never runs
what is in it, and another library's file (`sb3:model.zip`; see `formats`) is unpickled only if the line says so; a
factory is the user's own code, named by the user.
"""

from __future__ import annotations

import inspect
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.hugging_face import PREFIX as HUB
from gapfloor.policies.formats.hugging_face import local_line
from gapfloor.policies.formats.recognise import suggest_line
from gapfloor.policies.formats.spec import PolicySpec
from gapfloor.policies.protocol import Policy, StatefulPolicy, wrap
from gapfloor.policies.random_weights import PREFIX as RANDOM_WEIGHTS
from gapfloor.policies.random_weights import load_random_weights
from gapfloor.users_code import clean_arguments, in_users_words, named_callable


@dataclass(frozen=True)
class PolicySource:
    """A policy by name, or (`given`) an object that stays in this process."""

    name: str
    device: str = "cpu"
    given: Any = None
    backend: str | None = None
    """The library for networks of ours (`backends`); None leaves the choice to gapfloor."""

    @property
    def is_checkpoint(self) -> bool:
        """Whether the name is that of a checkpoint file or a run's folder."""
        return self.given is None and (
            self.name.endswith((".safetensors", ".weights")) or os.path.isdir(self.name)
        )

    @property
    def is_own_network(self) -> bool:
        """Whether the policy is one of our networks, which several backends can compute."""
        is_checkpoint = self.is_checkpoint and not PolicySpec.matches(self.name)
        return is_checkpoint or (self.given is None and self.name.startswith(f"{RANDOM_WEIGHTS}:"))

    @property
    def is_pure_function(self) -> bool:
        """Whether nothing but a file's content computes the logits: no code of a user or of another library."""
        return self.is_own_network or (self.given is None and self.name.startswith("onnx:"))

    @property
    def stays_here(self) -> bool:
        """Whether the policy cannot be loaded by another process."""
        return self.given is not None

    def load(self) -> Policy | StatefulPolicy:
        """The policy itself."""
        if self.given is not None:
            return wrap(self.given, device=self.device)
        if self.name.startswith(HUB):
            return replace(self, name=local_line(self.name)).load()
        if self.is_checkpoint and not PolicySpec.matches(self.name):
            from gapfloor.policies.checkpoint import load_network

            return load_network(checkpoint_path(self.name), device=self.device, backend=self.backend)  # type: ignore[no-any-return]
        if self.name.startswith(f"{RANDOM_WEIGHTS}:"):
            return load_random_weights(self.name, device=self.device, backend=self.backend)  # type: ignore[no-any-return]
        if PolicySpec.matches(self.name):
            from gapfloor.policies.formats.dispatch import load_policy

            return load_policy(self.name, device=self.device)
        if ":" in self.name and not os.path.lexists(self.name):
            return wrap(_call_factory(self.name, self.device), device=self.device)
        raise PolicyError(suggest_line(self.name))


def checkpoint_path(name: str) -> Path:
    """The checkpoint file that `name` means: a file, or a run's folder that holds one."""
    path = Path(name)
    if os.path.isdir(path):
        path = path / "checkpoint.safetensors"
    if not os.path.isfile(path):
        raise PolicyError(
            f"There is no checkpoint at {_shortened(str(path))}: give the path of a .safetensors file that exists."
        )
    return path


def _shortened(text: str, most: int = 200) -> str:
    return repr(text[:most] + "...") if len(text) > most or "\0" in text else text


def _call_factory(name: str, device: str) -> Any:
    factory = named_callable(name, what="policy", error=PolicyError, kind="factory ")
    try:
        takes_device = "device" in inspect.signature(factory).parameters
        with clean_arguments(name.partition(":")[0]):
            return factory(device=device) if takes_device else factory()
    except Exception as error:
        raise PolicyError(f"The factory {name} failed: {in_users_words(error)}") from error
