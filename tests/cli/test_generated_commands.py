"""Commands are made from functions: their help, what only the terminal has, and spellings of earlier versions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import click
import pytest

from command_line import run
from gapfloor.cli import generate
from gapfloor.cli.commands import COMMANDS, CommandEntry
from gapfloor.cli.docstrings import entries_of, sections_of
from gapfloor.cli.generate import for_terminal, make_command
from gapfloor.cli.main import cli
from gapfloor.cli.old_spellings import OLD_OPTIONS, renew_command, renew_options
from gapfloor.errors import UsageError
from gapfloor.lazy import resolve

pytestmark = pytest.mark.fast


def leaves(
    group: click.Group, context: click.Context, words: str = ""
) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from leaves(command, click.Context(command, parent=context), f"{words}{name} ")
        else:
            yield f"{words}{name}", command


def shown(
    games: str | Sequence[str],
    *,
    draws: int | Sequence[int] = (0, 1),
    references: Sequence[str] = ("uniform",),
    options: Mapping[str, bool] | None = None,
    pairs: Literal["all", "none"] = "all",
    batch: int = 16,
    is_blind: bool = False,
    tensorboard: bool = True,
    progress: bool | None = None,
) -> Any:
    """Show what it was given.

    Args:
        games: The games; see `draws`.
        draws: The draws of `games`.
        references: The references.
        options: The options.
        pairs: The pairs.
        batch: The batch.
        is_blind: Whether it is blind.
        tensorboard: Write files.
        progress: What hears of it.

    Command line:
        gapfloor shown maze --draws 0,1
    """


def parsed(*arguments: str) -> dict[str, Any]:
    command = make_command("shown", CommandEntry("Measure", f"{__name__}:shown"))
    with command.make_context("shown", list(arguments)) as context:
        return {
            name: value
            for name, value in context.params.items()
            if name not in ("as_json", "is_wide", "is_quiet", "traceback")
        }


@pytest.fixture(autouse=True)
def found(monkeypatch):
    monkeypatch.setattr(generate, "resolve", lambda path: shown if path.endswith(":shown") else resolve(path))


def test_a_signature_becomes_arguments_options_types_and_defaults():
    assert parsed("maze") == {
        "games": ("maze",), "draws": [0, 1], "references": ("uniform",), "options": {}, "pairs": "all", "batch": 16,
        "is_blind": False, "tensorboard": True,
    }  # fmt: skip
    given = parsed(
        "maze", "heist", "--draws", "3", "--reference", "a,b", "--reference", "c", "--option", "x=true", "--is-blind",
        "--no-tensorboard",
    )  # fmt: skip
    assert given == {
        "games": ("maze", "heist"), "draws": [3], "references": ("a,b", "c"), "options": {"x": True}, "pairs": "all",
        "batch": 16, "is_blind": True, "tensorboard": False,
    }  # fmt: skip


def test_wrong_values_are_refused():
    with pytest.raises(UsageError, match="'0,x' is not a list of draws"):
        parsed("maze", "--draws", "0,x")
    with pytest.raises(click.UsageError, match="'some' is not one of"):
        parsed("maze", "--pairs", "some")
    with pytest.raises(click.MissingParameter):
        parsed()


def test_help_names_arguments_as_they_are_typed_and_help_all_has_the_rare_ones(capsys):
    command = make_command("shown", CommandEntry("Measure", f"{__name__}:shown"))
    text = command.get_help(click.Context(command, info_name="shown"))
    assert "The draws of GAME." in text
    assert "see --draws" in text
    assert "    gapfloor shown maze --draws 0,1" in text
    assert "--batch" not in text
    with pytest.raises(click.exceptions.Exit):
        command.make_context("shown", ["--help-all"])
    assert "--batch INTEGER" in capsys.readouterr().out


def test_every_command_has_an_example_and_says_what_each_option_means():
    for words, command in leaves(cli, click.Context(cli)):
        assert f"  gapfloor {words}" in (command.help or ""), words
        assert [
            param.name for param in command.params if isinstance(param, click.Option) and not param.help
        ] == []


def test_the_list_of_commands_is_grouped(capsys):
    out = run(capsys, "--help").out
    places = [
        out.index(f"\n{section}:\n") for section in ("Measure", "Decide", "Report", "Audit", "Advanced")
    ]
    assert places == sorted(places)
    assert {entry.section for entry in COMMANDS.values()} == {
        "Measure",
        "Decide",
        "Report",
        "Audit",
        "Advanced",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("levels check maze", "levels maze"),
        ("engines check gym:X", "doctor gym:X"),
        ("floor --known mujoco", "known-floor mujoco"),
        ("plan addendum a b --store s", "plan lock a --addendum b --store s"),
        ("floor maze", "floor maze"),
    ],
)
def test_an_old_command_is_read_as_the_new_one(capsys, old, new):
    assert renew_command(old.split()) == new.split()
    assert capsys.readouterr().err.count("\n") == (old != new)


def test_an_old_option_is_read_as_the_new_one_with_one_line(capsys):
    assert renew_options("gapfloor report", ["x", "--format=md"]) == ["x", "--formats=md"]
    assert capsys.readouterr().err == (
        "gapfloor: --format is now --formats; the old spelling goes away in the next version.\n"
    )
    for (words, _), new in OLD_OPTIONS.items():
        command = make_command(words, COMMANDS[words])
        assert new in {name for param in command.params for name in param.opts}


def test_an_old_command_still_works(capsys):
    done = run(capsys, "floor", "--known", "gym:CartPole-v1", "--json")
    assert json.loads(done.out)["game"] == "gym:CartPole-v1"
    assert done.err.startswith("gapfloor: gapfloor floor --known is now gapfloor known-floor")


def test_the_traceback_can_be_asked_for_after_the_command(capsys):
    assert "Traceback" in run(capsys, "analyse", "nowhere.csv", "--traceback").err
    assert "Traceback" not in run(capsys, "analyse", "nowhere.csv").err


def test_docstrings_are_taken_apart():
    parts = sections_of("Does it.\n\nArgs:\n    a: One\n        thing.\n\nCommand line:\n    gapfloor a")
    assert parts["Command line"] == "gapfloor a"
    assert entries_of(parts["Args"]) == {"a": "One thing."}
    assert for_terminal("START:STOP, a `range`, all. In Python also a table (a.b). Last.", {}) == (
        "START:STOP, all. Last."
    )
