r"""A command made from a public function: options, types, defaults and help come from its signature and docstring.

| parameter | on the command line |
|---|---|
| the first, or the first few (`CommandEntry.arguments`) | an argument |
| `draws: Sequence[int]`, `rules: str \| Sequence[str]` | `--draws 0,1,2`, `--rules sampled,greedy` |
| `references: Sequence[str]`, `options: Mapping` | `--reference NAME`, `--option NAME=VALUE`, which may be repeated |
| `blind: bool = False`, `shown: bool = True` | `--blind`, `--shown/--no-shown` |
| `pairs: Literal["all", "none"]` | a choice |
| `progress` | not an option: see `terminal_options` |
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from gapfloor.cli.commands import HELP_NAMES, CommandEntry
from gapfloor.cli.docstrings import entries_of, sections_of, with_examples
from gapfloor.cli.error_boundary import want_traceback
from gapfloor.cli.old_spellings import renew_options
from gapfloor.cli.options import Count, Numbers, StoreFolder, parse_engine_options
from gapfloor.errors import UsageError
from gapfloor.lazy import resolve
from gapfloor.records.store import DEFAULT_STORE

#: Arguments that only objects in memory can be given for.
_IN_MEMORY = {"progress", "cells"}

#: Options that few people need: `--help` leaves them out, `--help-all` shows them.
RARE = {
    "allow", "backend", "batch", "cells_seen", "checkpoint_every", "device", "entropy_coefficient", "envs",
    "floor_sem", "geometry", "horizon", "mode", "options", "other_geometry", "permutations", "precision", "probe",
    "repeats", "replace", "slots", "step", "threads", "upper", "whole_cells", "workers",
}  # fmt: skip


def terminal_options() -> list[click.Option]:
    """The options that every command has."""
    return [
        click.Option(["--json", "as_json"], is_flag=True, help="Print one JSON document."),
        click.Option(["--wide", "is_wide"], is_flag=True, help="Show every column of the tables."),
        click.Option(["--quiet", "-q", "is_quiet"], is_flag=True, help="Show no progress."),
        click.Option(
            ["--traceback"], is_flag=True, hidden=True, help="Show the whole traceback of an error."
        ),
        click.Option(
            ["--help-all"], is_flag=True, is_eager=True, expose_value=False, callback=_show_all,
            help="Show every option and exit.",
        ),
    ]  # fmt: skip


class GeneratedCommand(click.Command):
    """A command whose `params` are those of its function; the options of the terminal come on top."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*self.params, *self.terminal, *super().get_params(ctx)[len(self.params) :]]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        args = renew_options(ctx.command_path, args)
        single = {
            name for each in self.params if isinstance(each, click.Option) and not (each.multiple or each.is_flag)
            for name in each.opts
        }  # fmt: skip
        for word in args:
            option = word.partition("=")[0]
            name = option.removeprefix("--").replace("-", "_")
            if option in single and sum(each.partition("=")[0] == option for each in args) > 1:
                raise UsageError(
                    f"{option} was given twice: give it once, with commas between several values."
                )
            if word.startswith("--") and name in self.python_only:
                raise UsageError(
                    f"The command has no {word}: it is the argument {name} of the function in Python."
                )
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        arguments = [each for each in self.params if isinstance(each, click.Argument)]
        rows = [
            (each.make_metavar(ctx).strip("[]."), self.words.get(str(each.name), "")) for each in arguments
        ]
        if rows:
            with formatter.section("Arguments"):
                formatter.write_dl(rows)
        super().format_options(ctx, formatter)

    words: Mapping[str, str]
    terminal: list[click.Option]
    python_only: frozenset[str]


def make_command(name: str, entry: CommandEntry) -> click.Command:
    """The command `name` of a public function."""
    function = resolve(entry.function)
    sections = sections_of(function.__doc__ or "")
    words = entries_of(sections.get("Args", ""))
    python_only = frozenset(entry.python_only.split())
    left_out = _IN_MEMORY | python_only
    parameters = [
        each for each in inspect.signature(function).parameters.values() if each.name not in left_out
    ]
    hints = {each.name: _Hint(each, function) for each in parameters}
    spelled = {
        each.name: _metavar(each.name) if at < entry.arguments else f"--{hints[each.name].spelling}"
        for at, each in enumerate(parameters)
    }
    words = {each: for_terminal(text, spelled) for each, text in words.items()}
    params: list[click.Parameter] = []
    for at, each in enumerate(parameters):
        is_store = each.name == "store"
        default = DEFAULT_STORE if is_store and entry.has_store else each.default
        if at < entry.arguments:
            params.append(_argument(each.name, hints[each.name], default))
        else:
            option = _option(each.name, hints[each.name], default, words.get(each.name, ""))
            option.envvar = "GAPFLOOR_STORE" if is_store and (entry.has_store or entry.names_store) else None
            params.append(option)

    def callback(*, traceback: bool, **values: Any) -> None:
        from gapfloor.cli.show import call_and_show

        if traceback:
            want_traceback()
        terminal = {key: values.pop(key) for key in ("as_json", "is_wide", "is_quiet")}
        call_and_show(name, entry, function, values, **terminal)

    # What stands after the first word of the user's own command belongs to that command.
    settings = (
        {"ignore_unknown_options": True, "allow_interspersed_args": False} if entry.takes_command else {}
    )
    text = with_examples(for_terminal(sections[""], spelled), sections.get("Command line", ""))
    command = GeneratedCommand(
        name.rpartition(" ")[2], params=params, callback=callback, help=text,
        context_settings={**HELP_NAMES, **settings},
    )  # fmt: skip
    command.words, command.terminal, command.python_only = words, terminal_options(), python_only
    return command


