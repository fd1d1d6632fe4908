"""What `floor` and `evaluate` return: rows with tables that print themselves."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from gapfloor.json_values import inlined, jsonable
from gapfloor.statistics.conventions import Call
from gapfloor.statistics.families import FamilyCall
from gapfloor.statistics.floor import FloorComparison
from gapfloor.statistics.reference_calls import ReferenceCall
from gapfloor.text_tables import ReadableResult, TextTable, number, signed, with_error


@dataclass(frozen=True)
class FloorRow:
    """A reference's return on one level set of one game."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    level_set: str
    """`train` or `test` (held-out)."""
    levels: str
    """The level set as a range, e.g. 0:200, or `all`."""
    reference: str
    """The policy that knows nothing; `uniform` is the floor. Empty for a run."""
    mean: float
    """Mean return."""
    sem: float
    """Per episode, sd(ddof=1)/sqrt(n); within levels in a census with repeats; over networks if there are several."""
    n_episodes: int
    """Counted episodes."""
    draws: tuple[int, ...]
    """Seeds of the level draws behind the row."""
    engine: str = "procgen"
    """The engine that played: procgen, gymnasium, envpool."""
    engine_version: str = ""
    """Its version."""
    n_networks: int = 1
    """Networks behind the reference; with several, the standard error is over them."""


@dataclass(frozen=True, repr=False)
class FloorMeasurement(ReadableResult):
    """Floors of games on their level sets."""

    row_names = ("floors",)

    floors: tuple[FloorRow, ...]
    """One row per game, level set and reference."""
    design: str = ""
    """How levels were chosen (draws or census), with slots, burn-in and episodes."""
    damaged: tuple[str, ...] = ()
    """Cells that were found cut or altered and have been measured again."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor floor --json` prints."""
        return {
            "floors": [jsonable(row) for row in self.floors],
            "design": self.design,
            "redone": list(self.damaged),
        }

    def table(self) -> TextTable:
        """Headings and cells of the table that people read."""
        rows = [
            [row.game, row.mode, row.level_set, row.levels, row.reference, number(row.mean), number(row.sem),
             str(row.n_episodes)]
            for row in self.floors
        ]  # fmt: skip
        return ["game", "mode", "level set", "levels", "reference", "mean", "SEM", "episodes"], rows

    def sentences(self) -> list[str]:
        """What was measured again, and a level set from which no other is disjoint."""
        whole = any(row.levels == "all" for row in self.floors)
        return [
            *(
                ["The level set 'all' is the whole distribution: no other level set is disjoint from it."]
                * whole
            ),
            *(f"The cell {name} was cut or altered and has been measured again." for name in self.damaged),
        ]


@dataclass(frozen=True)
class CellRow:
    """One evaluated cell."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    seed: int | None
    """The seed of the run."""
    budget: str
    """Label of the training budget, e.g. 8M; empty if there is none."""
    reference: str
    """The policy that knows nothing; `uniform` is the floor. Empty for a run."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    draw: int
    """Seed of the level draw."""
    mean: float
    """Mean return."""
    sem: float
    """Per episode: sd(ddof=1)/sqrt(n)."""
    n_episodes: int
    """Counted episodes."""
    n_steps: int
    """Environment steps of the counted episodes."""
    entropy_raw: float | None
    """Entropy of the policy over raw actions, all counted steps, in nats."""
    entropy_merged: float | None
    """Mean entropy over the actions that differ in each probed state, in nats; None without a probe."""
    disagreement: float | None
    """Share of counted steps on which the rule chose a class other than that of plain argmax."""
    top_action_share: float
    """Share of counted steps on which the most frequent action was taken."""
    key: str
    """The cell's content address: a hash of everything that can change an episode."""


