"""Commands and options of version 0.2 that have another name now, or are gone.

Those with another name work until the next version, with one line on standard error that names the new one.
"""

from __future__ import annotations

from gapfloor.cli.say import say
from gapfloor.errors import UsageError

#: The first words of a command line -> the words that are written instead.
OLD_COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("over-training",): ("training-curve",),
    ("levels", "check"): ("levels",),
    ("levels", "gap"): ("levels", "--gap"),
    ("engines", "check"): ("doctor",),
    ("engines", "list"): ("doctor",),
    ("floor", "--known"): ("known-floor",),
    ("audit", "registry"): ("audit", "ledger", "--registry"),
    ("study", "preview"): ("study", "status"),
    ("audit", "verify", "--repos"): ("audit", "ledger", "--repos"),
    ("audit", "verify"): ("audit", "ledger", "--repos", "gapfloor-audit-repos"),
}

#: Spellings that are as good as ours.
SAME_COMMANDS = {"analyze": "analyse"}

#: Command and option -> the new option.
OLD_OPTIONS = {
    ("calibrate", "--out"): "--store",
    ("cka", "--out"): "--store",
    ("compare", "--game"): "--games",
    ("evaluate", "--out"): "--store",
    ("floor", "--out"): "--store",
    ("power", "--power"): "--wanted",
    ("replay", "--game"): "--games",
    ("report", "--format"): "--formats",
    ("train", "--out"): "--store",
}

#: Command and flag -> what says the same in the name of the file that is written.
OLD_FLAGS = {
    ("audit scan", "--sarif"): "--out NAME.sarif",
    ("audit scan", "--md"): "--out NAME.md",
}

#: What is gone -> what to use instead.
REMOVED = {
    "audit --clone": "clone the repositories that `audit ledger --registry` names, and check them with --repos",
    "analyse --sb3": "put the files into folders such as game=heist/agent=ppo/seed=1/rule=greedy/level_set=test and "
    "analyse the folder above",
    "calibrate --picture": "the printed classes say which actions are the same",
    "card": "gapfloor report writes the gap card and model-card.md, and gapfloor compare tests two agents",
    "doctor --games": "gapfloor doctor GAME checks one environment",
    "evaluate --without-leaks": "gapfloor levels --gap STORE --leaks FILE gives the gap without leaked levels",
    "plan next": "gapfloor analyse STORE --plan PLAN says how many runs each game needs before its next look",
    "floor --registry": "tools/measure_registry.py of the repository measures a registry",
    **{
        f"power --{name}": "power gives the runs and floor episodes that are needed, whatever they cost"
        for name in ("run-cost", "floor-cost", "level-cost", "budget")
    },
    "power --smallest-delta": "give the smallest difference worth finding with --delta, --sem and --runs",
    "power --simulations": "benchmarks/simulated_families.py of the repository simulates whole families",
    "report --curves": "gapfloor training-curve measures checkpoints; runs/*/log.parquet has one row per update",
    **{
        f"train --{name}": "runs/*/log.parquet in the store has one row per update"
        for name in ("tensorboard", "no-tensorboard")
    },
    "study clean": "delete the folders runs/*/resume and log/tasks of the store",
}


def renew_command(arguments: list[str]) -> list[str]:
    """Command-line arguments with the new name of an old command; what is gone is refused."""
    if arguments and arguments[0] in SAME_COMMANDS:
        return [SAME_COMMANDS[arguments[0]], *arguments[1:]]
    for old, new in OLD_COMMANDS.items():
        if tuple(arguments[: len(old)]) == old:
            _say(" ".join(("gapfloor", *old)), " ".join(("gapfloor", *new)))
            return [*new, *arguments[len(old) :]]
    if arguments[:2] == ["plan", "addendum"] and len(arguments) > 3:
        _say("gapfloor plan addendum PLAN ADDENDUM", "gapfloor plan lock PLAN --addendum ADDENDUM")
        return ["plan", "lock", arguments[2], "--addendum", *arguments[3:]]
    for words, instead in REMOVED.items():
        command, _, rest = words.partition(" ")
        if arguments[:1] == [command] and (not rest or rest in arguments):
            raise UsageError(f"gapfloor {words} was removed: {instead}.")
    return arguments


def renew_options(command: str, arguments: list[str]) -> list[str]:
    """The arguments of `command` with the new names of old options."""
    name = command.removeprefix("gapfloor ")
    renewed = []
    for word in arguments:
        option, equals, value = word.partition("=")
        if (name, option) in OLD_FLAGS:
            if "--out" not in arguments:
                raise UsageError(f"gapfloor {name} {option} was removed: use {OLD_FLAGS[name, option]}.")
            _say(option, OLD_FLAGS[name, option])
            continue
        new = OLD_OPTIONS.get((name, option))
        if new is not None:
            _say(option, new)
        renewed.append(f"{new}{equals}{value}" if new is not None else word)
    return renewed


def _say(old: str, new: str) -> None:
    say(f"gapfloor: {old} is now {new}; the old spelling goes away in the next version.", err=True)
