"""What `gapfloor doctor` examines: the platform, installed packages, and whether the engines keep their contract."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gapfloor.engines.contract import check_contract
from gapfloor.engines.engine import ENGINES, ENVPOOL, GYMNASIUM, PROCGEN, EngineFacts, package_version
from gapfloor.errors import MissingExtraError
from gapfloor.machine import available_cores
from gapfloor.settings import shipped


@dataclass(frozen=True)
class DoctorFinding:
    """One line of the doctor's report."""

    mark: Literal["ok", "note", "missing", "FAILED"]
    subject: str
    words: str


def examine(games: Sequence[str]) -> list[DoctorFinding]:
    """The whole report: this machine, then the games in each of the two engines that play ProcGen."""
    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    found = [DoctorFinding("ok", "platform", f"{system}, {available_cores()} cores")]
    known = shipped("data/engines.toml")
    for package, extra, purpose in known["optional_packages"]:
        version = package_version(package)
        words = f'not installed; needed for {purpose}: pip install "gapfloor[{extra}]"'
        words = f"{version} ({purpose})" if version else words
        found.append(DoctorFinding("ok" if version else "missing", package, words))
    found.append(examine_gpu(_cuda_device()))
    for facts in ENGINES.values():
        version = package_version(facts.package)
        words = f"{facts.package} {version}" if version else f"not installed: {facts.install_command}"
        if version and facts is GYMNASIUM:
            names = known["gymnasium"]["packages"]
            present = [f"{name} {of_package}" for name in names if (of_package := package_version(name))]
            words += f" with {', '.join(present)}" if present else ""
        words += " (no cloning, so no calibration)" if facts.never_clones else ""
        words += f"; its games are written {facts.games}"
        found.append(DoctorFinding("ok" if version else "missing", f"engine {facts.name}", words))
    return [*found, *examine_engine(PROCGEN, games), *examine_engine(ENVPOOL, games)]


def examine_engine(engine: EngineFacts, games: Sequence[str]) -> list[DoctorFinding]:
    """Whether games keep the engine contract: what is broken or worth a note, and one line for what holds."""
    findings: list[DoctorFinding] = []
    for game in games:
        name = game if engine is PROCGEN else f"{engine.prefix}:{game}"
        try:
            contract = check_contract(name)
        except MissingExtraError as error:
            return [DoctorFinding("missing", engine.name, str(error))]
        held = sum(clause.mark == "holds" for clause in contract.clauses)
        words = f"{held} of {len(contract.clauses)} parts of the engine contract hold"
        findings.append(DoctorFinding("ok", name, f"{words} (gapfloor doctor {name} lists them)"))
        for clause in contract.clauses:
            if clause.mark != "holds":
                mark: Literal["FAILED", "note"] = "FAILED" if clause.mark == "BROKEN" else "note"
                findings.append(DoctorFinding(mark, name, f"{clause.name}: {clause.words}"))
    return findings


def examine_gpu(device: str | None) -> DoctorFinding:
    """What is promised on this machine's GPU: nothing of gapfloor has been run on one."""
    if device is None:
        words = "none is seen by torch; networks run on the CPU, where every promise is tested"
        return DoctorFinding("ok", "GPU", words)
    words = (
        f"{device}: --device cuda has never been run. Cells of a GPU have keys of their own and actions are drawn on "
        "the CPU; that the same seeds give the same bytes is promised on CPUs only"
    )
    return DoctorFinding("note", "GPU", words)


def _cuda_device() -> str | None:
    """The name of the first CUDA device; None without torch or without a device."""
    try:
        import torch
    except ImportError:
        return None
    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_available() else None
