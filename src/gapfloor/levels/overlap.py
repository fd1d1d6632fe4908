"""Overlap between level sets: held-out levels whose layout equals a training level's.

A seed is not a layout: a generator with few layouts gives the same one to several seeds, and a held-out level that is a
training level under another number measures memory, not generalisation. This module groups levels by fingerprints that
someone else took (`gapfloor.engines.level_comparison`) and holds the result; it knows no engine.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from gapfloor.errors import UsageError
from gapfloor.json_values import DAMAGED, from_exact, to_exact
from gapfloor.levels.schedule import LevelSet
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of

FORMAT = "gapfloor-leakage/1"


def equal_groups(fingerprints: Mapping[int, Hashable]) -> list[tuple[int, ...]]:
    """Levels with the same fingerprint, each group ascending, groups of one left out.

    >>> equal_groups({3: "a", 1: "b", 2: "a", 9: "c"})
    [(2, 3)]
    """
    groups: dict[Hashable, list[int]] = {}
    for level in sorted(fingerprints):
        groups.setdefault(fingerprints[level], []).append(level)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def equal_pairs(
    fingerprints: Mapping[int, Hashable], *, train: LevelSet, test: LevelSet
) -> list[tuple[int, int]]:
    """(held-out level, training level) of every two with the same fingerprint, ascending.

    >>> equal_pairs({0: "a", 1: "b", 2: "a", 10: "a"}, train=LevelSet(0, 3), test=LevelSet(10, 11))
    [(10, 0), (10, 2)]
    """
    pairs = []
    for group in equal_groups(fingerprints):
        pairs += [(held, known) for held in group if held in test for known in group if known in train]
    return sorted(pairs)


@dataclass(frozen=True)
class LevelPair:
    """A held-out level and a training level of the same layout."""

    held_out: int
    """Level seed of the held-out level."""
    training: int
    """Level seed of the training level of the same layout."""
    moves_agree: bool
    """Whether longer random play with the nine moves stayed the same in both."""
    actions_agree: bool
    """Whether longer random play with every action stayed the same in both."""


@dataclass(frozen=True)
class LevelOverlap:
    """What two level sets of one game have in common."""

    game: str
    """The game, or the environment's name."""
    mode: str
    """Distribution mode of the game: easy, hard, ..."""
    engine: str
    """The engine that played: procgen, gymnasium, envpool."""
    version: str
    """The engine's version."""
    train: LevelSet
    """The training levels, as a range."""
    test: LevelSet
    """The held-out levels, as a range."""
    pairs: tuple[LevelPair, ...]
    """Pairs of levels of the same layout."""
    first_screen: int
    """Held-out levels whose first screen equals a training level's: not yet the same level."""
    first_frame: int
    """Held-out levels whose first picture of the whole level equals a training level's."""
    distinct_train: int
    """Different layouts among the training levels."""
    distinct_test: int
    """Different layouts among the held-out levels."""
    compared: str
    """What was compared, in words."""
    later: str
    """What the first frame of this game does not show; empty where it shows everything."""

    @property
    def leaked(self) -> tuple[int, ...]:
        """Held-out levels whose layout equals a training level's."""
        return tuple(sorted({pair.held_out for pair in self.pairs}))

    @property
    def twins(self) -> dict[int, tuple[int, ...]]:
        """Each leaked level and the training levels of its layout."""
        return {
            held: tuple(pair.training for pair in self.pairs if pair.held_out == held) for held in self.leaked
        }

    @property
    def confirmed_by_moves(self) -> int:
        """Leaked levels that longer play with the nine moves could not tell from a training level."""
        return len({pair.held_out for pair in self.pairs if pair.moves_agree})

    @property
    def confirmed_by_actions(self) -> int:
        """Leaked levels that longer play with every action could not tell from a training level."""
        return len({pair.held_out for pair in self.pairs if pair.actions_agree})

    def to_dict(self) -> dict[str, Any]:
        """The overlap as JSON values; `from_dict` reads it back."""
        return {
            **to_exact(self),
            "train": str(self.train),
            "test": str(self.test),
            "leaked": list(self.leaked),
            "confirmed_by_moves": self.confirmed_by_moves,
            "confirmed_by_actions": self.confirmed_by_actions,
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LevelOverlap:
        """The opposite of `to_dict`."""
        values = {field.name: document[field.name] for field in fields(cls)}
        sets = {name: to_exact(LevelSet.parse(values[name])) for name in ("train", "test")}
        return from_exact(cls, values | sets)


@dataclass(frozen=True, repr=False)
class Leakage(ReadableResult):
    """The overlaps of several games."""

    row_names = ("games",)

    games: tuple[LevelOverlap, ...]
    """The games, in the order of the tables."""

    def to_dict(self) -> dict[str, Any]:
        """The document of `leakage.json` and of `gapfloor levels --json`."""
        return {"format": FORMAT, "games": [game.to_dict() for game in self.games]}

    def to_json(self) -> str:
        """The text of `leakage.json`."""
        return json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n"

    def table(self) -> Table:
        """The table that people read: one line per game."""
        return table_of("overlap", self.games)

    def sentences(self) -> list[str]:
        """What a first frame does not show, and every leaked level with its training twins."""
        lines = []
        for game in self.games:
            if game.later and game.first_frame:
                lines.append(f"{game.game}: the first frame does not show {game.later}.")
            lines += [
                f"  {game.game} {held} = {', '.join(map(str, known))}" for held, known in game.twins.items()
            ]
        return lines

    def of(self, game: str, mode: str) -> LevelOverlap | None:
        """The overlap of one game."""
        return next((one for one in self.games if (one.game, one.mode) == (game, mode)), None)


def read_leakage(files: Sequence[Path]) -> Leakage:
    """The overlaps that a store keeps, in `leakage/*.json`."""
    games: dict[tuple[str, str], LevelOverlap] = {}
    for path in files:
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            if document["format"] != FORMAT:
                raise ValueError(f"its format is {document['format']!r}, not {FORMAT!r}")
            found = [LevelOverlap.from_dict(game) for game in document["games"]]
        except DAMAGED as error:
            reason = f"'{error.args[0]}' is missing" if isinstance(error, KeyError) else str(error)
            raise UsageError(
                f"{path} is not a leakage file ({reason}): write it again with gapfloor levels."
            ) from None
        games |= {(game.game, game.mode): game for game in found}
    return Leakage(tuple(games.values()))
