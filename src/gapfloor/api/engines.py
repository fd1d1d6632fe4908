"""Whether environments keep the engine contract, which engines there are, and what this machine can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gapfloor.engines.catalogue import InstalledEngine, installed_engines
from gapfloor.engines.contract import check_contract
from gapfloor.engines.contract_results import Contract
from gapfloor.engines.doctor import DoctorFinding, examine
from gapfloor.engines.engine import Option
from gapfloor.text_tables import ReadableResult, ReportResult, TextTable

#: The games that `doctor` tries.
DOCTOR_GAMES = ("coinrun", "starpilot", "dodgeball")


@dataclass(frozen=True, repr=False)
class EngineList(ReadableResult):
    """Every engine that gapfloor knows, installed or not."""

    row_names = ("engines",)

    engines: tuple[InstalledEngine, ...]
    """One per engine."""

    def table(self) -> TextTable:
        """How games are named, and whether the engine is installed."""
        return ["engine", "games", "here"], [[each.name, each.games, each.words] for each in self.engines]


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

    def __repr__(self) -> str:
        return "\n".join(f"{each.mark:8} {each.subject}: {each.words}" for each in self.findings)


def engines_check(game: str, *, options: Mapping[str, Option] | None = None) -> Contract:
    """Which parts of the engine contract an environment keeps.

    Args:
        game: `gym:ID`, `package.module:make`, or a game of another engine.
        options: Options of the environment, e.g. `{"size": 8}`.

    Returns:
        One clause per part; `failures` has the needed parts that do not hold.

    Examples:
        >>> import gapfloor
        >>> contract = gapfloor.engines_check("gym:CartPole-v1")
        >>> contract.failures
        ()
    """
    return check_contract(game, options=options)


def engines_list() -> EngineList:
    """The engines, how their games are named, and whether they are installed here.

    Returns:
        One row per engine.

    Examples:
        >>> import gapfloor
        >>> [engine.name for engine in gapfloor.engines_list().engines][:3]
        ['procgen', 'gymnasium', 'envpool']
    """
    return EngineList(tuple(installed_engines()))


def doctor(games: str | Sequence[str] = DOCTOR_GAMES) -> Diagnosis:
    """What is installed on this machine, and whether the engines keep their promises here.

    Args:
        games: Games to check, or `all`.

    Returns:
        One finding per subject; `failed` has the promises that do not hold.

    Examples:
        >>> import gapfloor
        >>> found = gapfloor.doctor("maze")
        >>> found.failed
        ()
    """
    named = games.split(",") if isinstance(games, str) else list(games)
    return Diagnosis(tuple(examine(named)))
