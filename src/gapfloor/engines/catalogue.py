"""The engines that gapfloor knows: their names, packages, install commands and limits, from `data/engines.toml`.

The registry, the error for a missing engine, and `gapfloor doctor` all read these facts.
What the games of ProcGen are and how many actions they have is in `gapfloor.engines.procgen`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.shipped import shipped


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """One engine, whether or not it is installed; `data/engines.toml` says what the fields are."""

    name: str
    """The name that cells record."""
    title: str
    module: str
    prefix: str
    package: str
    extra: str
    games: str
    wheels: str = ""
    never_clones: bool = False
    """Whether the engine can save no state at all."""

    @property
    def install_command(self) -> str:
        """The command that installs it."""
        return f'pip install "gapfloor[{self.extra}]"'

    def installed_version(self) -> str:
        """The installed version of its package; otherwise the error says how to install it."""
        version = package_version(self.package)
        if version is None:
            raise MissingExtraError(f"{self.title} is not installed: {self.install_command}{self.wheels}.")
        return version

    def check_version(self, measured: str, installed: str) -> None:
        """Refuse a specification that was made with another version."""
        if measured != installed:
            raise UsageError(
                f"This was made with {self.title} {measured} and {installed} is installed: install that version, or "
                "measure again in another --store."
            )


#: The wheel with ProcGen's engine for Python 3.11 and 3.12; later ones have procgen-gym.
MIRROR = "procgen-mirror"

ENGINES: Mapping[str, EngineFacts] = {
    name: EngineFacts(name=name, **facts) for name, facts in shipped("data/engines.toml")["engines"].items()
}
GYMNASIUM, ENVPOOL = ENGINES["gymnasium"], ENGINES["envpool"]
PROCGEN = ENGINES["procgen"]
if sys.version_info >= (3, 13):
    PROCGEN = replace(PROCGEN, package="procgen-gym")
    ENGINES = {**ENGINES, PROCGEN.name: PROCGEN}


@functools.cache
def package_version(package: str) -> str | None:
    """The version of an installed package; None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
