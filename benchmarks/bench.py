"""One table of speed against other tools: `make bench` writes it into research-notes/performance.md.

    .venv/bin/python benchmarks/bench.py [--repeats 3] [--only sampled,floor-paper] [--quick] [--write PAGE]
        [--cleanrl CLONE --cleanrl-python PYTHON] [--rliable PYTHON]

Each file of `rows/` makes some rows, each file of `peers/` is one process of another tool. `--list` prints the names of
the rows; `--only` takes names or their beginnings. A row that fails says so, and the others are measured. Both sides
take turns and each turn gives one ratio; the table has the median and the range of the ratios. The load of other
processes is in every row.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import page_tables
from contest import Contest, Timed
from gapfloor.machine import available_cores
from gapfloor.policies.policy import instruction_set

ROWS = Path(__file__).parent / "rows"
PACKAGES = ("onnxruntime", "torch", "stable-baselines3", "envpool", "procgen-mirror", "gymnasium", "numpy")


def contests(chosen: argparse.Namespace) -> dict[str, Callable[[], Contest]]:
    """The rows of the table by name; each is made when it is needed."""
    found: dict[str, Callable[[], Contest]] = {}
    for path in sorted(ROWS.glob("[a-z]*.py")):
        found |= importlib.import_module(f"rows.{path.stem}").rows(chosen)
    return found


def row(name: str, make: Callable[[], Contest], repeats: int) -> str:
    """The contest's row: both sides in turn; a failure becomes a row too."""
    try:
        return _measured_row(name, make(), repeats)
    except (Exception, SystemExit) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[-1]
        return f"| {name} | not measured: {reason.replace('|', '/')} | | | | | | | |"


def _measured_row(name: str, contest: Contest, repeats: int) -> str:
    mine: list[Timed] = []
    other: list[Timed] = []
    for _ in range(repeats):
        mine.append(contest.ours())
        other.append(contest.theirs(mine[-1]))
    median = statistics.median
    ratios = sorted(a.rate / b.rate for a, b in zip(mine, other, strict=True))
    cpu = median(a.cpu_rate / b.cpu_rate for a, b in zip(mine, other, strict=True))
    load = median(each.other_load for each in (*mine, *other))
    spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}, {repeats} turns" if repeats > 1 else "one turn"
    return (
        f"| {name} | {contest.peer} | {_rate(a.rate for a in mine)} | {_rate(b.rate for b in other)} | "
        f"{contest.unit} | {median(a.wall for a in mine):.1f} s | **{median(ratios):.2f}** ({spread}) | {cpu:.2f} | "
        f"{load:.1f} |"
    )


def _rate(rates: Iterable[float]) -> str:
    rate = statistics.median(rates)
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2f}"


def peak() -> float:
    """GFLOP/s of torch's float32 product of 512 x 512 matrices on one thread: the best of many rounds."""
    code = (
        "import torch, time\n"
        "torch.set_num_threads(1); a = torch.ones(512, 512); best = 9.0\n"
        "for _ in range(100):\n"
        "    start = time.process_time(); a @ a; best = min(best, time.process_time() - start)\n"
        "print(2 * 512**3 / best / 1e9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def header() -> str:
    """The machine and the versions."""
    facts = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.split(":", 1)[1].strip() for line in facts if line.startswith("model name")]
    cpu = names[0] if names else platform.processor()
    return (
        f"{cpu}, {available_cores()} cores, {instruction_set()}, measured peak {peak():.0f} GFLOP/s per core (float32 "
        f"matrix product); Python {platform.python_version()}, "
        + ", ".join(f"{name} {_version(name)}" for name in PACKAGES)
        + f". Load before: {os.getloadavg()[0]:.1f}."
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="turns of each row (default: 3)")
    parser.add_argument("--only", default="", help="rows or beginnings of their names, separated by commas")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--quick", action="store_true", help="a few episodes, to see that everything runs")
    parser.add_argument("--write", type=Path, default=None, metavar="PAGE")
    parser.add_argument("--cleanrl", type=Path, default=None, metavar="CLONE")
    parser.add_argument("--cleanrl-python", type=Path, default=Path(sys.executable), metavar="PYTHON")
    parser.add_argument("--rliable", type=Path, default=None, metavar="PYTHON")
    chosen = parser.parse_args()
    rows = contests(chosen)
    wanted = tuple(filter(None, chosen.only.split(",")))
    names = [name for name in rows if not wanted or name.startswith(wanted)]
    if chosen.list or not names:
        print("\n".join(rows))
        return
    command = "benchmarks/bench.py" + (f" --only {chosen.only}" if wanted else "")
    lines = [
        f"Measured with `{command}`: {header()}",
        "",
        "| what | against | ours | theirs | unit | our time | ratio, wall time | ratio, CPU time | other load |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for name in names:
        lines.append(row(name, rows[name], chosen.repeats))
        print(lines[-1], flush=True)
        if chosen.write:  # what has been measured survives whatever happens to the rest
            page_tables.write_between(chosen.write, "make bench", "\n".join(lines))


if __name__ == "__main__":
    main()
