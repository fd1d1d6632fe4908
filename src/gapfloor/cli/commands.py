"""Every command, with the public function that it is made from. The order is that of `gapfloor --help`."""

from __future__ import annotations

from dataclasses import dataclass

MEASURE, DECIDE, REPORT, AUDIT, ADVANCED = "Measure", "Decide", "Report", "Audit", "Advanced"

HELP_NAMES = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True)
class CommandEntry:
    """A command in the list of commands."""

    section: str
    """The heading under which `gapfloor --help` lists it."""
    function: str
    """`module:name` of the public function, or of a click command that is written by hand."""
    show: str = "result"
    """How the result is printed: the name of a function of `gapfloor.cli.show`."""
    arguments: int = 1
    """How many of the first parameters are arguments; the others are options."""
    has_store: bool = False
    """Whether the command has a store by default, where the function forgets its cells."""
    python_only: frozenset[str] = frozenset()
    """Arguments that hardly anybody changes: the command does not offer them, the function does."""
    takes_pictures: bool = False
    """Whether the command knows which games' pictures the engine will need (`gapfloor.cli.pictures`)."""


_TABLE = frozenset({"columns", "labels", "floor", "decimal"})
_SHAPE = frozenset({"repeats", "slots", "burn_in", "device", "backend"})
_CKA = frozenset({"train", "test", "rule", "seed"})

#: The words of a command -> where it comes from.
COMMANDS: dict[str, CommandEntry] = {
    "floor": CommandEntry(MEASURE, "gapfloor.api.floor:floor", "floor", has_store=True, takes_pictures=True),
    "known-floor": CommandEntry(MEASURE, "gapfloor.api.known_floor:known_floor"),
    "evaluate": CommandEntry(
        MEASURE, "gapfloor.api.evaluate:evaluate", "evaluation", has_store=True, takes_pictures=True
    ),
    "sweep": CommandEntry(
        MEASURE, "gapfloor.api.sweep:sweep", "sweep", has_store=True, python_only=_SHAPE, takes_pictures=True
    ),
    "training-curve": CommandEntry(
        MEASURE, "gapfloor.api.training_curve:training_curve", "training_curve", has_store=True, python_only=_SHAPE
    ),
    "train": CommandEntry(MEASURE, "gapfloor.api.train:train", "training"),
    "calibrate": CommandEntry(MEASURE, "gapfloor.api.calibrate:calibrate", "calibrations", has_store=True),
    "levels": CommandEntry(MEASURE, "gapfloor.api.levels:levels"),
    "plan init": CommandEntry(DECIDE, "gapfloor.api.plan_files:init_plan", "plan_file"),
    "plan lock": CommandEntry(DECIDE, "gapfloor.api.plan_files:lock_file", "lock"),
    "plan check": CommandEntry(DECIDE, "gapfloor.api.plan_files:check_plan"),
    "plan next": CommandEntry(DECIDE, "gapfloor.api.plan_next:next_runs", python_only=_TABLE),
    "power": CommandEntry(DECIDE, "gapfloor.api.power:power", python_only=_TABLE),
    "analyse": CommandEntry(DECIDE, "gapfloor.api.analyse:analyse", "analysis"),
    "compare": CommandEntry(
        DECIDE, "gapfloor.api.compare:compare", "comparison", arguments=2, has_store=True, python_only=_SHAPE
    ),
    "report": CommandEntry(REPORT, "gapfloor.api.report:report"),
    "replay": CommandEntry(REPORT, "gapfloor.api.replay:replay", "replays"),
    "verify": CommandEntry(REPORT, "gapfloor.api.verify:verify", "verification"),
    "audit": CommandEntry(AUDIT, "gapfloor.cli.audit:command"),
    "study": CommandEntry(ADVANCED, "gapfloor.cli.study:command"),
    "cka": CommandEntry(ADVANCED, "gapfloor.api.cka:cka", "cka", has_store=True, python_only=_CKA),
    "doctor": CommandEntry(ADVANCED, "gapfloor.api.doctor:doctor", "diagnosis"),
}  # fmt: skip

#: A group of commands -> what it is about.
GROUPS = {
    "plan": "Write, lock, check or follow an analysis plan, which fixes the tests before the data are in.",
}
