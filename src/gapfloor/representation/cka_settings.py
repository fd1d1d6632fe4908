"""Everything about a measurement of CKA that is not in the checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.errors import UsageError
from gapfloor.levels import LevelSet
from gapfloor.levels.draws import check_draw
from gapfloor.representation.recording import Geometry
from gapfloor.rules.rule import parse_rule

#: The collection of the paper's table, its other geometry ("geo16"), and its held-out levels.
GEOMETRY = Geometry(64, 16)
OTHER_GEOMETRY = Geometry(16, 64)
TEST_LEVELS = LevelSet(1000, 1100)

Pairs = Literal["encoders", "all", "none"]


@dataclass(frozen=True, kw_only=True)
class CkaSettings:
    """How observations are collected and compared, the same for every checkpoint."""

    geometry: Geometry = GEOMETRY
    other_geometry: Geometry | None = OTHER_GEOMETRY
    """The second collection, with the same number of rows; None to leave it out."""
    train: LevelSet | None = None
    """None for the levels that the checkpoint was trained on."""
    test: LevelSet = TEST_LEVELS
    rule: str = "sampled"
    draw: int = 0
    permutations: int = 200
    seed: int = 0
    """Seed of shuffles and exchanges."""
    pairs: Pairs = "encoders"
    """Which checkpoints of a game, mode and budget are compared on identical observations: those of different
    encoders with the same seed, all, or none."""

    def __post_init__(self) -> None:
        parse_rule(self.rule).bind(None)  # refuse a rule that needs action classes: there are none here
        check_draw(self.draw)
        if self.permutations < 2:
            raise UsageError(f"--permutations {self.permutations} gives no null: use at least 2.")
        if self.other_geometry is not None and self.other_geometry.rows != self.geometry.rows:
            raise UsageError(
                f"The geometries {self.geometry} and {self.other_geometry} hold {self.geometry.rows} and "
                f"{self.other_geometry.rows} rows: CKA depends on the number of rows, so they must agree."
            )

    def to_dict(self) -> dict[str, Any]:
        """The settings as a file records them; each checkpoint records its own training levels."""
        return {
            "geometry": str(self.geometry),
            "other_geometry": str(self.other_geometry) if self.other_geometry else None,
            "test": str(self.test), "rule": self.rule, "draw": self.draw, "permutations": self.permutations,
            "shuffle_seed": self.seed,
        }  # fmt: skip
