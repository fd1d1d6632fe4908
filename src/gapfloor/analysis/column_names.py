"""A stranger's columns and labels under our names: what they are called elsewhere, and what the user says about them.

What is unclear is refused with the nearest name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gapfloor.analysis.inputs import FLOOR_RULE
from gapfloor.errors import UsageError, nearest_names, unknown_name
from gapfloor.settings import shipped

_NAMES = shipped("data/table_names.toml")
#: Columns that a table of episodes can have, and those of a table of means, with other names for them.
ALIASES: dict[str, list[str]] = _NAMES["episodes"]
SUMMARY_ALIASES: dict[str, list[str]] = _NAMES["means"]
_COLUMNS = {**ALIASES, **SUMMARY_ALIASES}
#: A folded name of a column -> our name for it.
_MEANINGS = {name: ours for ours, names in _COLUMNS.items() for name in (ours, *names)}

#: Labels that a column of constants can supply.
LABEL_NAMES: tuple[str, ...] = tuple(_NAMES["labels"])
#: The same for a table of means, which also has the number of runs, and whether ± is a std or a sem.
_CONSTANTS = (*LABEL_NAMES, "n", "spread")


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How to read a table that another tool wrote."""

    columns: str | Mapping[str, str] = ""
    """Columns of the table that have other names, e.g. game=env,episode_return=score."""
    labels: Sequence[str] | Mapping[str, str] = ()
    """A label that holds for all rows and has no column, e.g. level_set=test."""
    floor: str = ""
    """The floor: the agent or rule of its rows, a number with its standard error (3.1±0.2, or heist=3.1±0.2 for each
    game), or registry for the floors that ship with gapfloor."""
    decimal: Literal[".", ","] = "."
    """Decimal mark of the numbers in a text file."""
    step: Literal["", "last"] = ""
    """Which step of a learning curve to use: last (default: learning curves are refused)."""

    def __post_init__(self) -> None:
        for given, what, known in (
            (self.names, "column", [*_COLUMNS]),
            (self.constants, "label", _CONSTANTS),
        ):
            for name in given:
                if name not in known:
                    raise unknown_name(what, name, known)
        if self.decimal not in (".", ","):
            raise UsageError(f"--decimal {self.decimal!r} is not a decimal mark: use . or ,")
        if self.step not in ("", "last"):
            raise UsageError(f"--step {self.step!r} is not known: use last, or leave it out.")

    @cached_property
    def names(self) -> dict[str, str]:
        """Our name of a column -> the table's name.

        >>> TableOptions(columns="game=env").names
        {'game': 'env'}
        """
        if isinstance(self.columns, str):
            return _name_value_pairs(list(filter(str.strip, self.columns.split(","))), "--columns")
        return _name_value_pairs(self.columns, "--columns")

    @cached_property
    def constants(self) -> dict[str, str]:
        """Label -> the value that every row has."""
        return _name_value_pairs(self.labels, "--label")

    def with_rule(self, rule: str) -> TableOptions:
        """The same with the label `rule`, unless it is empty."""
        if not rule:
            return self
        if self.constants.get("rule", rule) != rule:
            raise UsageError(
                f"--rule {rule} and --label rule={self.constants['rule']} contradict each other."
            )
        return replace(self, labels={**self.constants, "rule": rule})


def _name_value_pairs(parts: Sequence[str] | Mapping[str, str], option: str) -> dict[str, str]:
    """NAME=VALUE texts as a mapping; `option` names them in errors."""
    if isinstance(parts, Mapping):
        return {str(name): str(value) for name, value in parts.items()}
    found: dict[str, str] = {}
    for part in parts:
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not (name and equals and value):
            raise UsageError(f"{option} {part!r} is not NAME=VALUE.")
        if found.get(name, value) != value:
            raise UsageError(f"{option} names {name} twice: {found[name]} and {value}.")
        found[name] = value
    return found


def folded_name(name: str) -> str:
    """A column's name as it is compared: `Episode Return` and `charts/episode_return` are `episode_return`."""
    return re.sub(r"[\s-]+", "_", name.rpartition("/")[2].strip().lower())


def meaning(name: str, options: TableOptions) -> str:
    """Which of our columns a file's column may be, or nothing. Several columns may have the same meaning."""
    for ours, theirs in options.names.items():
        if theirs == name.strip():
            return ours
    return _MEANINGS.get(folded_name(name), "")


