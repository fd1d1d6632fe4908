"""Commands and options of version 0.2 that have another name now.

They work until the next version, with one line on standard error that names the new one.
"""

from __future__ import annotations

from gapfloor.cli.say import say
from gapfloor.errors import UsageError

#: The first words of a command line -> the words that are written instead.
OLD_COMMANDS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("over-training",): ("training-curve",),
    ("levels", "check"): ("levels",),
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
    ("plan lock", "--episodes"): "--store",
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


def renew_command(arguments: list[str]) -> list[str]:
    """Command-line arguments with the new name of an old command."""
    if arguments and arguments[0] in SAME_COMMANDS:
        return [SAME_COMMANDS[arguments[0]], *arguments[1:]]
    for old, new in OLD_COMMANDS.items():
        if tuple(arguments[: len(old)]) == old:
            _say(" ".join(("gapfloor", *old)), " ".join(("gapfloor", *new)))
            return [*new, *arguments[len(old) :]]
    if arguments[:2] == ["plan", "addendum"] and len(arguments) > 3:
        _say("gapfloor plan addendum PLAN ADDENDUM", "gapfloor plan lock PLAN --addendum ADDENDUM")
        return ["plan", "lock", arguments[2], "--addendum", *arguments[3:]]
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
