"""Environment steps per second of `gapfloor train` against CleanRL's ppo_procgen, same hyperparameters and machine.

    python benchmarks/training_speed.py [--cleanrl CLONE --cleanrl-python PYTHON] [--updates 3] [--repeats 3]

Three sides, interleaved: CleanRL (torch's own threads on all cores), one gapfloor run on all cores, and as many
one-core gapfloor runs side by side as there are cores (their sum). CleanRL is run as it is, from a clone of its
repository, by an interpreter that has gym 0.23, tyro, torch and procgen; without a clone only gapfloor is
measured. Speeds leave out the start of the interpreter, as both programs report them. Also printed: steps per
second of processor time, and the share of the machine that other processes took.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENTS, BATCH = 16, 16 * 256
SETTINGS = ["--num-envs", str(ENVIRONMENTS), "--env-id", "starpilot", "--no-cuda"]


@dataclass(frozen=True)
class Speed:
    """One measurement."""

    steps_per_second: float
    steps_per_cpu_second: float
    others: float


def gapfloor_command(store: Path, seed: int, updates: int, threads: int, precision: str) -> list[str]:
    return [
        sys.executable, "-m", "gapfloor.cli.main", "train", "starpilot", "--train", "all", "--rewards", "cleanrl",
        "--seed", str(seed), "--steps", str(updates * BATCH), "--threads", str(threads), "--store", str(store),
        "--precision", precision, "--json",
    ]  # fmt: skip


def measure_gapfloor(updates: int, *, runs: int, threads: int, precision: str = "float32") -> Speed:
    """`runs` runs side by side, each on `threads` threads: the sum of their speeds."""
    with tempfile.TemporaryDirectory() as folder:
        commands = [
            gapfloor_command(Path(folder), seed, updates, threads, precision) for seed in range(1, runs + 1)
        ]
        _, cpu, others = run_together(commands, cwd=Path(folder), environment={})
        logs = [json.loads(path.read_text().splitlines()[-1]) for path in Path(folder).glob("log/*.jsonl")]
    return Speed(sum(log["steps_per_second"] for log in logs), runs * updates * BATCH / cpu, others)


def measure_cleanrl(updates: int, clone: Path, python: Path) -> Speed:
    with tempfile.TemporaryDirectory() as folder:
        command = [str(python), str(clone / "cleanrl" / "ppo_procgen.py"), *SETTINGS]
        command += ["--total-timesteps", str(updates * BATCH)]
        outputs, cpu, others = run_together([command], cwd=Path(folder), environment={})
    return Speed(float(re.findall(r"SPS: (\d+)", outputs[0])[-1]), updates * BATCH / cpu, others)


def run_together(
    commands: list[list[str]], *, cwd: Path, environment: dict[str, str]
) -> tuple[list[str], float, float]:
    """Outputs, processor seconds, and the share of the machine's time that everyone else used meanwhile."""
    variables = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"} | environment
    started, busy_before = time.perf_counter(), busy_seconds()
    cpu_before = sum(os.times()[2:4])
    processes = [
        subprocess.Popen(
            command, cwd=cwd, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    outputs = [process.communicate() for process in processes]
    for process, (_, errors) in zip(processes, outputs, strict=True):
        if process.returncode:
            sys.exit(f"{' '.join(process.args)} failed:\n{errors}")
    cpu = sum(os.times()[2:4]) - cpu_before
    whole = (time.perf_counter() - started) * (os.cpu_count() or 1)
    return [output for output, _ in outputs], cpu, max(0.0, (busy_seconds() - busy_before - cpu) / whole)


def busy_seconds() -> float:
    """Processor seconds that the whole machine has been busy; 0 where there is no /proc."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    user, nice, system, _idle, _wait, irq, soft_irq, *_ = map(
        int, stat.read_text().splitlines()[0].split()[1:]
    )
    return (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cleanrl", type=Path, help="a clone of CleanRL's repository")
    parser.add_argument("--cleanrl-python", type=Path, default=Path(sys.executable), help="what runs it")
    parser.add_argument("--updates", type=int, default=3, help="of 4,096 steps, for each measurement")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    sides = {
        f"gapfloor, one run on {cores} cores": lambda: measure_gapfloor(
            arguments.updates, runs=1, threads=cores
        ),
        f"gapfloor, {cores} one-core runs": lambda: measure_gapfloor(
            arguments.updates, runs=cores, threads=1
        ),
    }
    if arguments.cleanrl is not None:
        clone, python = arguments.cleanrl.resolve(), arguments.cleanrl_python.absolute()
        sides = {"CleanRL ppo_procgen": lambda: measure_cleanrl(arguments.updates, clone, python), **sides}
    speeds: dict[str, list[Speed]] = {name: [] for name in sides}
    for _ in range(arguments.repeats):
        for name, measure in sides.items():
            speed = measure()
            speeds[name].append(speed)
            print(
                f"{name:32} {speed.steps_per_second:6.1f} steps/s   {speed.steps_per_cpu_second:6.1f} a CPU second"
                f"   others {speed.others:4.0%}",
                flush=True,
            )
    print("\nmedian")
    first = statistics.median(s.steps_per_second for s in next(iter(speeds.values())))
    first_cpu = statistics.median(s.steps_per_cpu_second for s in next(iter(speeds.values())))
    for name, measured in speeds.items():
        wall = statistics.median(s.steps_per_second for s in measured)
        cpu = statistics.median(s.steps_per_cpu_second for s in measured)
        print(
            f"{name:32} {wall:6.1f} steps/s ({wall / first:.2f}x)   {cpu:6.1f} a CPU second ({cpu / first_cpu:.2f}x)"
        )


if __name__ == "__main__":
    main()
