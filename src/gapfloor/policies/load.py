"""Where a policy comes from: a gapfloor checkpoint, another library's file, a factory, or an object at hand.

A source can be sent to another process, which then loads the policy itself. Loading a checkpoint never runs
what is in it, and another library's file (`sb3:model.zip`; see `loaders`) is unpickled only where the name says so; a
factory is the user's own code, named by the user.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.errors import PolicyError
from gapfloor.policies.formats.spec import LOADERS, PolicySpec
from gapfloor.policies.protocol import Policy, StatefulPolicy, wrap
from gapfloor.policies.random_weights import PREFIX as RANDOM_WEIGHTS
from gapfloor.policies.random_weights import load_random_weights
from gapfloor.users_code import named_callable


@dataclass(frozen=True)
class PolicySource:
    """A policy by name, or (`given`) an object that stays in this process."""

    name: str
    device: str = "cpu"
    given: Any = None

    @property
    def is_checkpoint(self) -> bool:
        """Whether the name is that of a checkpoint file or a run's folder."""
        return self.given is None and (
            self.name.endswith((".safetensors", ".weights")) or Path(self.name).is_dir()
        )

    @property
    def stays_here(self) -> bool:
        """Whether the policy cannot be loaded by another process."""
        return self.given is not None

    def load(self) -> Policy | StatefulPolicy:
        """The policy itself."""
        if self.given is not None:
            return wrap(self.given)
        if self.is_checkpoint:
            from gapfloor.policies.checkpoint import load_checkpoint_policy

            return load_checkpoint_policy(checkpoint_path(self.name), device=self.device)
        if self.name.startswith(f"{RANDOM_WEIGHTS}:"):
            return load_random_weights(self.name, device=self.device)  # type: ignore[no-any-return]
        if PolicySpec.matches(self.name):
            from gapfloor.policies.formats.dispatch import load_policy

            return load_policy(self.name, device=self.device)
        if ":" in self.name and not Path(self.name).exists():
            return wrap(_call_factory(self.name, self.device))
        raise PolicyError(
            f"'{self.name}' is no policy that gapfloor can load: give a .safetensors checkpoint, a run's folder, "
            f"{_likely_form(self.name)}."
        )


#: What a file's ending suggests it is.
_ENDINGS = {
    ".zip": "sb3",
    ".pt": "torchscript",
    ".onnx": "onnx",
    ".pth": "cleanrl",
    ".cleanrl_model": "cleanrl",
}


def _likely_form(name: str) -> str:
    kind = _ENDINGS.get(Path(name.partition(",")[0]).suffix)
    if kind is not None:
        return f"or (as this may be) {kind}:{name}"
    return f"a file as sb3:model.zip ({', '.join(f'{kind}:' for kind in LOADERS)}), or package.module:factory"


def checkpoint_path(name: str) -> Path:
    """The checkpoint file that `name` means: a file, or a run's folder that holds one."""
    path = Path(name)
    if path.is_dir():
        path = path / "checkpoint.safetensors"
    if not path.is_file():
        raise PolicyError(
            f"There is no checkpoint at {path}: give the path of a .safetensors file that exists."
        )
    return path


def _call_factory(name: str, device: str) -> Any:
    factory = named_callable(name, what="policy", error=PolicyError, kind="factory ")
    takes_device = "device" in inspect.signature(factory).parameters
    try:
        return factory(device=device) if takes_device else factory()
    except Exception as error:
        raise PolicyError(f"The factory {name} failed: {type(error).__name__}: {error}") from error
