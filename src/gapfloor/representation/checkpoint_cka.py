"""One checkpoint's train-versus-test CKA with all of its controls: a row of the paper's table "ckacontrol".

The value alone measures nothing, since its rows are different inputs. It is never given without its null, the 2x2
control and a second collection geometry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gapfloor.engines.engine import EngineSpec
from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.levels import LevelSet
from gapfloor.levels.draws import check_draw
from gapfloor.policies.checkpoint import CheckpointPolicy
from gapfloor.representation.alignment_control import align_controls, align_rows
from gapfloor.representation.linear_similarity import Floats, participation_ratio
from gapfloor.representation.recording import Geometry, Recording, record_play, stream
from gapfloor.representation.shuffled_null import PermutationNull, permutation_null

Tell = Callable[[str], None]

#: A recording and the features of the checkpoint's encoder: on its training levels, and on the held-out ones.
Sides = tuple[tuple[Recording, Floats], tuple[Recording, Floats]]

#: The most blocks of slots that are played to fill the 2x2 control; more are not worth the few missing rows.
MOST_BLOCKS = 4


@dataclass(frozen=True, kw_only=True)
class CkaSettings:
    """How observations are collected and compared, the same for every checkpoint."""

    geometry: Geometry
    other_geometry: Geometry | None
    """The second collection, with the same number of rows; None to leave it out."""
    test: LevelSet
    draw: int
    permutations: int

    def __post_init__(self) -> None:
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
            "test": str(self.test), "rule": "sampled", "draw": self.draw, "permutations": self.permutations,
            "shuffle_seed": 0,
        }  # fmt: skip


def measure_checkpoint(
    policy: CheckpointPolicy, spec: EngineSpec, *, train: LevelSet, settings: CkaSettings, tell: Tell
) -> dict[str, Any]:
    """The fields that the report reads (`gapfloor.report.cka_input`), and what is behind them."""

    def collect(geometry: Geometry) -> Sides:
        """Let the checkpoint play both level sets and encode what it saw."""
        sides = []
        for levels in (train, settings.test):
            tell(f"{policy.name}: levels {levels}, {geometry}")
            recording = record_play(
                policy, spec, levels=levels, geometry=geometry, draw=settings.draw, fingerprint=policy.fingerprint,
                name=policy.name,
            )  # fmt: skip
            sides.append((recording, recording.features(policy)))
        return sides[0], sides[1]

    def null(sides: Sides, purpose: str) -> PermutationNull:
        rng = stream(purpose, 0, policy.fingerprint)
        return permutation_null(sides[0][1], sides[1][1], rng=rng, permutations=settings.permutations)

    slots, steps = settings.geometry.slots, settings.geometry.steps
    recorded = whole = collect(settings.geometry)
    for blocks in range(2, MOST_BLOCKS + 1):
        if len(align_rows(whole[0][0], whole[1][0], block=slots)) == settings.geometry.rows // 2:
            break
        # Episodes ended and slots fell out of step: the same slots again, and as many more.
        whole = collect(Geometry(slots * blocks, steps))
    rng = stream("control", 0, policy.fingerprint)
    control = align_controls(*whole, rng=rng, permutations=settings.permutations, block=slots)
    as_computed = null(recorded, "as computed")
    record: dict[str, Any] = {
        "n": as_computed.n, "permutations": as_computed.permutations, **_null_fields(as_computed),
        "pr": participation_ratio(recorded[0][1]), "pr_test": participation_ratio(recorded[1][1]),
        "n_control": control.n, "A": control.test.observed, "B": control.test.mean, "C": control.train.observed,
        "D": control.train.mean, "A_p": control.test.p_value, "C_p": control.train.p_value,
    }  # fmt: skip
    if settings.other_geometry is not None:
        other = null(collect(settings.other_geometry), "other geometry")
        record["other_geometry"] = {"geometry": str(settings.other_geometry), **_null_fields(other)}
        if settings.other_geometry.slots == 16:
            record["geo16"] = other.observed
    return record


def _null_fields(null: PermutationNull) -> dict[str, Any]:
    """A value and its null, as a record has them."""
    return {
        "as_computed": null.observed, "perm_mean": null.mean, "perm_sd": null.sd, "z": jsonable(null.z),
        "analytic": null.exact_mean,
    }  # fmt: skip
