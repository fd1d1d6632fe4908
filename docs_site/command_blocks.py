"""The commands that documentation shows: fenced blocks, the commands in them, and what they are said to print.

A block is run when the line above it is `<!-- run -->`; see `research-notes/extend.md` for what may stand in that mark.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: Kinds of fenced blocks that can hold commands; other languages (python, toml, yaml, text) cannot.
SHELL = ("", "console", "bash", "sh")
_MARK = re.compile(r"<!--\s*run(?::\s*(?P<how>[^>]*?))?\s*-->")
_TITLE = re.compile(r'title="([^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    title: str
    """The file that the block is, where it is one."""
    text: str
    run: str | None
    """What follows `run` in the mark above the block; None without a mark."""


@dataclass
class Shown:
    """A command and the lines that the page shows below it."""

    command: str
    output: list[str] = field(default_factory=list)


def read_blocks(path: Path) -> list[Block]:
    """Every fenced block of a page, in order."""
    blocks: list[Block] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    at = 0
    while at < len(lines):
        opened = re.match(r"^\s*(```+)\s*(\S*)\s*(.*)$", lines[at])
        if not opened:
            at += 1
            continue
        end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == opened.group(1))
        mark = _MARK.search(lines[at - 1]) if at else None
        title = _TITLE.search(opened.group(3))
        blocks.append(
            Block(
                page=path.name, line=at + 1, language=opened.group(2), title=title.group(1) if title else "",
                text="\n".join(lines[at + 1 : end]) + "\n", run=(mark.group("how") or "") if mark else None,
            )
        )  # fmt: skip
        at = end + 1
    return blocks


def shown_commands(block: Block) -> list[Shown]:
    """The commands of a block that is run: lines after `$ `, each with the output below it."""
    found: list[Shown] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append(Shown(line[2:]))
        elif found and found[-1].command.endswith("\\"):
            found[-1].command = found[-1].command[:-1] + line.strip()
        elif found:
            found[-1].output.append(line)
    return found


def gapfloor_commands(path: Path) -> Iterator[tuple[int, str]]:
    """Line and text of every gapfloor command of a page: in shell blocks, in YAML, and in running text."""
    for block in read_blocks(path):
        if block.language in SHELL:
            # With prompts, lines without one are output; without, every line is a command.
            shown = [each.command for each in shown_commands(block)]
            for line in shown or block.text.replace("\\\n", " ").splitlines():
                found = re.search(r"(?:^|[\s'(])(gapfloor [a-z-].*)$", _without_comment(line))
                if found and not line.startswith(("gapfloor: ", "#")):
                    yield block.line, found.group(1).rstrip("'").strip()
        elif block.language == "yaml":
            for line in block.text.splitlines():
                found = re.search(r"(?:run|entry): (gapfloor .*)$", line)
                if found:
                    yield block.line, found.group(1)
    text = re.sub(r"^\s*```.*?^\s*```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    for found in re.finditer(r"`(gapfloor [^`]+)`", text):
        yield text[: found.start()].count("\n") + 1, " ".join(found.group(1).split())


def words_of(command: str) -> list[str]:
    """The words of a command up to a pipe, a redirection or the next command."""
    words: list[str] = []
    for word in shlex.split(command, comments=True):
        if word in ("|", "||", "&&", ";", ">", "2>&1"):
            break
        words.append(word)
    return words


def _without_comment(line: str) -> str:
    return re.sub(r"\s+# .*$", "", line)
