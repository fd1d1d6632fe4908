"""Options of the commands that read anyone's table of episodes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def table_options(*, with_rule: bool = True) -> Callable[[F], F]:
    """`--columns`, `--label`, `--rule`, `--floor` and `--decimal`, handed on as one `table` argument."""
    decorators = [
        click.option(
            "--columns", default="", metavar="OURS=THEIRS,...",
            help="Columns of the file that have other names, e.g. game=env,episode_return=score.",
        ),
        click.option(
            "--label", "labels", multiple=True, metavar="NAME=VALUE",
            help="A label of every episode that the file does not state, e.g. level_set=test; may be repeated.",
        ),
        click.option(
            "--floor", "floor_name", default="", metavar="NAME", help="The agent or rule whose rows are the floor."
        ),
        click.option(
            "--decimal", type=click.Choice([".", ","]), default=".", show_default=True,
            help="Decimal mark of the numbers in a text file.",
        ),
    ]  # fmt: skip
    if with_rule:
        rule = click.option(
            "--rule", "rule_name", default="", help="Short for --label rule=RULE, e.g. sampled."
        )
        decorators.insert(2, rule)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def wrapped(
            *args: Any, columns: str, labels: tuple[str, ...], floor_name: str, decimal: str, **rest: Any
        ) -> Any:
            from gapfloor.analysis.table_options import parse_table_options

            table = parse_table_options(
                columns=columns,
                labels=labels,
                rule=rest.pop("rule_name", ""),
                floor=floor_name,
                decimal=decimal,
            )
            return function(table=table, **rest)

        decorated: Any = wrapped
        for decorator in reversed(decorators):
            decorated = decorator(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate
