"""Floors that come with the package: to be shown next to measured ones, or used where a table of means has none.

The registry has what policies that know nothing earn in public environments, and what was published. Its entries
(`data/registry.json`, `data/registry.csv`) are measured by `python tools/measure_registry.py studies/registry.toml`.
Published scores are facts with their source; they stand next to ours with the difference, because conditions (starts,
versions, numbers of episodes) are seldom the same.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gapfloor.analysis.rows import ReturnRow
from gapfloor.errors import UsageError, nearest_names
from gapfloor.settings import from_table, shipped, to_table
from gapfloor.statistics.conventions import LARGEST
from gapfloor.tables.cells import counted, formatted
from gapfloor.tables.readable import ReadableResult
from gapfloor.tables.table import Table, table_of


@dataclass(frozen=True, kw_only=True)
class RegisteredFloor:
    """What one reference earned."""

    reference: str
    """uniform (the floor), zero (the action of zeros) or best-constant."""
    action: str = ""
    """The action that best-constant chose; empty for the others."""
    mean: float
    """Mean return."""
    sem: float
    """Standard error over seeds: sd(ddof=1)/sqrt(n)."""
    n_episodes: int
    """Episodes, one per seed."""
    length: float
    """Mean number of steps."""
    quantiles: tuple[float, ...]
    """Returns at 5, 25, 50, 75 and 95% of the episodes."""
    success: float | None = None
    """Share of successful episodes, where the task defines success."""
    seeds: str = ""
    """The seeds that were played, where they are fewer than the uniform floor's."""
    provenance: str
    """SHA-256 over the keys and contents of the cells; it holds no time and no place."""


@dataclass(frozen=True, kw_only=True)
class PublishedScore:
    """A random score that somebody published."""

    game: str
    """The environment, as gapfloor names it."""
    mode: str = ""
    """ProcGen's mode; empty elsewhere."""
    score: float
    """The published score of a policy that knows nothing."""
    upper: float | None = None
    """The upper reference that the same source publishes."""
    upper_name: str = ""
    """What the upper reference is, e.g. human."""
    source: str
    """Where it is published."""
    conditions: str = ""
    """How it was measured, as far as the source says."""


@dataclass(frozen=True, kw_only=True, repr=False)
class RegisteredEnvironment(ReadableResult):
    """The floors of one environment."""

    row_names = ("floors", "published")

    game: str
    """The environment, as gapfloor names it."""
    mode: str = ""
    """ProcGen's mode; empty elsewhere."""
    family: str
    """The family, e.g. MuJoCo."""
    engine: str
    """The engine that played."""
    version: str
    """The versions of the engine and of the packages in the environment."""
    actions: str
    """The action space."""
    seed: str
    """What a seed decides: level, start state, chance, or a combination."""
    seeds_seen: str
    """What four seeds showed: different first observations and different episodes under the same actions."""
    seeds: str
    """The seeds that were played, each once."""
    chosen_on: str = ""
    """The seeds on which the best constant action was chosen; empty: there is none."""
    command: str
    """The command that measures it."""
    floors: tuple[RegisteredFloor, ...]
    """One entry per reference; the first is the uniform floor."""
    published: tuple[PublishedScore, ...] = ()
    """Published random scores."""

    @property
    def floor(self) -> RegisteredFloor:
        """The uniform floor."""
        return self.floors[0]

    @property
    def label(self) -> str:
        """The environment with its mode, if it has one."""
        return f"{self.game} ({self.mode})" if self.mode else self.game

    def difference(self, score: PublishedScore) -> tuple[float, float]:
        """Our floor minus a published score, and that difference over our standard error (nan where that is 0)."""
        delta = self.floor.mean - score.score
        return delta, delta / self.floor.sem if self.floor.sem else math.nan

    def to_dict(self) -> dict[str, Any]:
        """The entry as JSON values, without those that are absent."""
        document: dict[str, Any] = to_table(self)
        return document

    def table(self) -> Table:
        """One row per reference."""
        return FloorRegistry((self,)).table()

    def sentences(self) -> list[str]:
        """What a seed is, published scores, and how to measure it again."""
        lines = [f"A seed decides: {self.seed} ({self.seeds_seen})."]
        for score in self.published:
            delta, z = self.difference(score)
            against = f"z = {z:.1f}" if math.isfinite(z) else "our floor has no spread"
            lines.append(
                f"Published random score: {formatted('fine', score.score).typed} ({score.source}); ours minus that: "
                f"{formatted('+2', delta).typed}, {against}."
            )
        return [*lines, f"Measured with {self.engine} {self.version}: {self.command}"]


