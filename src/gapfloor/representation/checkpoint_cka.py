"""One checkpoint's train-versus-test CKA with all of its controls: a row of the paper's table "ckacontrol".

The value alone measures nothing, since its rows are different inputs. It is never given without its null, the 2x2
control and a second collection geometry.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gapfloor.engines.engine import EngineSpec
from gapfloor.json_values import jsonable
from gapfloor.levels import LevelSet
from gapfloor.policies.checkpoint import CheckpointPolicy
from gapfloor.representation.alignment_control import AlignmentControl, align_controls, align_rows
from gapfloor.representation.cka_settings import CkaSettings
from gapfloor.representation.linear_similarity import Floats, participation_ratio
from gapfloor.representation.recording import Geometry, Recording, record_play
from gapfloor.representation.shuffled_null import PermutationNull, permutation_null
from gapfloor.representation.streams import stream
from gapfloor.rules.rule import parse_rule

Tell = Callable[[str], None]

#: The most blocks of slots that are played to fill the 2x2 control; more are not worth the few missing rows.
MOST_BLOCKS = 4


@dataclass(frozen=True, eq=False)
class RecordedPlay:
    """What a checkpoint saw on its training levels and on the held-out ones, and the features of its encoder."""

    train: tuple[Recording, Floats]
    test: tuple[Recording, Floats]


@dataclass(frozen=True, kw_only=True)
class WithinAgent:
    """Train-versus-test CKA of one checkpoint with its controls."""

    as_computed: PermutationNull
    pr_train: float
    pr_test: float
    control: AlignmentControl
    other: PermutationNull | None

    def to_record(self, settings: CkaSettings) -> dict[str, Any]:
        """The fields that the report reads (`gapfloor.report.cka_input`), and what is behind them."""
        null, control, other = self.as_computed, self.control, self.other
        record: dict[str, Any] = {
            "n": null.n, "permutations": null.permutations, "as_computed": null.observed, "perm_mean": null.mean,
            "perm_sd": null.sd, "z": jsonable(null.z), "analytic": null.exact_mean, "pr": self.pr_train,
            "pr_test": self.pr_test, "n_control": control.n, "A": control.test.observed, "B": control.test.mean,
            "C": control.train.observed, "D": control.train.mean, "A_p": control.test.p_value,
            "C_p": control.train.p_value,
        }  # fmt: skip
        if other is not None and settings.other_geometry is not None:
            record["other_geometry"] = {
                "geometry": str(settings.other_geometry), "as_computed": other.observed,
                "perm_mean": other.mean, "perm_sd": other.sd, "z": jsonable(other.z), "analytic": other.exact_mean,
            }  # fmt: skip
            if settings.other_geometry.slots == 16:
                record["geo16"] = other.observed
        return record


def collect(
    policy: CheckpointPolicy,
    spec: EngineSpec,
    *,
    train: LevelSet,
    settings: CkaSettings,
    geometry: Geometry,
    tell: Tell,
) -> RecordedPlay:
    """Let the checkpoint play both level sets and encode what it saw."""
    sides = []
    for levels in (train, settings.test):
        tell(f"{policy.name}: levels {levels}, {geometry}")
        recording = record_play(
            policy, spec, levels=levels, geometry=geometry, rule=parse_rule(settings.rule), draw=settings.draw,
            fingerprint=policy.fingerprint, name=policy.name,
        )  # fmt: skip
        sides.append((recording, recording.features(policy)))
    return RecordedPlay(*sides)


def measure_within(
    policy: CheckpointPolicy,
    spec: EngineSpec,
    recorded: RecordedPlay,
    *,
    train: LevelSet,
    settings: CkaSettings,
    tell: Tell,
) -> WithinAgent:
    """The whole row: as computed, its null, the 2x2 control, and the other geometry."""

    def null(recorded: RecordedPlay, purpose: str) -> PermutationNull:
        return permutation_null(
            recorded.train[1],
            recorded.test[1],
            rng=stream(purpose, settings.seed, policy.fingerprint),
            permutations=settings.permutations,
        )

    slots, steps = settings.geometry.slots, settings.geometry.steps
    whole = recorded
    for blocks in range(2, MOST_BLOCKS + 1):
        if len(align_rows(whole.train[0], whole.test[0], block=slots)) == settings.geometry.rows // 2:
            break
        # Episodes ended and slots fell out of step: the same slots again, and as many more.
        more = Geometry(slots * blocks, steps)
        whole = collect(policy, spec, train=train, settings=settings, geometry=more, tell=tell)
    control = align_controls(
        whole.train,
        whole.test,
        rng=stream("control", settings.seed, policy.fingerprint),
        permutations=settings.permutations,
        block=slots,
    )
    other = None
    if settings.other_geometry is not None:
        again = collect(
            policy, spec, train=train, settings=settings, geometry=settings.other_geometry, tell=tell
        )
        other = null(again, "other geometry")
    return WithinAgent(
        as_computed=null(recorded, "as computed"),
        pr_train=participation_ratio(recorded.train[1]),
        pr_test=participation_ratio(recorded.test[1]),
        control=control,
        other=other,
    )
