"""Between greedy and sampled: what a grid of temperatures says about one checkpoint on the same levels.

Across games, residual entropy is confounded with the game; here the game, the weights and the levels are fixed, and
only the sharpness of what is drawn from changes (softmax(logits / T): T = 1 is the rule `sampled`, T = 0 the rule
`greedy`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.json_values import jsonable
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.run_identity import RunIdentity
from gapfloor.statistics.conventions import CONFIDENCE
from gapfloor.statistics.level_means import (
    LevelContrast,
    independent_difference,
    mean_by_level,
    pair_by_level,
)
from gapfloor.statistics.ranks import RankCorrelation, rank_correlation
from gapfloor.text_tables import (
    ReadableResult,
    TextTable,
    interval_text,
    number,
    p_text,
    signed,
    with_error,
)

#: Level set -> temperature, from cold to hot -> episodes.
SweepSamples = Mapping[str, Mapping[float, EpisodeSample]]


@dataclass(frozen=True)
class TemperaturePoint:
    """One temperature on one level set."""

    temperature: float
    """Logits were divided by it; 0 is greedy, 1 sampled."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    entropy_played: float
    """Nats; of the distribution that was drawn from, in the states that this temperature visits."""
    entropy_raw: float
    """Nats; of the untempered distribution in the same states."""
    episode_return: LevelContrast
    """Mean return, with its error over levels."""
    above_floor: LevelContrast
    """Return minus floor, paired by level."""
    below_reference: LevelContrast
    """Return minus that at the reference temperature, paired by level."""
    is_one_action: bool
    """Whether one action was taken in nearly every visited state."""


@dataclass(frozen=True)
class SweepTrend:
    """What the grid says about one level set."""

    level_set: str
    """`train` or `test` (held-out)."""
    correlation: RankCorrelation
    """Of return with the entropy that was played."""
    hot: str
    """The rule at the highest temperature."""
    cold: str
    """The rule at the lowest temperature."""
    contrast: LevelContrast
    """Return under `hot` minus return under `cold`, paired by level."""


@dataclass(frozen=True, repr=False)
class Sweep(ReadableResult):
    """A checkpoint at a grid of temperatures."""

    row_names = ("points", "gaps", "trends")

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    run: RunIdentity
    """The trained run."""
    design: str
    """How levels were chosen (draws or census), with slots, burn-in and episodes."""
    draws: tuple[int, ...]
    """Seeds of the level draws."""
    points: tuple[TemperaturePoint, ...]
    """One entry per temperature and level set."""
    floors: dict[str, LevelContrast]
    """Level set -> the floor's mean, its error clustered by level."""
    gaps: dict[float, LevelContrast]
    """Temperature -> train minus test."""
    trends: tuple[SweepTrend, ...]
    """One entry per level set."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""

    @property
    def temperatures(self) -> tuple[float, ...]:
        """The grid, from cold to hot."""
        return tuple(dict.fromkeys(point.temperature for point in self.points))

    def point(self, temperature: float, level_set: str) -> TemperaturePoint | None:
        """One point, if that level set was played."""
        wanted = (temperature, level_set)
        return next((p for p in self.points if (p.temperature, p.level_set) == wanted), None)

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor sweep --json` prints."""
        document = jsonable(dataclasses.asdict(self))
        document["gaps"] = [
            {"temperature": temperature, **jsonable(dataclasses.asdict(gap))}
            for temperature, gap in self.gaps.items()
        ]
        document["run"] = {
            "agent": self.run.agent, "seed": self.run.seed, "budget": self.run.budget, "reference": "",
        }  # fmt: skip
        document["notes"] = [*self.sentences(), *self.notes]
        return dict(document)

    def table(self) -> TextTable:
        """One row per temperature, the floor last; errors are clustered by level."""
        level_sets = [name for name in ("train", "test") if name in self.floors]
        reference = self.trends[0].hot
        headings = ["T", "rule"]
        for name in level_sets:
            headings += [f"entropy {name}", name, f"{name} - {reference}"]
        headings += ["gap"] if self.gaps else []
        rows = []
        for temperature in self.temperatures:
            points = [self.point(temperature, name) for name in level_sets]
            row = [f"{temperature:g}", points[0].rule if points[0] else ""]
            for point in points:
                assert point is not None
                row += [
                    number(point.entropy_played),
                    with_error(point.episode_return.value, point.episode_return.se),
                    ""
                    if point.rule == reference
                    else f"{signed(point.below_reference.value)} ± {number(point.below_reference.se)}",
                ]
            if self.gaps:
                row.append(f"{signed(self.gaps[temperature].value)} ± {number(self.gaps[temperature].se)}")
            rows.append(row)
        floor = ["", "uniform"]
        for name in level_sets:
            floor += ["", with_error(self.floors[name].value, self.floors[name].se), ""]
        if self.gaps:
            floor.append(signed(self.floors["train"].value - self.floors["test"].value))
        return headings, [*rows, floor]

    def sentences(self) -> list[str]:
        """What the grid says, one sentence per level set, and what it cannot say."""
        fixed = [
            f"{level_set_words(point.level_set)}: {point.rule} took one action in nearly every visited state."
            for point in self.points
            if point.is_one_action
        ]
        return [*(_sentence(trend) for trend in self.trends), *fixed, _SCOPE]


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
    points: list[TemperaturePoint] = []
    trends = []
    for level_set, by_temperature in samples.items():
        mine, trend = _level_set(by_temperature, level_set, floors[level_set])
        points += mine
        trends.append(trend)
    return Sweep(
        game=run.game,
        mode=run.mode,
        run=run,
        design=design,
        draws=tuple(draws),
        points=tuple(points),
        floors={name: mean_by_level(floor.returns, floor.levels) for name, floor in floors.items()},
        gaps=_gaps(points, tuple(samples["train"])) if len(samples) == 2 else {},
        trends=tuple(trends),
        notes=tuple(notes),
    )


