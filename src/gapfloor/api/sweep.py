"""Between greedy and sampled: one checkpoint at a grid of temperatures, on the same levels.

Across games, residual entropy is confounded with the game; here the game, the weights and the levels stay, and only the
sharpness of what is drawn from changes (softmax(logits / T): T = 1 is the rule `sampled`, T = 0 the rule `greedy`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gapfloor.api.policy_campaign import play_policies
from gapfloor.errors import UsageError
from gapfloor.json_values import jsonable
from gapfloor.play.campaign import Campaign
from gapfloor.play.candidate import Entrant
from gapfloor.play.cell import Run
from gapfloor.play.protocol import INFERENCE_BATCH, make_protocol
from gapfloor.play.samples import read_sample
from gapfloor.play.workers import Progress
from gapfloor.records.episode_sample import EpisodeSample
from gapfloor.records.temporary_store import open_store
from gapfloor.rules import parse_rules
from gapfloor.statistics.conventions import CONFIDENCE
from gapfloor.statistics.level_means import (
    LevelContrast,
    independent_difference,
    mean_by_level,
    pair_by_level,
)
from gapfloor.statistics.ranks import RankCorrelation, rank_correlation
from gapfloor.text_tables import (
    html_table,
    interval_text,
    number,
    p_text,
    signed,
    text_table,
    with_error,
)

TEMPERATURES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class SweepPoint:
    """One temperature on one level set."""

    temperature: float
    rule: str
    level_set: str
    entropy_played: float
    """Nats; of the distribution that was drawn from, in the states that this temperature visits."""
    entropy_raw: float
    """Nats; of the untempered distribution in the same states."""
    episode_return: LevelContrast
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
    correlation: RankCorrelation
    """Of return with the entropy that was played."""
    hot: str
    cold: str
    contrast: LevelContrast
    """Return under `hot` minus return under `cold`, paired by level."""


@dataclass(frozen=True)
class Sweep:
    """A checkpoint at a grid of temperatures."""

    game: str
    mode: str
    run: Run
    design: str
    draws: tuple[int, ...]
    points: tuple[SweepPoint, ...]
    floors: dict[str, LevelContrast]
    """Level set -> the floor's mean, its error clustered by level."""
    gaps: dict[float, LevelContrast]
    """Temperature -> train minus test."""
    trends: tuple[SweepTrend, ...]
    notes: tuple[str, ...] = ()

    @property
    def temperatures(self) -> tuple[float, ...]:
        """The grid, from cold to hot."""
        return tuple(dict.fromkeys(point.temperature for point in self.points))

    def point(self, temperature: float, level_set: str) -> SweepPoint | None:
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
        document["notes"] = [*self.sentences(), *self.notes]
        return dict(document)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """One row a temperature, the floor last; errors are clustered by level."""
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
        """What the grid says, one sentence a level set, and what it cannot say."""
        fixed = [
            f"{level_set_words(point.level_set)}: {point.rule} took one action in nearly every visited state."
            for point in self.points
            if point.is_one_action
        ]
        return [*(_sentence(trend) for trend in self.trends), *fixed, _SCOPE]

    def __repr__(self) -> str:
        return "\n".join([text_table(*self.table()), *self.sentences(), *self.notes])

    def _repr_html_(self) -> str:
        return html_table(*self.table()) + "".join(f"<p>{line}</p>" for line in self.sentences())


_SCOPE = (
    "This is one checkpoint: errors and intervals take its levels as a sample, and nothing here speaks of other runs "
    "of the agent. Lowering the temperature also changes which states are visited."
)


def sweep(
    policy: Any,
    *,
    game: str,
    temperatures: Sequence[float] = TEMPERATURES,
    agent: str | None = None,
    budget: str | None = None,
    seed: int | None = None,
    batch: int = INFERENCE_BATCH,
    device: str = "cpu",
    workers: int | None = None,
    progress: Progress | None = None,
    store: str | Path | None = None,
    **protocol: Any,
) -> Sweep:
    """One policy at each of `temperatures` on the same levels, compared with the floor.

    Every point is an ordinary cell: 0 is filed as `greedy`, 1 as `sampled`. Without `store` the episodes are forgotten
    once they are summarised. `protocol` holds the settings that `evaluate` takes: `train`, `test`, `draws`,
    `episodes`, `mode`, ...
    """
    grid = check_temperatures(temperatures)
    agreed = make_protocol([game], **protocol)
    with open_store(store) as opened:
        campaign = play_policies(
            {game: [Entrant(policy, agent, budget, seed)]},
            rules=parse_rules([rule_at(value) for value in grid]),
            protocol=agreed,
            store=opened,
            batch=batch,
            device=device,
            workers=workers,
            progress=progress,
        )
        return _summarise(campaign, grid)


def check_temperatures(temperatures: Sequence[float]) -> tuple[float, ...]:
    """The grid from cold to hot; refuses fewer than two, doubles and what is no temperature."""
    for value in temperatures:
        if not 0 <= value < float("inf"):
            raise UsageError(
                f"The temperature {value:g} is out of range: use 0 (greedy) or more, 1 is sampled."
            )
    grid = tuple(sorted(temperatures))
    names = [rule_at(value) for value in grid]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"The temperature of the rule {name} is named twice: name each once.")
    if len(grid) < 2:
        raise UsageError("A sweep needs two or more temperatures, as --temperatures 0,0.5,1.")
    return grid


def rule_at(temperature: float) -> str:
    """The rule under which a temperature is filed.

    >>> rule_at(0), rule_at(0.25), rule_at(1)
    ('greedy', 'temperature:0.25', 'sampled')
    """
    return {0.0: "greedy", 1.0: "sampled"}.get(float(temperature), f"temperature:{temperature:g}")


def _summarise(campaign: Campaign, grid: tuple[float, ...]) -> Sweep:
    (game,) = campaign.games
    level_sets = [name for name, _ in campaign.protocol.level_sets]
    points: list[SweepPoint] = []
    floors, trends = {}, []
    for level_set in level_sets:
        floor = read_sample(campaign.store, game.floor, level_set=level_set)
        samples = {
            value: read_sample(campaign.store, game.runs[0].cells, level_set=level_set, rule=rule_at(value))
            for value in grid
        }
        floors[str(level_set)] = mean_by_level(floor.returns, floor.levels)
        mine, trend = _level_set(samples, grid, str(level_set), floor)
        points += mine
        trends.append(trend)
    cell = game.runs[0].cells[0]
    return Sweep(
        game=game.engine.game,
        mode=game.engine.mode,
        run=cell.run,
        design=str(cell.design),
        draws=campaign.protocol.draws,
        points=tuple(points),
        floors=floors,
        gaps=_gaps(points, grid) if len(level_sets) == 2 else {},
        trends=tuple(trends),
        notes=tuple(campaign.notes),
    )


def _level_set(
    samples: Mapping[float, EpisodeSample], grid: tuple[float, ...], level_set: str, floor: EpisodeSample
) -> tuple[list[SweepPoint], SweepTrend]:
    hot = 1.0 if 1.0 in grid else grid[-1]
    cold = grid[0] if grid[0] != hot else grid[-1]
    points = [
        SweepPoint(
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


def _gaps(points: Sequence[SweepPoint], grid: tuple[float, ...]) -> dict[float, LevelContrast]:
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
