"""The file that lists the environments of a registry of floors, with references and seeds (`studies/registry.toml`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gapfloor.engines.engine import Option
from gapfloor.errors import UsageError, unknown_name
from gapfloor.levels.schedule import LevelSet
from gapfloor.play.protocol import Protocol, make_protocol
from gapfloor.play.references import BEST_CONSTANT, UNIFORM, check_references
from gapfloor.settings import from_table, read_toml

#: How success is found: all-or-nothing returns are recognised by themselves, others need one of these.
SUCCESS_FORMS = ("", "positive return", "reported")


@dataclass(frozen=True, kw_only=True)
class FloorGroup:
    """Environments of one family that are measured in the same way."""

    family: str
    games: tuple[str, ...]
    references: tuple[str, ...] = (UNIFORM,)
    train: str = "none"
    """Seeds on which the best constant action is chosen."""
    test: str
    """Seeds that are played once each and reported."""
    others: str = ""
    """Seeds on which references other than uniform are reported; empty: those of `test`."""
    mode: str = ""
    options: Mapping[str, Option] = field(default_factory=dict)
    success: str = ""
    """`positive return`, or `reported` where the environment's info says it; empty: all-or-nothing returns only."""

    @property
    def plays(self) -> tuple[ReferencePlay, ...]:
        """The references that are played together: uniform, then the others with the seeds for choosing."""
        others = self.references[1:]
        if not others:
            return (ReferencePlay((UNIFORM,), "none", self.test),)
        train = self.train if BEST_CONSTANT in others else "none"
        return (
            ReferencePlay((UNIFORM,), "none", self.test),
            ReferencePlay(others, train, self.others or self.test),
        )

    def protocol(
        self, game: str, play: ReferencePlay, *, options: Mapping[str, Option] | None = None
    ) -> Protocol:
        """The checked protocol of one environment."""
        return make_protocol(
            [game], mode=self.mode or None, options={**self.options, **(options or {})}, train=play.train,
            test=play.test, design="census",
        )  # fmt: skip

    def command(self, game: str) -> str:
        """The command, or the two of them, that measures one environment in the same way."""
        engine = [f"--mode {self.mode}"] * bool(self.mode)
        engine += [f"--option {name}={_written(value)}" for name, value in self.options.items()]
        return " && ".join(" ".join(["gapfloor floor", game, *engine, play.arguments]) for play in self.plays)


@dataclass(frozen=True)
class ReferencePlay:
    """References that are played on the same seeds."""

    references: tuple[str, ...]
    train: str
    test: str

    @property
    def arguments(self) -> str:
        """The arguments of `gapfloor floor` that say the same."""
        named = " ".join(f"--reference {name}" for name in self.references)
        return f"--design census --train {self.train} --test {self.test} {named}"


@dataclass(frozen=True, kw_only=True)
class RegistryFile:
    """What a registry file says."""

    name: str = "registry"
    floors: tuple[FloorGroup, ...]


def read_registry_file(path: Path) -> RegistryFile:
    """The checked file: every name and range is read before anything is played."""
    found = from_table(RegistryFile, read_toml(path), source=path.name)
    if not found.floors:
        raise UsageError(
            f"{path.name} lists no environments: add a [[floors]] table with family, games and test."
        )
    for group in found.floors:
        check_references(group.references)
        if group.references[0] != UNIFORM:
            raise UsageError(
                f"{path.name}: the references of {group.family} must start with uniform, the floor."
            )
        if BEST_CONSTANT in group.references and group.train == "none":
            raise UsageError(
                f"{path.name}: best-constant of {group.family} is chosen on other seeds than it is reported on: "
                'give train, e.g. train = "0:20".'
            )
        if group.success not in SUCCESS_FORMS:
            raise unknown_name("form of success", group.success, [form for form in SUCCESS_FORMS if form])
        for seeds in (group.test, group.others or group.test):
            LevelSet.parse(seeds)
    return found


def _written(value: Option) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
