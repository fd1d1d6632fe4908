"""Every command that the documentation shows is one that the program understands, and tutorials print what they show.

All commands, also those in running text and in the commands' own help, are parsed by the real command line: names of
commands and options, types and choices. Blocks marked `<!-- run -->` are run in a folder of their own, top to bottom.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from command_blocks import Block, Shown, gapfloor_commands, read_blocks, shown_commands, words_of
from command_line import parse
from command_pages import command_pages, default_words, read_help
from gapfloor.cli.main import cli

ROOT = Path(__file__).parents[2]
#: Notes about earlier versions show the commands of their time.
OLD_NOTES = {"statistics-of-0.2.md"}
PAGES = [
    ROOT / "README.md", ROOT / "agents" / "README.md", *sorted((ROOT / "docs").rglob("*.md")),
    *(path for path in sorted((ROOT / "research-notes").glob("*.md")) if path.name not in OLD_NOTES),
]  # fmt: skip

#: Letters that stand for a whole number in a form such as `--seed SEED`.
NUMBERS = ("H", "N", "S", "SEED")


def every_command() -> list[tuple[str, str]]:
    found = [(path.name, text) for path in PAGES for _, text in gapfloor_commands(path)]
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        found += [(f"gapfloor {name} --help", text) for text in read_help(command).examples]
        for sub in subcommands(command):
            found += [(f"gapfloor {name} {sub.name} --help", text) for text in read_help(sub).examples]
    return sorted(set(found))


def subcommands(command: click.Command | None) -> list[click.Command]:
    """The commands of a group; none of a plain command."""
    if not isinstance(command, click.Group):
        return []
    context = click.Context(command)
    found = [command.get_command(context, name) for name in command.list_commands(context)]
    return [each for each in found if each is not None]


def is_synopsis(text: str) -> bool:
    """A form with placeholders in brackets, e.g. `[--json]`: the options in it are parsed one by one."""
    return "[" in text


@pytest.mark.fast
@pytest.mark.parametrize(("page", "text"), every_command(), ids=lambda value: value[:60])
def test_a_command_that_is_shown_can_be_typed(page: str, text: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(ROOT)
    if is_synopsis(text):
        known = {name for param in _named(text).params for name in param.opts}
        assert set(re.findall(r"--[a-z-]+", text)) <= known
        return
    parse(["1" if word in NUMBERS else word for word in words_of(text)[1:]])


def _named(text: str) -> click.Command:
    command = cli.get_command(click.Context(cli), text.split()[1])
    assert command is not None
    return command


@pytest.mark.fast
def test_an_unknown_option_or_command_is_found():
    with pytest.raises(click.UsageError):
        parse(["floor", "starpilot", "--no-such-option"])
    with pytest.raises(click.UsageError):
        parse(["flor", "starpilot"])
    with pytest.raises(click.UsageError):
        parse(["evaluate", "policy", "--game", "starpilot"])


@pytest.mark.fast
@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "agents/README.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(name: str):
    page = ROOT / name
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.fast
def test_files_that_the_page_for_contributors_names_exist():
    text = (ROOT / "research-notes" / "extend.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w./-]+(?:\.py|/))`", text)
    assert len(named) > 20
    places = (ROOT, ROOT / "src" / "gapfloor", ROOT / "src" / "gapfloor" / "policies" / "formats")
    assert [
        name for name in named if not any((place / name).exists() for place in places) and name != "site/"
    ] == []


@pytest.mark.fast
def test_every_option_of_every_command_is_on_its_page_with_a_default():
    pages = command_pages(ROOT / "docs")
    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        page = pages[f"commands/{name}.md"]
        for each in subcommands(command) or [command]:
            for option in (param for param in each.params if isinstance(param, click.Option)):
                words = default_words(option, click.Context(each))
                assert words
                row = next(line for line in page.splitlines() if line.startswith(f"| `{option.opts[0]}`"))
                assert row.count(" | ") >= 3


@pytest.mark.fast
@pytest.mark.parametrize("arguments", [["evaluate"], ["study"], ["plan", "lock"]], ids=" ".join)
def test_help_prints_one_example_per_line(arguments: list[str]):
    shown = CliRunner().invoke(cli, [*arguments, "--help"], terminal_width=200).output.splitlines()
    assert "  Examples:" in shown
    after = shown[shown.index("  Examples:") + 1]
    assert after.startswith("    gapfloor ")
    assert after.count("gapfloor ") == 1


# Tutorials ------------------------------------------------------------------------------------------------------------

RUNNABLE = [path for path in PAGES if any(block.run is not None for block in read_blocks(path))]


def test_the_guides_are_among_the_pages_that_are_run():
    names = {path.name for path in RUNNABLE}
    assert {"index.md", "quickstart.md", "my-environment.md", "compare.md", "plan.md", "studies.md"} <= names


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda path: path.stem)
def test_a_page_prints_what_it_shows(page: Path, tmp_path: Path):
    for folder in ("agents", "studies", "examples", "data"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    for block in read_blocks(page):
        if block.title:
            target = tmp_path / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
        if block.run is not None:
            for shown in shown_commands(block):
                run_and_compare(block, shown, tmp_path)


def run_and_compare(block: Block, shown: Shown, folder: Path) -> None:
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
    }
    environment.pop("GAPFLOOR_STORE", None)
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, "-o", "pipefail", "-c", shown.command], cwd=folder, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    how = block.run or ""
    wanted = int(how.removeprefix("exit ")) if how.startswith("exit ") else 0
    where = f"{block.page}:{block.line}: {shown.command}"
    assert done.returncode == wanted, f"{where}\n{done.stdout}\n{done.stderr}"
    printed = done.stdout.splitlines()
    if wanted:
        printed += [line for line in done.stderr.splitlines() if line.startswith("gapfloor: ")]
    if shown.output:
        compare(printed, shown.output, exactly="network" not in how or is_documented_processor(), where=where)


def is_documented_processor() -> bool:
    """Whether torch computes with the instructions that the pages' numbers were made with: others move last bits."""
    import torch

    return str(torch.backends.cpu.get_cpu_capability()) == "AVX2"


def compare(printed: list[str], shown: list[str], *, exactly: bool, where: str) -> None:
    """Hold lines against those shown; `...` stands for any number of lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(_plain(line, exactly=exactly)) + r"\n"
        for line in shown
    )
    text = "".join(_plain(line, exactly=exactly) + "\n" for line in printed)
    assert re.fullmatch(pattern, text), f"{where}\nprinted:\n" + "\n".join(printed)


def _plain(line: str, *, exactly: bool) -> str:
    if exactly:
        return line.rstrip()
    # Without the numbers, and without the widths and rules of columns, which follow them.
    return " ".join(re.sub(r"-{3,}", "-", re.sub(r"[+-]?\d+(\.\d+)?", "#", line)).split())


@pytest.mark.fast
def test_the_comparison_notices_a_changed_word_and_a_changed_number():
    compare(["a 1.50", "b", "c"], ["a 1.50", "...", "c"], exactly=True, where="")
    compare(["a  1.50"], ["a 2.75"], exactly=False, where="")
    for shown, exactly in ((["a 1.51"], True), (["b 1.50"], False)):
        with pytest.raises(AssertionError):
            compare(["a 1.50"], shown, exactly=exactly, where="")
