"""A stranger's columns and labels under our names; what is unclear is refused with the nearest name."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from gapfloor.analysis.table_options import ALIASES, TableOptions
from gapfloor.analysis.table_pieces import constant_column, folded_name
from gapfloor.errors import UsageError

#: The rule that marks the floor.
FLOOR_RULE = "uniform"
LEVEL_SETS = ("train", "test")
#: What a rule is called elsewhere. It is not translated: the same word means different things in different tools.
_RULE_HINTS = {
    **dict.fromkeys(("stochastic", "sample", "sampling", "probabilistic"), "sampled"),
    **dict.fromkeys(("deterministic", "argmax", "max", "mode"), "greedy"),
    **dict.fromkeys(("random", "floor", "chance"), FLOOR_RULE),
}
_SET_HINTS = {
    **dict.fromkeys(("training", "seen", "in-distribution", "id"), "train"),
    **dict.fromkeys(
        ("testing", "heldout", "held-out", "held_out", "unseen", "eval", "evaluation", "ood"), "test"
    ),
}
#: What is filled in, with a remark, where a file does not say.
_DEFAULTS = {
    "budget": ("all", "no column 'budget': all episodes count as one budget"),
    "draw": ("0", "no column 'draw': all episodes count as one draw of levels"),
}
#: What a file must say, or the user for it.
_NEEDED = ("game", "agent", "seed", "rule", "level_set", "episode_return")


def name_columns(table: pa.Table, options: TableOptions, *, source: str) -> tuple[pa.Table, list[str]]:
    """The table with our column names and the labels that the user supplied, and remarks on what was done."""
    theirs = list(table.column_names)
    table, notes = _rename(table, options, source)
    for name, value in options.labels.items():
        if name in table.column_names:
            raise UsageError(f"{source} has a column '{name}' already: leave out --label {name}={value}.")
        table = _append(table, name, value)
    table = _apply_floor(table, options, source)
    missing = [name for name in _NEEDED if name not in table.column_names]
    if missing:
        raise _missing_columns(missing, theirs, source)
    for name, (value, note) in _DEFAULTS.items():
        if name not in table.column_names:
            table = _append(table, name, value)
            notes.append(note)
    return table, notes


def _append(table: pa.Table, name: str, value: str) -> pa.Table:
    return table.append_column(name, constant_column(value, table.num_rows))


def _rename(table: pa.Table, options: TableOptions, source: str) -> tuple[pa.Table, list[str]]:
    names = list(table.column_names)
    notes = []
    for ours, theirs in options.columns.items():
        if theirs not in names:
            raise UsageError(
                f"{source} has no column '{theirs}' (--columns {ours}={theirs}): it has {_listed(names)}."
            )
        if ours in names and ours != theirs:
            names[names.index(ours)] = f"{ours} (not used)"
        names[names.index(theirs)] = ours
    folded = {folded_name(name): name for name in reversed(names)}
    for ours, aliases in ALIASES.items():
        if ours in names or ours in options.labels:
            continue
        found = [
            folded[alias] for alias in (ours, *aliases) if alias in folded and folded[alias] not in ALIASES
        ]
        if len(found) > 1:
            raise UsageError(
                f"{source} has several columns that could be '{ours}' ({_listed(found)}): choose one with "
                f"--columns {ours}={found[0]}."
            )
        if found:
            names[names.index(found[0])] = ours
            notes.append(f"the column '{found[0]}' is read as {ours}")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise UsageError(f"{source} has the column '{repeated[0]}' more than once.")
    return table.rename_columns(names), notes


def _missing_columns(missing: Sequence[str], names: Sequence[str], source: str) -> UsageError:
    first = missing[0]
    others = f" (and none for {', '.join(missing[1:])})" if missing[1:] else ""
    remedy = f"--columns {first}=NAME names the column"
    if first != "episode_return":
        remedy += f", --label {first}=VALUE gives one value for all episodes"
    accepted = ", ".join((first, *ALIASES[first][:5]))
    return UsageError(
        f"{source} has no column for {first}{others}. It has {_listed(names)}; accepted names are {accepted}. {remedy}."
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:20])
    return f"{shown} and {len(names) - 20} more" if len(names) > 20 else shown or "no columns"


def _apply_floor(table: pa.Table, options: TableOptions, source: str) -> pa.Table:
    """Rows of the agent or rule that the user calls the floor become rows of the reference `uniform`."""
    if not options.floor:
        return table
    is_floor = pa.chunked_array([pa.repeat(False, table.num_rows)])
    for name in ("agent", "rule", "reference"):
        if name in table.column_names:
            same = pc.equal(pc.fill_null(table[name].cast(pa.string()), ""), options.floor)
            is_floor = pc.or_(is_floor, same)
    if not pc.any(is_floor).as_py():
        raise UsageError(f"{source} has no agent or rule '{options.floor}' (--floor).")
    for name, value in (("rule", FLOOR_RULE), ("reference", FLOOR_RULE), ("agent", ""), ("seed", "")):
        if name in table.column_names:
            text = table[name].cast(pa.string())
            changed = pc.if_else(is_floor, value, text)
            table = table.set_column(table.column_names.index(name), name, changed.dictionary_encode())
        elif name == "reference":
            table = table.append_column(name, pc.if_else(is_floor, value, ""))
    return table


def normal_level_set(name: str, *, source: str) -> str:
    """A level set's label in lower case; anything but train, test and a range of levels is refused.

    >>> normal_level_set("Train", source="the file"), normal_level_set("0:200", source="the file")
    ('train', '0:200')
    """
    folded = name.strip().lower()
    if folded in LEVEL_SETS or re.fullmatch(r"\d+:\d+|all", folded):
        return folded
    hint = _SET_HINTS.get(folded)
    remedy = (
        f"did you mean {hint}? Rename it in the file"
        if hint
        else "rename it in the file, or leave its rows out"
    )
    raise UsageError(f"{source}: the level set '{name}' is neither train nor test: {remedy}.")


def normal_rule(name: str, *, source: str) -> str:
    """A rule's label in lower case; another tool's word for a rule is refused with ours.

    >>> normal_rule("Sampled", source="the file")
    'sampled'
    """
    folded = name.strip().lower()
    hint = _RULE_HINTS.get(folded)
    if hint is None:
        return folded
    remedy = f"--floor {name}" if hint == FLOOR_RULE else f"rename it to {hint} if that is what it means"
    raise UsageError(f"{source}: the rule '{name}' is not one of ours: {remedy}.")


def refuse_mixed_seeds(names: Sequence[str], *, source: str) -> None:
    """Refuse seeds of which some are numbers and some are words: a typing error would count as another run."""
    words = [name for name in names if name and not re.fullmatch(r"-?\d+", name)]
    numbers = [name for name in names if re.fullmatch(r"-?\d+", name)]
    if words and numbers:
        raise UsageError(
            f"{source}: the seed '{words[0]}' is not a whole number, but {len(numbers)} other seeds are. Correct it."
        )