def rule_at(temperature: float) -> str:
    """The rule under which a temperature is filed.

    >>> rule_at(0), rule_at(0.25), rule_at(1)
    ('greedy', 'temperature:0.25', 'sampled')
    """
    return {0.0: "greedy", 1.0: "sampled"}.get(float(temperature), f"temperature:{temperature:g}")


def _level_set(
    samples: Mapping[float, EpisodeSample], level_set: str, floor: EpisodeSample
) -> tuple[list[TemperaturePoint], SweepTrend]:
    grid = tuple(samples)
    hot = 1.0 if 1.0 in grid else grid[-1]
    cold = grid[0] if grid[0] != hot else grid[-1]
    points = [
        TemperaturePoint(
            temperature=value,
            rule=rule_at(value),
            level_set=level_set,
            entropy_played=sample.entropy_played,
            entropy_raw=sample.entropy_raw,
            episode_return=mean_by_level(sample.returns, sample.levels),
            above_floor=pair_by_level(sample.returns, floor.returns, sample.levels),
            below_reference=pair_by_level(sample.returns, samples[hot].returns, sample.levels),
            is_one_action=sample.is_one_action,
        )
        for value, sample in samples.items()
    ]
    trend = SweepTrend(
        level_set=level_set,
        correlation=rank_correlation(
            [point.entropy_played for point in points], [point.episode_return.value for point in points]
        ),
        hot=rule_at(hot),
        cold=rule_at(cold),
        contrast=pair_by_level(samples[hot].returns, samples[cold].returns, samples[hot].levels),
    )
    return points, trend


def _gaps(points: Sequence[TemperaturePoint], grid: tuple[float, ...]) -> dict[float, LevelContrast]:
    returns = {(point.level_set, point.temperature): point.episode_return for point in points}
    return {value: independent_difference(returns["train", value], returns["test", value]) for value in grid}


def _sentence(trend: SweepTrend) -> str:
    found, contrast = trend.correlation, trend.contrast
    steps = found.n - 1
    if found.rises_always:
        shape = "return falls at every step as entropy falls"
    elif found.n_rises == 0:
        shape = "return falls at no step as entropy falls"
    else:
        shape = f"return falls at {found.n_rises} of {steps} steps as entropy falls, so not monotonically"
    interval = interval_text(*contrast.interval, confidence=CONFIDENCE)
    kind = "exact permutation" if found.is_exact else "permutation"
    return (
        f"{level_set_words(trend.level_set)}: {shape} (Kendall's tau {signed(found.tau)} over {found.n} temperatures, "
        f"{kind} p = {p_text(found.p)}, smallest possible {p_text(found.smallest)}). {trend.hot} - {trend.cold}: "
        f"{signed(contrast.value)} {interval}, p = {p_text(contrast.p)}, paired over "
        f"{contrast.n_levels} levels."
    )


def level_set_words(level_set: str) -> str:
    """A level set at the start of a sentence."""
    return {"train": "Training levels", "test": "Held-out levels"}.get(level_set, f"Levels '{level_set}'")
