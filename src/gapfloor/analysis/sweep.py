"""Between greedy and sampled: what a grid of temperatures says about one checkpoint on the same levels.

Across games, residual entropy is confounded with the game; here the game, the weights and the levels are fixed, and
only the sharpness of what is drawn from changes (softmax(logits / T): T = 1 is the rule `sampled`, T = 0 the rule
`greedy`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from gapfloor.analysis.checkpoint_rows import (
    CheckpointRow,
    checkpoint_gap,
    checkpoint_labels,
    checkpoint_row,
)
from gapfloor.analysis.rows import GapRow, RuleDifferenceRow
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity
from gapfloor.statistics.clustered import pair_by_level
from gapfloor.tables.cells import estimate, p_value
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.registry import table_of
from gapfloor.tables.table import Table

#: Level set -> temperature, from cold to hot -> episodes.
SweepSamples = Mapping[str, Mapping[float, EpisodeSample]]


@dataclass(frozen=True, repr=False)
class Sweep(ReadableResult):
    """A checkpoint at a grid of temperatures; `at` of a row is its temperature."""

    row_names = ("floor_comparisons", "gaps", "pairs")

    run: RunIdentity
    """The trained run."""
    design: str
    """How levels were chosen (draws or census), with slots, burn-in and episodes."""
    draws: tuple[int, ...]
    """Seeds of the level draws."""
    floor_comparisons: tuple[CheckpointRow, ...]
    """One row per level set and temperature, compared with the floor."""
    gaps: tuple[GapRow, ...]
    """One row per temperature; empty where one level set was played."""
    pairs: tuple[RuleDifferenceRow, ...]
    """One row per level set and temperature: its return minus that at the reference temperature, paired by level."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    @property
    def temperatures(self) -> tuple[float, ...]:
        """The grid, from cold to hot."""
        return tuple(dict.fromkeys(row.at for row in self.floor_comparisons if row.at is not None))

    @property
    def level_sets(self) -> tuple[str, ...]:
        """The level sets that were played."""
        return tuple(dict.fromkeys(row.level_set for row in self.floor_comparisons))

    def row(self, temperature: float, level_set: str) -> CheckpointRow:
        """The row of a temperature and level set."""
        wanted = (temperature, level_set)
        return next(row for row in self.floor_comparisons if (row.at, row.level_set) == wanted)

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor sweep --json` prints."""
        return {**super().to_dict(), "notes": [*self.sentences(), *self.notes]}

    def table(self) -> Table:
        """One row per temperature, the floor last; errors are clustered by level."""
        reference = self.pairs[0].rule_b
        pairs = {(row.at, str(row.quantity)): row.difference for row in self.pairs}
        gaps = {row.at: row.estimate for row in self.gaps}
        lines = []
        for at in self.temperatures:
            line: dict[str, Any] = {"temperature": at, "rule": rule_at(at)}
            for name in self.level_sets:
                row, pair = self.row(at, name), pairs[at, name]
                line |= {f"entropy_{name}": row.entropy_played, name: row.mean, f"{name}_sem": row.sem}
                if row.rule != reference:
                    line |= {f"difference_{name}": pair.value, f"difference_{name}_se": pair.se}
            lines.append(line | ({"gap": gaps[at].value, "gap_se": gaps[at].se} if gaps else {}))
        floor: dict[str, Any] = {"rule": "uniform"}
        for name in self.level_sets:
            row = self.row(self.temperatures[0], name)
            floor |= {name: row.floor, f"{name}_sem": row.floor_sem}
        floor |= {"gap": self.gaps[0].floor_gap, "gap_se": None} if gaps else {}
        return table_of("sweep", [*lines, floor], heads={"REFERENCE": reference})

    def sentences(self) -> list[str]:
        """What the grid says, one sentence per level set, and what it cannot say."""
        fixed = [
            f"{level_set_words(row.level_set)}: {row.rule} took one action in nearly every visited state."
            for row in self.floor_comparisons
            if row.is_one_action
        ]
        return [*map(self._sentence, self.level_sets), *fixed, _SCOPE]

    def _sentence(self, level_set: str) -> str:
        rows = [row for row in self.floor_comparisons if row.level_set == level_set]
        means = [row.mean for row in sorted(rows, key=lambda row: row.entropy_played)]
        n_steps, n_falls = len(means) - 1, sum(after > before for before, after in pairwise(means))
        shape = f"return falls at {n_falls} of {n_steps} steps as entropy falls, so not monotonically"
        if n_falls in (0, n_steps):
            shape = f"return falls at {'every' if n_falls else 'no'} step as entropy falls"
        # From the coldest, or from the hottest where that is the reference.
        pairs = [row for row in self.pairs if row.quantity == level_set]
        far = pairs[0] if pairs[0].rule != pairs[0].rule_b else pairs[-1]
        found = far.difference
        difference = f"{estimate(-found.value, (-found.high, -found.low)).typed} ({found.confidence:.0%})"
        return (
            f"{level_set_words(level_set)}: {shape}. {far.rule_b} - {far.rule}: {difference}, "
            f"p = {p_value(found.p).plain}, paired over {rows[0].n_levels} levels."
        )


_SCOPE = (
    "This is one checkpoint: errors and intervals take its levels as a sample, and nothing here is about other runs of "
    "the agent. Lowering the temperature also changes which states are visited."
)


def analyse_sweep(
    samples: SweepSamples,
    floors: Mapping[str, EpisodeSample],
    *,
    run: RunIdentity,
    design: str,
    draws: Sequence[int],
    notes: Sequence[str] = (),
) -> Sweep:
    """What the samples of a grid say; all of them were played on the schedule of the floors."""
    grid = tuple(next(iter(samples.values())))
    labels = {at: checkpoint_labels(run, rule=rule_at(at), at=at) for at in grid}
    reference = 1.0 if 1.0 in grid else grid[-1]
    rows = {
        (name, at): checkpoint_row(labels[at], by_temperature[at], floors[name], level_set=name)
        for name, by_temperature in samples.items()
        for at in grid
    }

    def difference(name: str, at: float) -> RuleDifferenceRow:
        one, other = samples[name][at], samples[name][reference]
        paired = pair_by_level(one.returns, other.returns, one.levels)
        return RuleDifferenceRow(**labels[at], rule_b=rule_at(reference), quantity=name, difference=paired)  # type: ignore[arg-type]

    return Sweep(
        run=run,
        design=design,
        draws=tuple(draws),
        floor_comparisons=tuple(rows.values()),
        gaps=tuple(
            checkpoint_gap(
                labels[at], samples["train"][at], samples["test"][at], (floors["train"], floors["test"])
            )
            for at in (grid if len(samples) == 2 else ())
        ),
        pairs=tuple(difference(name, at) for name in samples for at in grid),
        notes=tuple(notes),
    )


def rule_at(temperature: float) -> str:
    """The rule under which a temperature is filed.

    >>> rule_at(0), rule_at(0.25), rule_at(1)
    ('greedy', 'temperature:0.25', 'sampled')
    """
    return {0.0: "greedy", 1.0: "sampled"}.get(float(temperature), f"temperature:{temperature:g}")


def level_set_words(level_set: str) -> str:
    """A level set at the start of a sentence."""
    return {"train": "Training levels", "test": "Held-out levels"}.get(level_set, f"Levels '{level_set}'")