@dataclass(frozen=True, repr=False)
class FloorRegistry(ReadableResult):
    """Many environments with their floors."""

    row_names = ("entries",)

    entries: tuple[RegisteredEnvironment, ...]
    """The environments, in the order in which they were measured."""

    @property
    def families(self) -> tuple[str, ...]:
        """The families, in the order of the entries."""
        return tuple(dict.fromkeys(entry.family for entry in self.entries))

    def to_dict(self) -> dict[str, Any]:
        """The document of `registry.json`."""
        return {"version": 1, "environments": [entry.to_dict() for entry in self.entries]}

    def table(self) -> Table:
        """One row per environment and reference."""
        return table_of(
            "registry",
            [
                {
                    "environment": entry.label, "family": entry.family, "seed": entry.seed, "mean": floor.mean,
                    "reference": f"{floor.reference} ({floor.action})" if floor.action else floor.reference,
                    "sem": floor.sem, "n_episodes": floor.n_episodes, "length": floor.length,
                    "published": ", ".join(formatted("fine", each.score).typed for each in entry.published)
                    if floor is entry.floor
                    else "",
                    **({} if floor.success is None else {"success": floor.success}),
                }
                for entry in self.entries
                for floor in entry.floors
            ],
        )  # fmt: skip

    def sentences(self) -> list[str]:
        """How much there is."""
        if not self.entries:
            return []
        entries = counted(len(self.entries), "entry", "entries")
        families = counted(len(self.families), "family", "families")
        return [f"{entries} of {families}: {', '.join(self.families)}."]

    def of_family(self, name: str) -> FloorRegistry:
        """The environments of one family; a family that is not there is refused with those that are."""
        found = tuple(entry for entry in self.entries if folded(entry.family) == folded(name))
        if not found:
            raise UsageError(f"The registry has no family '{name}': {nearest_names(name, self.families)}")
        return FloorRegistry(found)


@functools.cache
def shipped_registry() -> FloorRegistry:
    """The registry that comes with the package."""
    document = shipped("data/registry.json")
    return FloorRegistry(
        tuple(
            from_table(RegisteredEnvironment, each, source="registry.json")
            for each in document["environments"]
        )
    )


@functools.cache
def published_scores() -> tuple[PublishedScore, ...]:
    """Published random scores, each with its source."""
    scores: list[PublishedScore] = []
    for source in shipped("data/published_scores.json")["sources"]:
        shared = {name: source[name] for name in ("source", "conditions", "upper_name")}
        scores += [PublishedScore(**shared, **each) for each in source["scores"]]
    return tuple(scores)


def upper_reference(upper: float | str | None, *, game: str, mode: str | None) -> tuple[float, str] | None:
    """A stated upper reference with its name: a number, or `published` for the one of this game.

    >>> upper_reference("published", game="envpool:Pong-v5", mode=None)
    (14.6, 'human, dqn_zoo, atari_data.py')
    """
    if upper is None:
        return None
    if upper == "published":
        for score in published_scores():
            if score.game == game and score.mode in ("", mode or "easy") and score.upper is not None:
                return score.upper, f"{score.upper_name}, {score.source}"
        raise UsageError(f"No upper reference is published for {game}: state a number, e.g. --upper 100.")
    try:
        value = float(upper)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"The upper reference is {upper!r}: give a number, or published.")
    return value, "stated"


def find_entry(
    entries: Sequence[RegisteredEnvironment], game: str, mode: str | None
) -> RegisteredEnvironment:
    """The entry of one environment; one that is not there is refused with the nearest names."""
    found = [entry for entry in entries if entry.game == game and mode in (None, entry.mode)]
    if not found:
        names = dict.fromkeys(entry.label if mode else entry.game for entry in entries)
        asked = f"{game} ({mode})" if mode else game
        raise UsageError(
            f"The registry has no floor of '{asked}': {nearest_names(asked, names)} Any environment can be measured "
            f"with gapfloor floor {game}."
        )
    return found[0]


def folded(name: str) -> str:
    """A name as it is compared: letters and digits in lower case."""
    return "".join(sign for sign in name.lower() if sign.isalnum())


def shipped_procgen_floor(row: ReturnRow, key: str) -> dict[str, float] | None:
    """The same floor in ProcGen as the package's own data (`measured`) or the paper (`paper`) have it."""
    if row.reference != "uniform" or row.engine.split(" ")[0] != "procgen":
        return None
    wanted = (row.game, row.mode, row.levels)
    floors = shipped("data/floors.json")[key]["floors"]
    return next((each for each in floors if (each["game"], each["mode"], each["levels"]) == wanted), None)


