"""What a row of the speed table is made of: two sides, and how one turn of a side is timed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gapfloor.records.store import Store

HERE = Path(__file__).parent
AGENTS = HERE.parent / "agents"
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
#: The level sets of the paper. A peer gets one process for each, its fastest layout on two cores.
LEVELS = ("0:200", "1000:1100")
#: What `gapfloor evaluate` plays by default on each level set, and in a quick look.
EPISODES, FEW = 384, 16


@dataclass(frozen=True)
class Timed:
    """What one side did in one turn."""

    steps: float
    wall: float
    cpu: float
    other_load: float = 0.0
    """Cores that other processes kept busy meanwhile."""

    @property
    def rate(self) -> float:
        """Steps per wall second."""
        return self.steps / self.wall

    @property
    def cpu_rate(self) -> float:
        """Steps per second of processor time."""
        return self.steps / self.cpu


@dataclass(frozen=True)
class Contest:
    """A row of the table: the two sides and what they are counted in."""

    peer: str
    ours: Callable[[], Timed]
    theirs: Callable[[Timed], Timed]
    """Gets our last turn, for contests over the same number of steps."""
    unit: str = "counted steps/s"


def timed(work: Callable[[], float]) -> Timed:
    """Run `work`, which returns its steps, with its wall and processor time, children included."""
    cpu, busy, start = _own_cpu(), busy_seconds(), time.perf_counter()
    steps = work()
    wall = time.perf_counter() - start
    cpu, busy = _own_cpu() - cpu, busy_seconds() - busy
    return Timed(steps, wall, cpu, max(0.0, (busy - cpu) / wall))


def busy_seconds() -> float:
    """Processor seconds that all processes of the machine have used."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    ticks = sum(int(field) for field in fields) - int(fields[3]) - int(fields[4])
    return ticks / os.sysconf("SC_CLK_TCK")


def _own_cpu() -> float:
    return sum(
        each.ru_utime + each.ru_stime
        for each in (resource.getrusage(resource.RUSAGE_CHILDREN), resource.getrusage(resource.RUSAGE_SELF))
    )


def peers(script: str, *arguments: Sequence[str]) -> float:
    """Run a file of `peers/` side by side, once for each list of arguments; the steps that they print."""
    commands = [[sys.executable, str(HERE / "peers" / script), *each] for each in arguments]
    running = [
        subprocess.Popen(
            command, env=os.environ | ONE_THREAD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    steps = 0.0
    for command, process in zip(commands, running, strict=True):
        out, error = process.communicate()
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{error}")
        steps += json.loads(out.splitlines()[-1])["steps"]
    return steps


def gapfloor(*arguments: str, references: bool = False) -> float:
    """Run a command of ours on an empty store; the counted steps of its runs, or of its references.

    Files of `peers/` can be named as modules, because a user's own code is found in the current folder.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "gapfloor.cli.main", *arguments, "--store", folder]
        done = subprocess.run(command, cwd=HERE / "peers", capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
        return float(
            sum(
                cell.manifest.record["n_steps"]
                for cell in Store(folder).cells()
                if cell.is_reference == references
            )
        )