@dataclass(frozen=True)
class ReturnRow:
    """Runs of one agent (or a reference) under one rule on one level set."""

    game: str
    """The game, or the environment's name."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    mean: float
    """Mean return."""
    sem: float
    """Over runs where there are several; per episode for one checkpoint and for references."""
    n_episodes: int
    """Counted episodes."""
    n_runs: int
    """Runs behind the row."""


@dataclass(frozen=True)
class EvaluationGap:
    """Train minus test of one agent under one rule, with the floor's own difference."""

    game: str
    """The game, or the environment's name."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    gap: float
    """train - test, of the same runs under the same rule."""
    sem: float
    """Over runs if there are several; otherwise over the episodes of one checkpoint."""
    floor_gap: float
    """The floor's own train - test difference."""
    n_runs: int
    """Runs behind the row."""


@dataclass(frozen=True)
class EvaluationComparison:
    """An agent against the floor on one level set: over runs, or of this checkpoint only."""

    game: str
    """The game, or the environment's name."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    scope: str
    """"runs" (a call about the agent), "these runs only" or "this checkpoint only"."""
    test: FloorComparison = field(metadata=inlined())
    """The comparison: of run values for the scope "runs", otherwise of episodes."""
    decision: FamilyCall = field(metadata=inlined(call="paper_call"))
    """The paper's test (in JSON its call is `paper_call`); each comparison of an evaluation is a family of its own."""
    recommended: ReferenceCall | None = None
    """The recommended call (docs/claims.md); None unless the scope is "runs"."""
    call: Call = field(init=False)
    """The recommended call for the scope "runs"; otherwise what the episodes of these checkpoints say."""

    def __post_init__(self) -> None:
        chosen = self.decision.call if self.recommended is None else self.recommended.call
        object.__setattr__(self, "call", chosen)


@dataclass(frozen=True)
class FloorNormalisedScore:
    """(mean - floor)/(upper - floor): 0 at the floor of the same levels, 1 at the upper reference."""

    game: str
    """The game, or the environment's name."""
    agent: str
    """The agent (encoder or algorithm) by name."""
    rule: str
    """How actions were chosen: sampled, greedy, merged, epsilon:E, temperature:T."""
    level_set: str
    """`train` or `test` (held-out)."""
    score: float
    """The normalised score."""
    sem: float
    """Standard error of the mean return on the same scale; that of the floor is not in it."""
    floor: float
    """The uniform floor on the same levels."""
    upper: float
    """The stated upper reference."""
    upper_name: str
    """Where the upper reference comes from."""


@dataclass(frozen=True)
class StricterReference:
    """A stricter reference than the floor on one level set, and how far the agent is above it under each rule."""

    floor: FloorRow = field(metadata=inlined())
    """The reference's own return."""
    above: dict[str, float]
    """Agent and rule -> its mean return minus the reference's."""


