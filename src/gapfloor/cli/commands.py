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
    """`module:name` of the public function."""
    arguments: int = 1
    """How many of the first parameters are arguments; the others are options."""
    python_only: str = ""
    """Arguments that hardly anybody changes: the command does not offer them, the function does."""
    has_store: bool = False
    """Whether the command has a store by default, where the function forgets its cells."""
    names_store: bool = False
    """Whether the function itself has a default store, which the environment can name too."""
    takes_pictures: bool = False
    """Whether the command knows which games' pictures the engine will need (`gapfloor.cli.show`)."""
    takes_command: bool = False
    """Whether the argument is a command of the user's, which may have options of its own."""


_ENGINE = "repeats slots burn_in device backend design options score level_in batch mode out"
_PLAYS = {"has_store": True, "takes_pictures": True}

#: The words of a command -> where it comes from.
COMMANDS: dict[str, CommandEntry] = {
    "floor": CommandEntry(
        MEASURE, "gapfloor.api.floor:floor", python_only="burn_in batch device backend", **_PLAYS
    ),
    "known-floor": CommandEntry(MEASURE, "gapfloor.api.floor:known_floor", python_only="mode"),
    "evaluate": CommandEntry(MEASURE, "gapfloor.api.evaluate:evaluate", python_only="burn_in", **_PLAYS),
    "sweep": CommandEntry(
        MEASURE, "gapfloor.api.checkpoints:sweep", python_only=f"{_ENGINE} budget seed", **_PLAYS
    ),
    "training-curve": CommandEntry(
        MEASURE, "gapfloor.api.checkpoints:training_curve", python_only=f"{_ENGINE} train", has_store=True
    ),
    "train": CommandEntry(MEASURE, "gapfloor.api.train:train"),
    "calibrate": CommandEntry(
        MEASURE, "gapfloor.api.calibrate:calibrate", python_only="spacing workers", has_store=True
    ),
    "levels": CommandEntry(MEASURE, "gapfloor.api.levels:levels"),
    "plan init": CommandEntry(DECIDE, "gapfloor.api.plan_files:init_plan"),
    "plan lock": CommandEntry(DECIDE, "gapfloor.api.plan_files:lock_file"),
    "plan check": CommandEntry(DECIDE, "gapfloor.api.plan_files:check_plan"),
    "power": CommandEntry(
        DECIDE, "gapfloor.api.power:power",
        python_only="columns labels decimal alpha floor floor_episodes level_set step",
    ),
    "analyse": CommandEntry(DECIDE, "gapfloor.api.analyse:analyse", python_only="decimal"),
    "compare": CommandEntry(DECIDE, "gapfloor.api.compare:compare", arguments=2, python_only="budgets"),
    "report": CommandEntry(REPORT, "gapfloor.api.report:report", python_only="decimal tables"),
    "replay": CommandEntry(REPORT, "gapfloor.api.replay:replay", python_only="level_set"),
    "verify": CommandEntry(REPORT, "gapfloor.api.verify:verify", python_only="seed"),
    "audit scan": CommandEntry(AUDIT, "gapfloor.api.audit:audit_scan"),
    "audit trace": CommandEntry(AUDIT, "gapfloor.api.audit:audit_trace", takes_command=True),
    "audit ledger": CommandEntry(AUDIT, "gapfloor.api.audit:audit_ledger", arguments=0),
    "study run": CommandEntry(ADVANCED, "gapfloor.study.commands:run", names_store=True),
    "study status": CommandEntry(ADVANCED, "gapfloor.study.commands:status", names_store=True),
    "cka": CommandEntry(ADVANCED, "gapfloor.api.cka:cka", python_only="draw test train", has_store=True),
    "doctor": CommandEntry(ADVANCED, "gapfloor.api.doctor:doctor"),
}  # fmt: skip

#: A group of commands -> what it is about.
GROUPS = {
    "plan": "Write, lock or check an analysis plan, which fixes the tests before the data are in.",
    "audit": "Find the action rule that a code base uses at test time.",
    "study": "Run a whole study from one file: train, calibrate, evaluate, analyse and report.",
}
