"""What this machine can do, and whether an environment keeps the engine contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gapfloor.engines.contract import Contract, check_contract
from gapfloor.engines.doctor import DoctorFinding, examine
from gapfloor.engines.engine import Option
from gapfloor.errors import UsageError
from gapfloor.tables.cells import counted
from gapfloor.tables.readable import ReportResult

#: The games that are tried on this machine.
DOCTOR_GAMES = ("coinrun", "starpilot", "dodgeball")


@dataclass(frozen=True, repr=False)
class Diagnosis(ReportResult):
    """What was found on this machine."""

    row_names = ("findings",)

    findings: tuple[DoctorFinding, ...]
    """One per subject."""

    @property
    def failed(self) -> tuple[DoctorFinding, ...]:
        """Promises that an engine does not keep here."""
        return tuple(finding for finding in self.findings if finding.mark == "FAILED")

    @property
    def failure(self) -> str:  # type: ignore[override]
        """How many promises do not hold; empty where all do."""
        return f"{counted(len(self.failed), 'check')} failed: see above." if self.failed else ""

    def __repr__(self) -> str:
        return "\n".join(f"{each.mark:8} {each.subject}: {each.words}" for each in self.findings)


def doctor(game: str | None = None, *, options: Mapping[str, Option] | None = None) -> Diagnosis | Contract:
    """Check this machine, or an environment against the engine contract.

    Without a game: what is installed, which engines there are, and whether they keep their promises here. The exit code
    of the command is 1 if something fails that every measurement needs.

    Args:
        game: The environment to check: gym:ID, envpool:ID, package.module:make or a game of ProcGen (default: check
            this machine).
        options: Options of the environment, e.g. size=8 or wrapper=package.module:Wrapper.

    Returns:
        One finding per subject, whose `failed` has the promises that do not hold; or one clause per part of the engine
        contract, whose `failures` has the needed parts that do not hold.

    Command line:
        gapfloor doctor
        gapfloor doctor gym:MiniGrid-FourRooms-v0
        gapfloor doctor gym:FrozenLake-v1 --option is_slippery=false
        gapfloor doctor mypackage.envs:make

    Examples:
        >>> import gapfloor
        >>> gapfloor.doctor("gym:CartPole-v1").failures
        ()
    """
    if game is not None:
        return check_contract(game, options=options)
    if options:
        raise UsageError("Options are those of an environment: name the environment too.")
    return Diagnosis(tuple(examine(DOCTOR_GAMES)))