def for_terminal(text: str, spelled: Mapping[str, str]) -> str:
    """Words of a docstring for a terminal: arguments as they are typed, other code without its marks.

    >>> for_terminal("In the same form as `train`, e.g. `range`.", {"train": "--train"})
    'In the same form as --train, e.g. range.'
    """
    text = re.sub(r",? (?:or )?a `range`(?=[,. ])", "", text)
    text = re.sub(r" In Python also [^.]*(?:\.[^.\s][^.]*)*\.", "", text)
    return re.sub(r"`([^`]+)`", lambda found: spelled.get(found.group(1), found.group(1)), text)


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """The types that an annotation allows, without None."""
    parts = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    return tuple(each for each in parts if each is not type(None))


class _Hint:
    """What the annotation of a parameter says about its option."""

    def __init__(self, parameter: inspect.Parameter, function: Callable[..., Any]) -> None:
        hint = parameter.annotation
        if isinstance(hint, str):
            try:
                hint = eval(hint, vars(inspect.getmodule(inspect.unwrap(function))))
            except NameError:  # imported for type checkers only
                hint = Any
        self.types = _alternatives(hint)
        origins = {typing.get_origin(each): typing.get_args(each) for each in self.types}
        self.is_mapping = Mapping in origins
        self.choices = [str(value) for value in origins.get(Literal, ())]
        listed = [origins[kind] for kind in (tuple, list, Sequence) if kind in origins]
        self.items = _alternatives(listed[0][0])[0] if listed else None
        """The type of the items where a sequence is allowed; None where it is not."""
        self.is_repeated = str not in self.types and (self.is_mapping or self.items is str)
        """Whether an option is given once per value: its values may hold commas."""
        self.spelling = (_singular(parameter.name) if self.is_repeated else parameter.name).replace("_", "-")


def _singular(name: str) -> str:
    return re.sub(r"ies$", "y", name) if name.endswith("ies") else name.removesuffix("s")


def _metavar(name: str) -> str:
    return _singular(name).upper() if len(name) > 1 else name.upper()


def _argument(name: str, hint: _Hint, default: Any) -> click.Argument:
    has_many, is_required = hint.items is not None, default is inspect.Parameter.empty
    given: dict[str, Any] = {} if is_required or has_many else {"default": default}
    return click.Argument(
        [name], type=_type(name, hint), nargs=-1 if has_many else 1, metavar=_metavar(name) + "..." * has_many,
        required=is_required, **given,
    )  # fmt: skip


def _option(name: str, hint: _Hint, default: Any, words: str) -> click.Option:
    given: dict[str, Any] = {"help": words, "hidden": name in RARE}
    spelled = [f"--{hint.spelling}", name]
    if bool in hint.types:
        both = f"--{hint.spelling}/--no-{hint.spelling}" if default else f"--{hint.spelling}"
        return click.Option([both, name], default=bool(default), is_flag=True, **given)
    if default is inspect.Parameter.empty:
        return click.Option(spelled, required=True, type=_type(name, hint), **given)
    if hint.is_repeated:
        given["help"] = f"{words.rstrip('.')}; may be repeated." if words else ""
        is_options = hint.is_mapping and hint.items is None
        return click.Option(
            spelled, multiple=True, default=tuple(default or ()), show_default=bool(default),
            metavar="NAME=VALUE" if hint.is_mapping else "NAME",
            callback=(lambda ctx, param, pairs: parse_engine_options(pairs)) if is_options else None, **given,
        )  # fmt: skip
    # click would show an empty choice, which is the default.
    metavar = f"[{'|'.join(filter(None, hint.choices))}]" if "" in hint.choices else None
    if isinstance(default, tuple | list):
        default = ",".join(f"{each:g}" if isinstance(each, float) else str(each) for each in default)
    return click.Option(
        spelled, type=_type(name, hint), default=default, show_default=default not in (None, ""), metavar=metavar,
        **given,
    )  # fmt: skip


def _type(name: str, hint: _Hint) -> click.ParamType[Any]:
    if name == "store":
        return StoreFolder()
    if hint.choices:
        return click.Choice(hint.choices)
    if hint.items in (int, float):
        return Numbers(hint.items, name.replace("_", " "))
    if Path in hint.types:
        return click.Path(path_type=Path)
    if int in hint.types and str not in hint.types:
        return Count()
    return click.FLOAT if hint.types == (float,) else click.STRING


def _show_all(ctx: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        for each in ctx.command.get_params(ctx):
            if isinstance(each, click.Option):
                each.hidden = False
        click.echo(ctx.get_help())
        ctx.exit()
