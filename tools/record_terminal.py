"""Record the core commands in a terminal of 80 columns, as the pictures in docs/images.

    python tools/record_terminal.py          # floor, evaluate, analyse and report; a minute or two
    python tools/record_terminal.py analyse  # one of them

Each command runs in a pseudo-terminal of its own, in a temporary folder. The picture is an SVG that loads nothing.
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

sys.path.append(str(Path(__file__).parents[1] / "docs_site"))
from command_blocks import read_blocks

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
COLUMNS = 80
#: Of longer output the first and the last lines are shown.
FIRST, LAST = 22, 12
COMMANDS = {
    "floor": "gapfloor floor starpilot --draws 0 --episodes 64",
    "evaluate": "gapfloor evaluate agents/starpilot-easy-impala-100k-s? --game starpilot --rules greedy --draws 0 "
    "--episodes 64",
    "analyse": "gapfloor analyse results.csv",  # the file of the quickstart
    "report": "gapfloor report data/public --out my-report",
}
#: rich's template without the font that it loads from the network and without the window's frame.
PICTURE = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}</defs>
<rect width="100%" height="100%" rx="6" fill="#292929"/>
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""


def main(names: list[str]) -> None:
    """Record the named commands, or all."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("agents", "data", "studies"):
            (Path(folder) / name).symlink_to(ROOT / name)
        for block in read_blocks(ROOT / "docs" / "quickstart.md"):
            if block.title:
                (Path(folder) / block.title).write_text(block.text, encoding="utf-8")
        for name in names or COMMANDS:
            shown = record(COMMANDS[name], folder)
            (IMAGES / f"terminal-{name}.svg").write_text(picture(name, shown), encoding="utf-8")


def record(command: str, folder: str) -> str:
    """What a command shows on a terminal of 80 columns: lines that were replaced while it ran are left out."""
    leader, follower = pty.openpty()
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(COLUMNS), "LINES": "50", "TERM": "xterm-256color",
    }  # fmt: skip
    running = subprocess.Popen(
        ["bash", "-c", command], cwd=folder, env=environment, stdout=follower, stderr=subprocess.DEVNULL
    )
    os.close(follower)
    parts = []
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(leader)
    if running.wait():
        sys.exit(f"{command} ended with exit code {running.returncode}")
    return b"".join(parts).decode().replace("\r\n", "\n")


def picture(name: str, shown: str) -> str:
    """The command and its output as SVG."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    words = shlex.join(shlex.split(COMMANDS[name])).replace("'", "")
    console.print(Text(f"$ {words}", style="bold"))
    lines = Text.from_ansi(re.sub(r"\x1b\[[0-9;?]*[A-HJKSTfhl]", "", shown)).wrap(console, COLUMNS)
    if len(lines) > FIRST + LAST:
        lines = [*lines[:FIRST], Text("..."), *lines[-LAST:]]
    for line in lines:
        console.print(line)
    return console.export_svg(title="", code_format=PICTURE, unique_id=f"terminal-{name}")


if __name__ == "__main__":
    main(sys.argv[1:])
