"""The `gapfloor` command: a table of commands, each loaded only when it is called.

Loading lazily keeps `gapfloor --help` fast and lets `report` run without engine or torch.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any

import click

from gapfloor import __version__
from gapfloor.cli.error_boundary import noticing_broken_pipes, run_guarded
from gapfloor.errors import nearest_names

#: command -> (module whose `command` it is, one-line help). The order is the order of `gapfloor --help`.
COMMANDS: dict[str, tuple[str, str]] = {
    "floor": ("gapfloor.cli.floor", "Measure the random floor of games on both level sets."),
    "evaluate": ("gapfloor.cli.evaluate", "Evaluate policies under stated rules and compare with the floor."),
    "sweep": ("gapfloor.cli.sweep", "Play one checkpoint at a grid of temperatures."),
    "training-curve": (
        "gapfloor.cli.training_curve",
        "Measure gap and floor over a run's checkpoints.",
    ),
    "compare": ("gapfloor.cli.compare", "Compare two agents on the same schedule, paired by level."),
    "train": ("gapfloor.cli.train", "Train an agent with PPO; run the same command again to resume."),
    "levels": ("gapfloor.cli.levels", "Find held-out levels that equal a training level."),
    "calibrate": ("gapfloor.cli.calibrate", "Measure which actions are the same."),
    "analyse": ("gapfloor.cli.analyse", "Apply the plan's tests to a store or an episode file."),
    "plan": ("gapfloor.cli.plan", "Write, lock, check, extend or follow an analysis plan."),
    "power": ("gapfloor.cli.power", "Compute how many runs, floor episodes and levels a call needs."),
    "report": ("gapfloor.cli.report", "Write tables, numbers, figures and the page."),
    "card": ("gapfloor.cli.card", "Check, compare or export gap cards."),
    "replay": ("gapfloor.cli.replay", "Play recorded episodes again and keep their frames."),
    "verify": ("gapfloor.cli.verify", "Check a store and play a sample of its episodes again."),
    "study": ("gapfloor.cli.study", "Run a whole study from one file: here, on Ray or on SLURM."),
    "audit": ("gapfloor.cli.audit", "Find the action rule that a code base uses at test time."),
    "cka": ("gapfloor.cli.cka", "Measure CKA of checkpoints' features, with its controls."),
    "engines": ("gapfloor.cli.engines", "Check any environment against the engine contract."),
    "doctor": ("gapfloor.cli.doctor", "Check platform, engine, determinism and cloning."),
}


#: Earlier names of commands, which still work.
ALIASES = {"over-training": "training-curve"}


class LazyGroup(click.Group):
    """A click group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, (module, _) in COMMANDS.items() if importlib.util.find_spec(module)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        cmd_name = ALIASES.get(cmd_name, cmd_name)
        if cmd_name not in COMMANDS or importlib.util.find_spec(COMMANDS[cmd_name][0]) is None:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command = module.command
        assert isinstance(command, click.Command)
        _keep_lines(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = {*self.list_commands(ctx), *ALIASES}
        if args and not args[0].startswith("-") and args[0] not in known:
            raise click.UsageError(
                f"Unknown command '{args[0]}': {nearest_names(args[0], self.list_commands(ctx))}"
            )
        return super().resolve_command(ctx, args)

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        with noticing_broken_pipes():  # --help is printed here
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: click.Context) -> Any:
        with noticing_broken_pipes():
            return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, COMMANDS[name][1]) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def _keep_lines(command: click.Command) -> None:
    r"""Turn the written `\b` of raw docstrings into the character by which click leaves a paragraph's lines alone."""
    if command.help:
        command.help = command.help.replace("\\b\n", "\b\n")
    if isinstance(command, click.Group):
        for sub in command.commands.values():
            _keep_lines(sub)


_show_traceback = False


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gapfloor")
@click.option(
    "--traceback", is_flag=True, envvar="GAPFLOOR_TRACEBACK",
    help="Show the whole traceback of an error, e.g. of one in your own policy.",
)  # fmt: skip
def cli(traceback: bool) -> None:
    """What does a generalization gap measure? Floors, rules, entropy and calls for RL evaluation."""
    global _show_traceback
    _show_traceback = traceback


def main(argv: list[str] | None = None) -> None:
    """Run the command line and exit; `gapfloor.cli.error_boundary` decides about messages and exit codes."""
    is_own_process = argv is None  # see `gapfloor.cli.pictures`
    sys.exit(
        run_guarded(
            lambda: cli.main(args=argv, prog_name="gapfloor", standalone_mode=False, obj=is_own_process),
            wants_traceback=lambda: _show_traceback,
        )
    )


if __name__ == "__main__":
    main()