@dataclass(frozen=True)
class StatedFloor:
    """A floor that was not measured here."""

    mean: float
    sem: float
    n: int
    """Its episodes; 0 where they are not known."""
    origin: str
    """Where it comes from, in words; empty for rows of a table."""


#: Names of an Atari game in Gymnasium, of which the registry has one.
_ATARI = re.compile(r"(?:ALE/)?(\w+?)(?:NoFrameskip-v[04]|Deterministic-v[04])|ALE/(\w+)-v5")


def find_known_floor(game: str, mode: str, level_set: str) -> StatedFloor | None:
    """The floor that ships with gapfloor for a game by any of its names.

    >>> find_known_floor("CoinRun", "easy", "test").n
    384
    """
    wanted = folded(next(filter(None, found.groups()), game) if (found := _ATARI.fullmatch(game)) else game)
    for entry in shipped("data/floors.json")["measured"]["floors"]:
        if (folded(entry["game"]), entry["mode"], entry["level_set"]) == (wanted, mode, level_set):
            origin = f"the floor is the one that ships with gapfloor: {mode} levels {entry['levels']}"
            return StatedFloor(entry["mean"], entry["sem"], entry["n_episodes"], origin)
    for known in shipped_registry().entries:
        name = known.game.partition(":")[2] or known.game
        if wanted in (folded(known.game), folded(name), folded(name.rpartition("-v")[0])):
            floor = known.floor
            origin = (
                f"the floor is the registry's: {known.game} {known.mode}".rstrip() + f", seeds {known.seeds}"
            )
            return StatedFloor(floor.mean, floor.sem, floor.n_episodes, origin)
    return None


def is_stated_floor(text: str) -> bool:
    """Whether a user's floor is a number, numbers per game or the registry, and not the name of rows.

    >>> is_stated_floor("3.1±0.2"), is_stated_floor("heist=3,maze=5"), is_stated_floor("random")
    (True, True, False)
    """
    values = [part.rpartition("=")[2] for part in text.split(",")]
    return text == "registry" or (bool(text) and all(map(parse_cell, values)))


def stated_floors(text: str) -> dict[str, StatedFloor]:
    """The floors in "3.1±0.2" (of every game, under an empty name) or "heist=3.1±0.2,maze=5±0.1"; ± is an error."""
    found = {}
    for part in text.split(","):
        game, equals, value = part.rpartition("=")
        parsed = parse_cell(value)
        if parsed is None or (equals and not game.strip()):
            raise UsageError(
                f"--floor {part!r} is neither an agent of the table, nor registry, nor a number such as 3.1±0.2 (its "
                "standard error) or heist=3.1±0.2."
            )
        mean, error, _ = parsed
        origin = f"the floor {value.strip()} was stated" + (" without its error" if error is None else "")
        found[game.strip()] = StatedFloor(mean, error or 0.0, 0, origin)
    return found


# Nothing is given back (`*+`): a cell of a thousand spaces would be tried in all ways to divide them.
_NUMBER = r"[-+]?(?:\d[\d ]*+(?:,\d{3})*+\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?"
_CELL = re.compile(rf"\s*+({_NUMBER})\s*+(%?)\s*+(?:(?:±|\+/-|\+-|\()\s*+({_NUMBER})\s*+%?\s*+\)?)?\s*+")


def parse_cell(text: str) -> tuple[float, float | None, float] | None:
    """A number, the one after ± if there is one, and what both were multiplied by; None for other texts.

    >>> parse_cell("4.0 ± 0.3"), parse_cell("85%"), parse_cell("n/a")
    ((4.0, 0.3, 1.0), (0.85, None, 0.01), None)
    """
    found = _CELL.fullmatch(text)
    if found is None:
        return None
    scale = 0.01 if found[2] else 1.0
    return parse_number(found[1]) * scale, parse_number(found[3]) * scale if found[3] else None, scale


def parse_number(text: str) -> float:
    """A number as people write it, with spaces or commas between thousands."""
    try:
        value = float(text.replace(" ", "").replace(",", ""))
    except ValueError:
        raise UsageError(f"{text!r} is not a number.") from None
    if not abs(value) <= LARGEST:
        raise UsageError(
            f"The number {text} is too large to compute with: divide all of them by one constant."
        )
    return value
