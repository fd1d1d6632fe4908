"""What a verification of a store found, kept in the store and valid only for the cells that it saw.

Hashes show damage, not forgery: whoever edits a return can hash the file again. Episodes that were played again on
the engine show that the recorded returns are real. `gapfloor.api.verify` does both and writes the result here; the
card and the page mention it as long as no cell has changed since.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.json_values import DAMAGED, from_exact, to_exact
from gapfloor.records.atomic import write_text_atomically
from gapfloor.records.stored_cell import StoredCell, canonical_json
from gapfloor.tables.cells import counted
from gapfloor.tables.readable import ReadableResult

SCHEMA = "gapfloor-verification/2"
#: Enough to notice, with a probability of 0.95, that one episode in twenty was altered.
DEFAULT_EPISODES = 60
_PATH = Path("results") / "verification.json"


@dataclass(frozen=True, kw_only=True, repr=False)
class StoreVerification(ReadableResult):
    """The result of a verification."""

    cells: int
    """Cells in the store, whole or not."""
    problems: tuple[str, ...]
    """Every check that failed, in words; empty if the store is as it was recorded."""
    episodes: int
    """Episodes in whole cells."""
    replayable: int
    """Episodes of the cells that can be played again here, of which a sample was."""
    replayed: int
    """Episodes that were played again."""
    replayed_cells: int
    """Cells with at least one of these episodes."""
    recomputed_cells: int
    """Cells that were played completely, so that their entropies and action counts were computed again."""
    not_replayed: tuple[str, ...]
    """Cells of which no episode could be played again, by reason."""
    seed: int
    """The seed that chose the episodes."""
    version: str
    """The version of gapfloor that verified."""
    notes: tuple[str, ...] = ()
    """Why the result is not kept in the store, where it is not."""

    @property
    def is_sound(self) -> bool:
        """Whether every check passed."""
        return not self.problems

    @property
    def failure(self) -> str:  # type: ignore[override]
        """Why the store cannot be trusted; empty where it can."""
        found = counted(len(self.problems), "problem")
        words = f"The store is not what was recorded: {found}. The results of these cells cannot be trusted."
        return "" if self.is_sound else words

    @property
    def noticed_share(self) -> float:
        """The share of altered episodes of which a sample of this size misses all with a probability of 0.05."""
        if not self.replayed:
            return 1.0
        return 1 - 0.05 ** (1 / self.replayed) if self.replayed < self.replayable else 0.0

    @property
    def sentence(self) -> str:
        """What was verified, in one sentence."""
        if not self.is_sound:
            return f"failed: {counted(len(self.problems), 'problem')}, e.g. {self.problems[0]}"
        replays = (
            f"{self.replayed:,} of {self.episodes:,} episodes of {counted(self.replayed_cells, 'cell')} were played "
            f"again and had the recorded returns and lengths (sample seed {self.seed})"
            if self.replayed
            else "no episode was played again"
        )
        rest = self.cells - self.recomputed_cells
        records = (
            f"entropies and action counts of {counted(self.recomputed_cells, 'whole cell')} were computed again and "
            f"were the recorded ones{f', those of the other {rest:,} were not' if rest else ''}"
            if self.recomputed_cells
            else "entropies and action counts were not computed again"
        )
        return (
            f"keys and hashes of {counted(self.cells, 'cell')}; {replays}; {records}; gapfloor {self.version}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The document of `gapfloor verify --json`."""
        return {"is_sound": self.is_sound, **super().to_dict()}

    def sentences(self) -> list[str]:
        """What was checked, what could not be played again, every problem, and what follows."""
        lines = [f"not played again, {reason}" for reason in self.not_replayed]
        if self.problems:
            return [*lines, *(f"problem: {problem}" for problem in self.problems)]
        conclusion = "No problem was found"
        if not self.replayed:
            conclusion += ", but no episode was sampled: returns that were edited and hashed again pass"
        elif self.replayed < self.replayable:
            conclusion += (
                f". If {self.noticed_share:.1%} of the {self.replayable:,} episodes that can be played here had been "
                "altered, this sample would have shown it with a probability of 0.95"
            )
        return [f"Verified: {self.sentence}.", *lines, f"{conclusion}."]


def write_verification(root: Path, verification: StoreVerification, cells: Iterable[StoredCell]) -> None:
    """Keep a result in the store, bound to the cells that were verified."""
    document = {"schema": SCHEMA, "digest": cells_digest(cells), "verification": to_exact(verification)}
    write_text_atomically(root / _PATH, json.dumps(document, indent=1, sort_keys=True) + "\n")


def read_verification(root: Path, cells: Iterable[StoredCell]) -> StoreVerification | None:
    """The result that a store keeps; None if there is none, or if it is about other cells than these."""
    try:
        document = json.loads((root / _PATH).read_text(encoding="utf-8"))
        if document["schema"] != SCHEMA or document["digest"] != cells_digest(cells):
            return None
        return from_exact(StoreVerification, document["verification"])
    except DAMAGED:
        return None


def cells_digest(cells: Iterable[StoredCell]) -> str:
    """The hash of everything that whole cells hold."""
    digest = hashlib.sha256()
    for cell in cells:
        manifest = cell.manifest
        digest.update(f"{cell.path.stem} {manifest.key} {manifest.episodes_sha256} ".encode())
        digest.update(canonical_json([manifest.labels, manifest.record]).encode())
    return digest.hexdigest()
