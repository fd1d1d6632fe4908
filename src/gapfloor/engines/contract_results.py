"""What the contract check reports: one clause for each part of the engine contract."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from gapfloor.text_tables import ReportResult


@dataclass(frozen=True)
class Clause:
    """One part of the contract and whether it holds."""

    name: str
    """Its name."""
    mark: Literal["holds", "note", "BROKEN"]
    """holds, note (worth knowing, but no problem) or BROKEN."""
    words: str
    """What was tried and seen."""
    is_needed: bool = True
    """Whether measuring is impossible without it."""

    @property
    def is_failure(self) -> bool:
        """Whether the environment cannot be measured because of it."""
        return self.is_needed and self.mark == "BROKEN"

    def to_dict(self) -> dict[str, Any]:
        """The clause as JSON values."""
        return {**asdict(self), "is_failure": self.is_failure}


@dataclass(frozen=True, repr=False)
class Contract(ReportResult):
    """What was found about one environment."""

    row_names = ("clauses",)

    game: str
    """The game, or the environment's name."""
    version: str
    """The engine and its version; empty where the environment could not be made."""
    clauses: tuple[Clause, ...]
    """One entry per part of the contract."""

    @property
    def failures(self) -> tuple[Clause, ...]:
        """Needed parts that do not hold."""
        return tuple(clause for clause in self.clauses if clause.is_failure)

    def to_dict(self) -> dict[str, Any]:
        """The findings as JSON values."""
        clauses = [clause.to_dict() for clause in self.clauses]
        return {"game": self.game, "version": self.version, "holds": not self.failures, "clauses": clauses}

    def __repr__(self) -> str:
        lines = [f"{self.game}" + (f" ({self.version})" if self.version else "")]
        lines += [f"{clause.mark:7} {clause.name}: {clause.words}" for clause in self.clauses]
        return "\n".join(
            lines if self.failures else [*lines, f"The contract holds: gapfloor floor {self.game}"]
        )