def success_column(names: Iterable[str], options: TableOptions) -> str:
    """The column of success rates where none of returns or means is named, or nothing."""
    names = [*names]
    if {"episode_return", "mean"} & {meaning(name, options) for name in names}:
        return ""
    return next((name for name in names if folded_name(name) in _NAMES["success"]), "")


def holds_episodes(names: Sequence[str], options: TableOptions) -> bool:
    """Whether a table with these columns has a row per episode, as far as its header tells."""
    found = {meaning(name, options) for name in names}
    return "episode_return" in found and not found & {"std", "sem"}


def name_columns(table: pa.Table, options: TableOptions, *, source: str) -> tuple[pa.Table, list[str]]:
    """The table with our column names and the labels that the user supplied, and remarks on what was done."""
    theirs = list(table.column_names)
    table, notes = _rename(table, options, source)
    for name, value in options.constants.items():
        if name in table.column_names:
            raise UsageError(f"{source} has a column '{name}' already: leave out --label {name}={value}.")
        table = _append(table, name, value)
    missing = [name for name in _NAMES["needed"] if name not in table.column_names]
    if missing:
        raise _missing_columns(missing, theirs, source)
    table = _apply_floor(table, options, source)
    for name, (value, *words) in _NAMES["defaults"].items():
        if name not in table.column_names:
            table = _append(table, name, value)
            notes += [f"no column '{name}': {note}" for note in words]
    return table, notes


def _append(table: pa.Table, name: str, value: str) -> pa.Table:
    codes = pa.array(np.zeros(table.num_rows, dtype=np.int8))
    return table.append_column(name, pa.DictionaryArray.from_arrays(codes, pa.array([value])))


def _rename(table: pa.Table, options: TableOptions, source: str) -> tuple[pa.Table, list[str]]:
    names = list(table.column_names)
    notes = []
    for ours, theirs in options.names.items():
        if theirs not in names:
            raise UsageError(
                f"{source} has no column '{theirs}' (--columns {ours}={theirs}): it has {_listed(names)}."
            )
        if ours in names and ours != theirs:
            names[names.index(ours)] = f"{ours} (not used)"
        names[names.index(theirs)] = ours
    for ours in ALIASES:
        if ours in names or ours in options.constants:
            continue
        found = sorted(n for n in names if _MEANINGS.get(folded_name(n)) == ours and n not in ALIASES)
        if ours == "episode_return" and (success := success_column(names, options)):
            found = [success]
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
    named = ",".join(f"{name}=NAME" for name in missing)
    remedy = f"--columns {named} names the column{'s' if missing[1:] else ''}"
    if first != "episode_return":
        remedy += f", --label {first}=VALUE gives one value for all rows"
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
    known: dict[str, None] = {}
    for name in ("agent", "rule", "reference"):
        if name in table.column_names:
            labels = pc.fill_null(table[name].cast(pa.string()), "")
            is_floor = pc.or_(is_floor, pc.equal(labels, options.floor))
            known |= dict.fromkeys(label for label in labels.unique().to_pylist() if label)
    if not pc.any(is_floor).as_py():
        raise UsageError(
            f"{source} has no agent or rule '{options.floor}' (--floor): {nearest_names(options.floor, known)} If no "
            "row is the floor, use --floor registry for the shipped floors, or state scores: --floor heist=3.1±0.2."
        )
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
    if re.fullmatch(r"train|test|\d+:\d+|all", folded):
        return folded
    hint = _our_word("level_sets", folded)
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
    hint = _our_word("rules", folded)
    if not hint:
        return folded
    remedy = f"--floor {name}" if hint == FLOOR_RULE else f"rename it to {hint} if that is what it means"
    raise UsageError(f"{source}: the rule '{name}' is not one of ours: {remedy}.")


def _our_word(kind: str, word: str) -> str:
    """Our word for another tool's rule or level set; empty where we know none."""
    words: dict[str, list[str]] = _NAMES[kind]
    return next((ours for ours, theirs in words.items() if word in theirs), "")


def refuse_mixed_seeds(names: Sequence[str], *, source: str) -> None:
    """Refuse seeds of which some are numbers and some are words: a typing error would count as another run."""
    words = [name for name in names if name and not re.fullmatch(r"-?\d+", name)]
    numbers = [name for name in names if re.fullmatch(r"-?\d+", name)]
    if words and numbers:
        raise UsageError(
            f"{source}: the seed '{words[0]}' is not a whole number, but {len(numbers)} other seeds are. Correct it."
        )
