"""A level set: a half-open range of level seeds, or every level of the generator.

A gap compares two sets, so this module also says whether two sets can be compared (Section "Evaluation
protocol" of the paper: 200 training levels from 0, 100 held-out levels from 1000).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from gapfloor.errors import UsageError

#: Level seeds are drawn below this number when no range is given (the engine's 31-bit seeds).
ALL_LEVELS_STOP = 2**31 - 1


@dataclass(frozen=True)
class LevelSet:
    """The levels `start <= seed < stop`.

    >>> LevelSet.parse("1000:1100").n
    100
    >>> str(LevelSet.parse("all")), LevelSet.parse("all").is_everything
    ('all', True)
    """

    start: int
    stop: int

    @property
    def n(self) -> int:
        """How many levels the set has."""
        return self.stop - self.start

    @property
    def is_everything(self) -> bool:
        """Whether this is the whole distribution, which is disjoint from nothing."""
        return self.start == 0 and self.stop == ALL_LEVELS_STOP

    def __str__(self) -> str:
        return "all" if self.is_everything else f"{self.start}:{self.stop}"

    def __contains__(self, level_seed: int) -> bool:
        return self.start <= level_seed < self.stop

    @classmethod
    def parse(cls, text: str | range | LevelSet) -> LevelSet:
        """Read `0:200` (half-open) or `all`; a range of Python's means the same levels.

        >>> LevelSet.parse(range(200)) == LevelSet.parse("0:200")
        True
        """
        if isinstance(text, range) and text.step == 1:
            text = f"{text.start}:{text.stop}"
        if isinstance(text, LevelSet):
            return text
        if isinstance(text, range):
            raise UsageError(f"{text} leaves levels out: a level set has every level from START to STOP.")
        if text.strip() == "all":
            return cls(0, ALL_LEVELS_STOP)
        match = re.fullmatch(r"\s*(\d+):(\d+)\s*", text)
        if match is None:
            raise UsageError(
                f"'{text}' is not a level set: write START:STOP (e.g. 0:200; STOP is not included) or all."
            )
        start, stop = int(match[1]), int(match[2])
        if start >= stop:
            raise UsageError(f"The level set '{text}' is empty: STOP must be greater than START.")
        if stop > ALL_LEVELS_STOP:
            raise UsageError(f"The level set '{text}' ends beyond the last level seed, {ALL_LEVELS_STOP}.")
        return cls(start, stop)


def check_disjoint(train: LevelSet, test: LevelSet) -> None:
    """Refuse two ranges that share levels; `all` is accepted, because nothing is disjoint from it."""
    first, stop = max(train.start, test.start), min(train.stop, test.stop)
    if first < stop and not (train.is_everything or test.is_everything):
        raise UsageError(
            f"The level sets {train} and {test} share the levels {first}:{stop}: a gap needs disjoint sets, e.g. 0:200 "
            "for train and 1000:1100 for test."
        )
