"""The engines that gapfloor knows: their names, packages, install commands and limits, each written once.

The registry, the error for a missing engine, and `gapfloor doctor` all read these facts.
What the games of ProcGen are and how many actions they have is in `gapfloor.engines.procgen`.
"""

from __future__ import annotations

import functools
import importlib.metadata
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from gapfloor.errors import MissingExtraError, UsageError


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """One engine, whether or not it is installed."""

    name: str
    """The name that cells record."""
    title: str
    """The name in sentences."""
    module: str
    """The module with its functions `make_spec` and `engine_from_spec`."""
    prefix: str
    """What stands before the colon in the name of one of its games."""
    package: str
    """The package on PyPI that holds it."""
    extra: str
    """The extra of gapfloor that installs the package."""
    games: str
    """How its games are written on the command line."""
    wheels: str = ""
    """Where the package installs, and what to do elsewhere; empty: everywhere."""
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

PROCGEN = EngineFacts(
    name="procgen", title="The ProcGen engine", module="gapfloor.engines.procgen", prefix="procgen",
    package=MIRROR if sys.version_info < (3, 13) else "procgen-gym", extra="procgen", games="starpilot",
    wheels=" (wheels exist for Python 3.11 to 3.13 on Linux x86-64, and for 3.13 on Windows); elsewhere install "
    "gapfloor[envpool] and write envpool: before a game's name, e.g. envpool:coinrun",
)  # fmt: skip
GYMNASIUM = EngineFacts(
    name="gymnasium", title="Gymnasium", module="gapfloor.engines.gymnasium.engine", prefix="gym",
    package="gymnasium", extra="gymnasium", games="gym:ID or package.module:make",
)  # fmt: skip
ENVPOOL = EngineFacts(
    name="envpool", title="EnvPool", module="gapfloor.engines.envpool", prefix="envpool", package="envpool",
    extra="envpool", games="envpool:starpilot", never_clones=True,
)  # fmt: skip

ENGINES: Mapping[str, EngineFacts] = {facts.name: facts for facts in (PROCGEN, GYMNASIUM, ENVPOOL)}

#: Packages with Gymnasium environments that are worth naming where they are installed.
ENVIRONMENT_PACKAGES = ("minigrid", "crafter", "ale-py", "highway-env", "nle", "jumanji", "craftax")


def installed_engines() -> list[tuple[str, str | None, str]]:
    """Every engine, installed or not: name, version, and what to know about it."""
    found = []
    for facts in ENGINES.values():
        version = package_version(facts.package)
        words = f"{facts.package} {version}" if version else f"not installed: {facts.install_command}"
        if version and facts is GYMNASIUM:
            packages = ((name, package_version(name)) for name in ENVIRONMENT_PACKAGES)
            present = [f"{name} {of_package}" for name, of_package in packages if of_package]
            words += f" with {', '.join(present)}" if present else ""
        words += " (no cloning, so no calibration)" if facts.never_clones else ""
        found.append((facts.name, version, f"{words}; its games are written {facts.games}"))
    return found


@functools.cache
def package_version(package: str) -> str | None:
    """The version of an installed package; None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
