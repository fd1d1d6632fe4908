"""The `gapfloor` command: a table of commands, each made only when it is called.

This keeps `gapfloor --help` fast and lets `report` run without engine or torch.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import click

from gapfloor import __version__
from gapfloor.cli.commands import COMMANDS, GROUPS, HELP_NAMES
from gapfloor.cli.docstrings import examples_in, summary_in, with_examples
from gapfloor.cli.error_boundary import noticing_broken_pipes, run_guarded, want_traceback
from gapfloor.cli.old_spellings import renew_command
from gapfloor.errors import nearest_names
from gapfloor.machine import check_memory


class LazyGroup(click.Group):
    """A group of commands in the table, of which only the one that is used is made."""

    def __init__(self, *arguments: Any, prefix: str = "", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.prefix = prefix

    def list_commands(self, ctx: click.Context) -> list[str]:
        words = (words.removeprefix(self.prefix) for words in COMMANDS if words.startswith(self.prefix))
        return list(dict.fromkeys(each.split()[0] for each in words))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        words = f"{self.prefix}{cmd_name}"
        if words in GROUPS:
            mine = [entry for name, entry in COMMANDS.items() if name.startswith(f"{words} ")]
            examples = "\n".join(examples_in(entry.function)[0] for entry in mine)
            text = with_examples(GROUPS[words], examples)
            return LazyGroup(cmd_name, prefix=f"{words} ", help=text, context_settings=HELP_NAMES)
        if words not in COMMANDS:
            return None
        check_memory()
        from gapfloor.cli.generate import make_command

        return make_command(words, COMMANDS[words])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not self.prefix:
            args = renew_command(args)
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            raise click.UsageError(
                f"Unknown command '{self.prefix}{args[0]}': {nearest_names(args[0], self.list_commands(ctx))}"
            )
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with noticing_broken_pipes():  # --help is printed here
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with noticing_broken_pipes():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows: dict[str, dict[str, str]] = {}
        for name, section, summary in self.summaries():
            rows.setdefault(section if not self.prefix else "Commands", {}).setdefault(name, summary)
        for section, commands in rows.items():
            with formatter.section(section):
                formatter.write_dl(list(commands.items()))

    def summaries(self) -> Iterator[tuple[str, str, str]]:
        """Name, section and first sentence of every command; nothing is imported."""
        for words, entry in COMMANDS.items():
            if words.startswith(self.prefix):
                name = words.removeprefix(self.prefix).split()[0]
                group = GROUPS.get(f"{self.prefix}{name}")
                yield name, entry.section, group or summary_in(entry.function)


@click.group(cls=LazyGroup, context_settings=HELP_NAMES)
@click.version_option(__version__, prog_name="gapfloor")
@click.option(
    "--traceback", is_flag=True, envvar="GAPFLOOR_TRACEBACK",
    help="Show the whole traceback of an error, e.g. of one in your own policy.",
)  # fmt: skip
def cli(traceback: bool) -> None:
    """What does a generalization gap measure? Floors, rules, entropy and calls for RL evaluation."""
    if traceback:
        want_traceback()


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit; `gapfloor.cli.error_boundary` decides about messages and exit codes."""
    is_own_process = argv is None  # see `gapfloor.cli.show`
    sys.exit(
        run_guarded(
            lambda: cli.main(args=argv, prog_name="gapfloor", standalone_mode=False, obj=is_own_process)
        )
    )


if __name__ == "__main__":
    main()
