"""Which engines are installed here (`gapfloor engines list`, `gapfloor doctor`)."""

from __future__ import annotations

import importlib.metadata
from dataclasses import asdict, dataclass
from typing import Any

#: engine, its package, how its games are named, the command that installs it, what it cannot do.
_ENGINES = (
    ("procgen", "procgen-mirror", "starpilot", 'pip install "gapfloor[procgen]"', ""),
    ("gymnasium", "gymnasium", "gym:ID or package.module:make", 'pip install "gapfloor[gymnasium]"', ""),
    ("envpool", "envpool", "envpool:starpilot", "pip install envpool", "no cloning, so no calibration"),
)

#: Packages of environments that are worth naming where they are installed.
FAMILIES = ("minigrid", "crafter", "ale-py", "highway-env", "nle", "jumanji", "craftax")


@dataclass(frozen=True)
class InstalledEngine:
    """One engine, as it is found on this machine."""

    name: str
    package: str
    version: str | None
    games: str
    words: str

    def to_dict(self) -> dict[str, Any]:
        """The engine as JSON values."""
        return asdict(self)


def installed_engines() -> list[InstalledEngine]:
    """Every engine that gapfloor knows, installed or not."""
    found = []
    for name, package, games, command, limits in _ENGINES:
        version = version_of(package)
        words = f"not installed: {command}" if version is None else f"{package} {version}"
        if version is not None and name == "gymnasium":
            families = [f"{each} {version_of(each)}" for each in FAMILIES if version_of(each)]
            words += f" with {', '.join(families)}" if families else ""
        found.append(
            InstalledEngine(name, package, version, games, f"{words} ({limits})" if limits else words)
        )
    return found


def version_of(package: str) -> str | None:
    """The version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
