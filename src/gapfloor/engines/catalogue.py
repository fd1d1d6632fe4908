"""The engines that gapfloor knows: their names, packages, install commands and limits, each written once.

The registry, the error for a missing engine, and `gapfloor doctor` all read these facts.
What the games of ProcGen are and how many actions they have is in `gapfloor.engines.procgen`.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gapfloor.errors import MissingExtraError, UsageError
from gapfloor.plugins import plugin_names


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """One engine, whether or not it is installed."""

    name: str
    """The name that cells record."""
    title: str
    """The name in sentences."""
    module: str
    """The module with the functions of `gapfloor.engines.registry.EngineModule`."""
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


@dataclass(frozen=True)
class InstalledEngine:
    """One engine, as it is found on this machine."""

    name: str
    """Its name."""
    package: str
    """The package that brings the engine."""
    version: str | None
    """The engine's version."""
    games: str
    """How its games are written on the command line."""
    words: str
    """Whether it is installed here, and what it cannot do."""

    def to_dict(self) -> dict[str, Any]:
        """The engine as JSON values."""
        return asdict(self)


def installed_engines() -> list[InstalledEngine]:
    """Every engine that gapfloor knows, installed or not, and those of other packages."""
    added = [
        InstalledEngine(name, "", None, f"{name}:GAME", "added by another package")
        for name in plugin_names("engines")
        if name not in ENGINES
    ]
    return [*(_look_up(facts) for facts in ENGINES.values()), *added]


def package_version(package: str) -> str | None:
    """The version of an installed package; None where it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _look_up(facts: EngineFacts) -> InstalledEngine:
    version = package_version(facts.package)
    if version is None:
        words = f"not installed: {facts.install_command}"
    else:
        words = f"{facts.package} {version}"
        environments = _environment_packages() if facts is GYMNASIUM else []
        words += f" with {', '.join(environments)}" if environments else ""
    limits = " (no cloning, so no calibration)" if facts.never_clones else ""
    return InstalledEngine(facts.name, facts.package, version, facts.games, f"{words}{limits}")


def _environment_packages() -> list[str]:
    versions = {package: package_version(package) for package in ENVIRONMENT_PACKAGES}
    return [f"{package} {version}" for package, version in versions.items() if version]