@dataclass(frozen=True, repr=False)
class Evaluation(ReadableResult):
    """Policies under stated rules, and the floor on the same level draws."""

    row_names = ("summary", "gap", "comparisons", "cells", "references", "normalised")

    cells: tuple[CellRow, ...]
    """One row per cell: run or reference, rule, level set, draw."""
    summary: tuple[ReturnRow, ...]
    """One row per agent (or reference), rule and level set."""
    gap: tuple[EvaluationGap, ...]
    """One row per agent and rule."""
    comparisons: tuple[EvaluationComparison, ...]
    """One row per agent, rule and level set, compared with the floor."""
    notes: tuple[str, ...] = ()
    """Sentences that a reader must know."""
    references: tuple[StricterReference, ...] = ()
    """One row per stricter reference and level set."""
    normalised: tuple[FloorNormalisedScore, ...] = ()
    """One row per agent, rule and level set, where an upper reference is stated."""

    def to_dict(self) -> dict[str, Any]:
        """The document that `gapfloor evaluate --json` prints."""
        return {
            "cells": [jsonable(row) for row in self.cells],
            "summary": [jsonable(row) for row in self.summary],
            "gap": [jsonable(row) for row in self.gap],
            "comparisons": [jsonable(row) for row in self.comparisons],
            "references": [jsonable(row) for row in self.references],
            **({"normalised": [jsonable(row) for row in self.normalised]} if self.normalised else {}),
            "notes": list(self.notes),
        }

    def tables(self) -> list[TextTable]:
        """Agents and rules, then the stricter references and normalised scores if there are any."""
        references = [self.reference_table()] if self.references else []
        return [self.table(), *references, *([self.score_table()] if self.normalised else [])]

    def score_table(self) -> TextTable:
        """Normalised scores with the two returns that count as 0 and 1."""
        rows = [
            [row.game, row.agent, row.rule, row.level_set, with_error(row.score, row.sem), number(row.floor),
             f"{number(row.upper)} ({row.upper_name})"]
            for row in self.normalised
        ]  # fmt: skip
        names = ["game", "agent", "rule", "level set", "normalised score", "0 = floor", "1 = upper reference"]
        return names, rows

    def reference_table(self) -> TextTable:
        """Every stricter reference, and the agent's return minus the reference's."""
        rules = list(dict.fromkeys(rule for row in self.references for rule in row.above))
        rows = [
            [row.floor.game, row.floor.reference, row.floor.level_set, with_error(row.floor.mean, row.floor.sem),
             str(row.floor.n_episodes), *[signed(row.above[rule]) if rule in row.above else "" for rule in rules]]
            for row in self.references
        ]  # fmt: skip
        names = ["game", "reference", "level set", "mean", "episodes"]
        return [*names, *(f"{rule} minus reference" for rule in rules)], rows

    def table(self) -> TextTable:
        """Train, test, gap and floor, one row per agent and rule."""
        rows = []
        for gap in self.gap or self._without_gaps():
            halves = {row.level_set: row for row in self.summary if _same(row, gap)}
            floors = {
                row.level_set: row for row in self.summary if row.game == gap.game and row.rule == "uniform"
            }
            rows.append(
                [
                    gap.game,
                    gap.agent,
                    gap.rule,
                    str(gap.n_runs),
                    *[
                        with_error(halves[s].mean, halves[s].sem) if s in halves else ""
                        for s in ("train", "test")
                    ],
                    with_error(gap.gap, gap.sem),
                    *[
                        with_error(floors[s].mean, floors[s].sem) if s in floors else ""
                        for s in ("train", "test")
                    ],
                    signed(gap.floor_gap),
                    self._call(gap, "test"),
                ]
            )
        headings = [
            "game", "agent", "rule", "runs", "train", "test", "gap", "floor train", "floor test", "floor gap",
            "held-out call",
        ]  # fmt: skip
        return headings, rows

    def _without_gaps(self) -> list[EvaluationGap]:
        """Agents and rules of an evaluation on one level set, which has no gap."""
        names = dict.fromkeys((row.game, row.agent, row.rule) for row in self.comparisons)
        runs = {(row.game, row.agent, row.rule): row.n_runs for row in self.summary}
        return [
            EvaluationGap(*name, gap=math.nan, sem=math.nan, floor_gap=math.nan, n_runs=runs[name])
            for name in names
        ]

    def _call(self, gap: EvaluationGap, level_set: str) -> str:
        found = [row for row in self.comparisons if _same(row, gap) and row.level_set == level_set]
        if not found:
            return ""
        row = found[0]
        if row.scope != "runs":
            return f"{row.call} ({row.scope})"
        if row.call != row.decision.call:
            return f"{row.call} (by the paper's test {row.decision.call})"
        return f"{row.call} (unreliable: {doubt})" if (doubt := _doubt(row)) else row.call


def _same(row: ReturnRow | EvaluationComparison, gap: EvaluationGap) -> bool:
    return (row.game, row.agent, row.rule) == (gap.game, gap.agent, gap.rule)


def _doubt(row: EvaluationComparison) -> str:
    return row.recommended.doubt if row.recommended is not None else ""
