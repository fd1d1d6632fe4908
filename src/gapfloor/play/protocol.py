"""The settings that `floor` and `evaluate` share, checked once, before any work starts."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gapfloor.engines.engine import EngineSpec, Option
from gapfloor.engines.procgen import GAMES, PAPER_GAMES
from gapfloor.engines.registry import check_ends, make_spec
from gapfloor.errors import UsageError, refuse_repeats, unknown_name
from gapfloor.levels.schedule import LevelSet, check_census, check_counts, check_disjoint, check_draw
from gapfloor.play.cell import NO_NETWORK, CellSpec, Design, Inference, Role, Run

#: Inference batch size. It belongs to the cell, because it changes the last bits of logits. A frame costs the same in
#: a batch of 16 as in one of 32, and at the end of a queue half as many rows wait for the longest episode.
INFERENCE_BATCH = 16

#: How levels are chosen: seeded draws (as in the paper), or every level equally often.
DESIGNS = ("draws", "census")


@dataclass(frozen=True)
class Protocol:
    """Engines, level sets, draws and design of a measurement."""

    engines: tuple[EngineSpec, ...]
    level_sets: tuple[tuple[Role, LevelSet], ...]
    draws: tuple[int, ...]
    design: Design

    @property
    def placements(self) -> list[tuple[Role, LevelSet, int]]:
        """Level set and draw of every cell of one run under one rule."""
        return [(role, levels, draw) for role, levels in self.level_sets for draw in self.draws]

    @property
    def n_episodes(self) -> int:
        """Counted episodes of one run under one rule."""
        return sum(self.design.content(levels)["episodes"] for _, levels, _ in self.placements)

    def cells(
        self,
        engine: EngineSpec,
        run: Run,
        *,
        policy: str,
        rule: str,
        inference: Inference = NO_NETWORK,
        classes: tuple[int, ...] = (),
    ) -> tuple[CellSpec, ...]:
        """The cells of one run or reference under one rule."""
        return tuple(
            CellSpec(engine, run, policy, rule, role, levels, draw, self.design, inference, classes)
            for role, levels, draw in self.placements
        )


#: Levels: START:STOP, a `range`, all, or none to leave a level set out.
Levels = str | range


@dataclass(frozen=True, kw_only=True)
class LevelSettings:
    """Which levels of which engine are played: the same names in functions, commands and study files."""

    train: Levels = "0:200"
    """Training levels: START:STOP, a `range`, all or none."""
    test: Levels = "1000:1100"
    """Held-out levels: START:STOP, a `range`, all or none."""
    mode: str | None = None
    """The engine's mode: ProcGen's easy (default), hard, extreme or memory."""
    options: Mapping[str, Option] | None = None
    """Options of the engine, e.g. use_backgrounds=false."""
    score: str | None = None
    """Score to use instead of the reward: success (1 if `info` reports it), or the name of a number in `info`, which is
    added up."""
    level_in: str | None = None
    """How a Gymnasium environment gets its level, if not by the seed: options:NAME (an option of reset) or
    argument:NAME (an argument of its constructor)."""


@dataclass(frozen=True, kw_only=True)
class DesignSettings:
    """How often levels are played: the same names in functions, commands and study files."""

    draws: int | Sequence[int] = (0, 1, 2)
    """Seeds of the level draws, e.g. 0,1,2."""
    episodes: int = 128
    """Counted episodes per draw."""
    design: Literal["draws", "census"] = "draws"
    """Seeded draws of levels (as in the paper), or every level equally often (a census)."""
    repeats: int = 1
    """Episodes per level in a census."""
    slots: int = 16
    """Parallel environments per draw."""
    burn_in: int = 1
    """First episodes of a slot that are not counted."""


@dataclass(frozen=True, kw_only=True)
class ProtocolSettings(DesignSettings, LevelSettings):
    """Which levels are played and how often."""


@dataclass(frozen=True, kw_only=True)
class InferenceSettings:
    """How the networks of policies are computed: the same names in functions, commands and study files."""

    device: str = "cpu"
    """Device for networks: cpu or cuda."""
    backend: Literal["onnxruntime", "torch"] | None = None
    """Library for the logits of networks (default: the one that filled the store, or the faster one that is installed;
    torch where a network cannot be exported). Changing it changes the cell key."""
    batch: int = INFERENCE_BATCH
    """Inference batch size. Changing it changes the cell key."""


@dataclass(frozen=True, kw_only=True)
class PlaySettings(InferenceSettings, ProtocolSettings):
    """A protocol, and how the networks of policies are computed."""


def make_protocol(games: Sequence[str], settings: ProtocolSettings | None = None, **fields: Any) -> Protocol:
    """The checked protocol of `settings`, or of the fields of `ProtocolSettings` that are given by name.

    `none` leaves a level set out; `paper` and `all` name groups of games.
    """
    asked = settings or ProtocolSettings(**fields)
    named = {"score": asked.score, "level_in": asked.level_in}
    options = {**(asked.options or {}), **{name: value for name, value in named.items() if value is not None}}
    engines = tuple(make_spec(game, mode=asked.mode, options=options) for game in expand_games(games))
    level_sets: list[tuple[Role, LevelSet]] = []
    asked_sets: dict[Role, Levels] = {"train": asked.train, "test": asked.test}
    for role, levels in asked_sets.items():
        if not isinstance(levels, str | range | LevelSet):
            raise UsageError(
                f"{role}={levels!r} is not a level set: write 'START:STOP', a range, 'all' or 'none'."
            )
        if levels != "none":
            level_sets.append((role, LevelSet.parse(levels)))
    if not level_sets:
        raise UsageError(
            "The level sets train and test are both none: name at least one, e.g. 1000:1100 for test."
        )
    if len(level_sets) == 2:
        check_disjoint(level_sets[0][1], level_sets[1][1])
    for engine in engines:
        check_ends(engine)
    if asked.design not in DESIGNS:
        raise unknown_name("design", asked.design, DESIGNS)
    if asked.design == "census":
        for _, chosen in level_sets:
            check_census(chosen, repeats=asked.repeats)
        # A census leaves nothing to draw: it is filed as draw 0.
        design = Design(slots=0, burn_in=0, episodes=0, repeats=asked.repeats)
        return Protocol(engines, tuple(level_sets), (0,), design)
    check_counts(slots=asked.slots, episodes=asked.episodes, burn_in=asked.burn_in)
    try:
        # Numbers of numpy become Python's, whose text is part of a cell's key.
        draws = tuple(map(operator.index, [asked.draws] if isinstance(asked.draws, int) else asked.draws))
    except TypeError:
        raise UsageError(
            f"draws={asked.draws!r} does not name draws: give one whole number or several, e.g. (0, 1, 2)."
        ) from None
    if not draws:
        raise UsageError("No draw is named: give at least one, e.g. draws 0, 1 and 2.")
    refuse_repeats("draw", draws)
    for draw in draws:
        check_draw(draw)
    return Protocol(engines, tuple(level_sets), draws, Design(asked.slots, asked.burn_in, asked.episodes))


def expand_games(games: Sequence[str]) -> tuple[str, ...]:
    """Games in the order named, each once; `paper` means the paper's eight and `all` all sixteen.

    >>> expand_games(["envpool:paper"])[:2]
    ('envpool:starpilot', 'envpool:fruitbot')
    """
    groups = {
        f"{prefix}{name}": [f"{prefix}{game}" for game in members]
        for prefix in ("", "procgen:", "envpool:")
        for name, members in (("paper", PAPER_GAMES), ("all", GAMES))
    }
    named = [game for name in games for game in groups.get(name, [name])]
    if not named:
        raise UsageError(
            "No game is named: give one or more, e.g. starpilot, or paper for the paper's eight."
        )
    return tuple(dict.fromkeys(named))
